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

    @Test
    void arraysAndLambdasAreNamedAsInTheLanguage() {
        assertEquals("byte[]", Profile.name("[B"));
        assertEquals("java.lang.Object[][]", Profile.name("[[Ljava.lang.Object;"));
        assertEquals("a.B$$Lambda", Profile.name("a.B$$Lambda$14/0x0000000800c03000"));
        assertEquals("java.util.HashMap$Node", Profile.name("java.util.HashMap$Node"));
    }
}
