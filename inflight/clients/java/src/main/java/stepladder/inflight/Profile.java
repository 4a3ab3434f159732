package stepladder.inflight;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.JMException;
import javax.management.ObjectName;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/**
 * A profile of the measured part by the JDK's Flight Recorder, where the environment asks for one:
 * {@code INFLIGHT_PROFILE=cpu:FILE} or {@code alloc:FILE}. The format of the file is described in {@code ../README.md}.
 */
final class Profile implements Recorded {
    private static final String VARIABLE = "INFLIGHT_PROFILE";
    /** The shortest period that the Flight Recorder keeps. */
    private static final Duration PERIOD = Duration.ofMillis(10);

    private static final List<String> RUNTIME = List.of("java.", "javax.", "jdk.", "sun.", "com.sun.");
    /** Native methods in which a thread waits; the recorder takes it for running. */
    private static final List<String> WAITING = List.of("epollWait", "EPoll.wait", "poll", "accept", "park", "waitForReferencePendingList");

    /** A line of a class histogram: its place, instances, bytes, class. */
    private static final Pattern CLASS = Pattern.compile("\\s*\\d+:\\s+(\\d+)\\s+(\\d+)\\s+(\\S+).*");
    private static final Map<String, String> PRIMITIVES = Map.of(
            "B", "byte", "C", "char", "D", "double", "F", "float", "I", "int", "J", "long", "S", "short", "Z", "boolean");

    private final Recording recording;
    private final boolean isCpu;
    private final Path file;
    /** Bytes that each thread had allocated before the recording began, by its id. */
    private final Map<Long, Long> allocatedBefore = new HashMap<>();

    Profile(boolean isCpu, Path file) {
        this.isCpu = isCpu;
        this.file = file;
        recording = new Recording();
        if (isCpu) {
            recording.enable("jdk.ExecutionSample").withPeriod(PERIOD);
            recording.enable("jdk.NativeMethodSample").withPeriod(PERIOD);
        } else {
            recording.enable("jdk.ObjectAllocationSample").with("throttle", "1000/s");
        }
        recording.start();
        if (!isCpu) {
            noteAllocated();
        }
    }

    /** The first sample of a thread weighs what that thread allocated since it began, warm-up and connecting included. */
    private void noteAllocated() {
        if (ManagementFactory.getThreadMXBean() instanceof ThreadMXBean threads && threads.isThreadAllocatedMemoryEnabled()) {
            long[] ids = threads.getAllThreadIds();
            long[] allocated = threads.getThreadAllocatedBytes(ids);
            for (int at = 0; at < ids.length; at++) {
                allocatedBefore.put(ids[at], allocated[at]);
            }
        }
    }

    /** Begins a profile, or does nothing where none is asked for. */
    static Recorded start() {
        String asked = System.getenv().getOrDefault(VARIABLE, "");
        if (asked.startsWith("cpu:")) {
            return new Profile(true, Path.of(asked.substring(4)));
        }
        return asked.startsWith("alloc:") ? new Profile(false, Path.of(asked.substring(6))) : isWhole -> {};
    }

    @Override
    public void end(boolean isWhole) throws IOException, JMException {
        writeStacks();
        if (isWhole && !isCpu) {
            writeHeap(Path.of(file + ".heap.txt"));
        }
    }

    /** What is alive after a garbage collection, by class. */
    static void writeHeap(Path file) throws IOException, JMException {
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        Object histogram = ManagementFactory.getPlatformMBeanServer().invoke(
                commands, "gcClassHistogram", new Object[] {new String[0]}, new String[] {String[].class.getName()});
        List<String> lines = new ArrayList<>(List.of("by type"));
        for (String line : histogram.toString().split("\n")) {
            Matcher found = CLASS.matcher(line);
            if (found.matches()) {
                lines.add(found.group(2) + " " + found.group(1) + " " + name(found.group(3)));
            }
        }
        if (lines.size() == 1) {
            throw new IOException("the JVM's class histogram is not understood");
        }
        Files.write(file, lines);
    }

    /** {@code [[B} is {@code byte[][]}; lambdas have a name of their own in every process. */
    static String name(String type) {
        int depth = 0;
        while (type.startsWith("[")) {
            type = type.substring(1);
            depth++;
        }
        if (depth > 0) {
            type = type.startsWith("L") ? type.substring(1, type.length() - 1) : PRIMITIVES.getOrDefault(type, type);
        }
        return type.replaceAll("\\$\\$Lambda.*", "\\$\\$Lambda") + "[]".repeat(depth);
    }

    private void writeStacks() throws IOException {
        recording.stop();
        Path events = Files.createTempFile("inflight", ".jfr");
        try {
            recording.dump(events);
            recording.close();
            Map<String, Long> weights = new TreeMap<>();
            List<RecordedEvent> inOrder = new ArrayList<>(RecordingFile.readAllEvents(events));
            inOrder.sort(Comparator.comparing(RecordedEvent::getStartTime));
            for (RecordedEvent event : inOrder) {
                long weight = isCpu ? PERIOD.toNanos() / 1000 : allocated(event);
                String stack = stack(event);
                if (stack != null && weight > 0) {
                    weights.merge(stack, weight, Long::sum);
                }
            }
            List<String> lines = new ArrayList<>();
            weights.forEach((stack, weight) -> lines.add(stack + " " + weight));
            Files.write(file, lines);
        } catch (UncheckedIOException e) {
            throw e.getCause();
        } finally {
            Files.deleteIfExists(events);
        }
    }

    /** Bytes that its thread allocated since its sample before, or since the recording began. */
    private long allocated(RecordedEvent event) {
        Long before = event.getThread() == null ? null : allocatedBefore.remove(event.getThread().getJavaThreadId());
        return event.getLong("weight") - (before == null ? 0 : before);
    }

    /** From the root; null of a thread that waits. Where something was allocated, the innermost function is named with its type. */
    private static String stack(RecordedEvent event) {
        if (event.getStackTrace() == null) {
            return null;
        }
        List<RecordedFrame> recorded = event.getStackTrace().getFrames();
        if (recorded.isEmpty()) {
            return null;
        }
        RecordedFrame top = recorded.get(0);
        String method = top.getMethod().getType().getName() + "." + top.getMethod().getName();
        if (event.getEventType().getName().equals("jdk.NativeMethodSample") && WAITING.stream().anyMatch(method::endsWith)) {
            return null;
        }
        List<String> frames = new ArrayList<>();
        for (RecordedFrame frame : recorded) {
            String type = frame.getMethod().getType().getName();
            // Lambdas have a name of their own in every process.
            frames.add(kind(type) + ":" + type.replaceAll("\\$\\$Lambda.*", "\\$\\$Lambda") + "." + frame.getMethod().getName());
        }
        if (event.hasField("objectClass")) {
            frames.set(0, frames.get(0) + " (" + name(event.getClass("objectClass").getName()) + ")");
        }
        Collections.reverse(frames);
        return String.join(";", frames);
    }

    static String kind(String type) {
        return RUNTIME.stream().anyMatch(type::startsWith) ? "runtime" : "user";
    }
}

/** A profile that has begun. */
@FunctionalInterface
interface Recorded {
    /** Ends it and writes the file; of a run that was not stopped also what is alive, where allocations are profiled. */
    void end(boolean isWhole) throws Exception;
}
