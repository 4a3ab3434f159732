package stepladder.inflight;

import com.sun.management.GarbageCollectionNotificationInfo;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.NotificationEmitter;
import javax.management.NotificationListener;
import javax.management.openmbean.CompositeData;

/**
 * How fit this runtime was while it measured: pauses of the garbage collector, heap, CPU and memory.
 *
 * <p>The JVM tells pauses in whole milliseconds. Collectors that run beside the program count without their pauses.
 */
final class Fitness implements AutoCloseable {
    private static final long CLOCK_TICK_NS = 10_000_000;
    private static final long PAGE_BYTES = 4096;

    private final List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans().stream()
            .filter(each -> !each.getName().contains("Cycles") && !each.getName().contains("Concurrent"))
            .toList();
    private final Span second = new Span();
    private final Span phase = new Span();
    private final NotificationListener listener = (notification, handback) -> {
        var info = GarbageCollectionNotificationInfo.from((CompositeData) notification.getUserData());
        second.longestPauseMs.accumulateAndGet(info.getGcInfo().getDuration(), Math::max);
        phase.longestPauseMs.accumulateAndGet(info.getGcInfo().getDuration(), Math::max);
    };

    Fitness() {
        for (GarbageCollectorMXBean each : collectors) {
            ((NotificationEmitter) each)
                    .addNotificationListener(
                            listener,
                            it -> it.getType().equals(GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION),
                            null);
        }
    }

    Map<String, Long> takeSecond() {
        return second.take();
    }

    Map<String, Long> takePhase() {
        return phase.take();
    }

    @Override
    public void close() {
        for (GarbageCollectorMXBean each : collectors) {
            try {
                ((NotificationEmitter) each).removeNotificationListener(listener);
            } catch (javax.management.ListenerNotFoundException e) {
                throw new AssertionError("it was added by the constructor", e);
            }
        }
    }

    private final class Span {
        final AtomicLong longestPauseMs = new AtomicLong();
        private long pauseMs;
        private long count;

        {
            take();
        }

        Map<String, Long> take() {
            long pauseNowMs = collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionTime).sum();
            long countNow = collectors.stream().mapToLong(GarbageCollectorMXBean::getCollectionCount).sum();
            Map<String, Long> figures = new LinkedHashMap<>();
            figures.put("gc_pause_ns", (pauseNowMs - pauseMs) * 1_000_000);
            figures.put("gc_pause_max_ns", longestPauseMs.getAndSet(0) * 1_000_000);
            figures.put("gc_count", countNow - count);
            figures.put("heap_bytes", ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed());
            pauseMs = pauseNowMs;
            count = countNow;
            return figures;
        }
    }

    /** CPU time of the process in steps of 10 ms: in user mode, and in the kernel (0 without /proc). */
    record Cpu(long userNs, long systemNs) {
        static Cpu now() {
            long totalNs = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
            // The name in parentheses may contain spaces; the 15th field is the kernel's time.
            String stat = read("/proc/self/stat");
            String[] fields = stat.substring(stat.lastIndexOf(')') + 1).trim().split(" ");
            long systemNs = fields.length > 12 ? Long.parseLong(fields[12]) * CLOCK_TICK_NS : 0;
            return new Cpu(Math.max(0, totalNs - systemNs), systemNs);
        }

        long totalNs() {
            return userNs + systemNs;
        }
    }

    /** Resident memory; 0 without /proc. */
    static long rssBytes() {
        String[] fields = read("/proc/self/statm").split(" ");
        return fields.length > 1 ? Long.parseLong(fields[1]) * PAGE_BYTES : 0;
    }

    static long rssPeakBytes() {
        return read("/proc/self/status").lines()
                .filter(line -> line.startsWith("VmHWM:"))
                .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) * 1024)
                .findFirst()
                .orElse(0);
    }

    private static String read(String path) {
        try {
            return Files.readString(Path.of(path));
        } catch (IOException e) {
            return "";
        }
    }
}
