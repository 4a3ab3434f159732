package stepladder.inflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProfileTest {
    /** Planted; with its header at least 16 bytes. */
    private static final class KeptValue {
        final long number;

        KeptValue(long number) {
            this.number = number;
        }
    }

    @Test
    void whatIsAliveIsCountedByClass(@TempDir Path folder) throws Exception {
        int count = 200_000;
        List<KeptValue> kept = new ArrayList<>();
        for (int at = 0; at < count; at++) {
            kept.add(new KeptValue(at));
        }
        Path file = folder.resolve("stacks.heap.txt");
        Profile.writeHeap(file);
        List<String> lines = Files.readAllLines(file);
        assertEquals("by type", lines.get(0));
        String planted = lines.stream().filter(line -> line.endsWith("ProfileTest$KeptValue")).findFirst().orElseThrow();
        String[] parts = planted.split(" ", 3);
        assertEquals(count, Long.parseLong(parts[1]));
        assertTrue(Long.parseLong(parts[0]) >= 16L * count, planted);
        assertTrue(lines.stream().anyMatch(line -> line.endsWith(" byte[]")), "strings have bytes");
        assertEquals(count, kept.size());
    }

    private static long allocate(int arrays) {
        long sum = 0;
        for (int at = 0; at < arrays; at++) {
            byte[] planted = new byte[64 << 10];
            planted[at % planted.length] = 1;
            sum += planted[0] + planted.length;
        }
        return sum;
    }

    @Test
    void onlyWhatIsAllocatedMeanwhileCounts(@TempDir Path folder) throws Exception {
        long before = allocate(16_000); // 1 GB, in this thread
        Path file = folder.resolve("stacks.txt");
        Profile profile = new Profile(false, file);
        long meanwhile = allocate(1_600); // 100 MB
        profile.end(false);
        List<String> lines = Files.readAllLines(file);
        long all = lines.stream().mapToLong(ProfileTest::weight).sum();
        long planted = lines.stream().filter(line -> line.contains("user:stepladder.inflight.ProfileTest.allocate (byte[]) "))
                .mapToLong(ProfileTest::weight).sum();
        assertTrue(all < 200 << 20, "counted " + all + " bytes");
        assertTrue(planted > 50 << 20, "of which " + planted + " where they were planted");
        assertTrue(before > meanwhile);
    }

    private static long weight(String line) {
        return Long.parseLong(line.substring(line.lastIndexOf(' ') + 1));
    }

    @Test
    void arraysAndLambdasAreNamedAsInTheLanguage() {
        assertEquals("byte[]", Profile.name("[B"));
        assertEquals("java.lang.Object[][]", Profile.name("[[Ljava.lang.Object;"));
        assertEquals("a.B$$Lambda", Profile.name("a.B$$Lambda$14/0x0000000800c03000"));
        assertEquals("java.util.HashMap$Node", Profile.name("java.util.HashMap$Node"));
    }
}
