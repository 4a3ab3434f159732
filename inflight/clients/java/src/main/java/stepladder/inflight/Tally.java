package stepladder.inflight;

import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.Recorder;

/** What a phase counted: outcomes, latencies and the causes of errors. Every operation enters exactly once. */
final class Tally {
    static final long HIGHEST_LATENCY_NS = 3_600_000_000_000L;
    private static final int CAUSES_KEPT = 20;
    private static final int FIRST_CHARACTERS = 300;

    /** One cause of errors, with the first one's words. */
    static final class ErrorCount {
        String cause;
        long count;
        String first;
    }

    private final LongAdder[] outcomes = new LongAdder[Outcome.values().length];
    private final Recorder recorder = new Recorder(1, HIGHEST_LATENCY_NS, 3);
    private final Histogram latency = new Histogram(1, HIGHEST_LATENCY_NS, 3);
    private final Map<String, ErrorCount> causes = new LinkedHashMap<>();
    private Histogram interval;
    private Map<String, Long> last;

    Tally() {
        for (int n = 0; n < outcomes.length; n++) {
            outcomes[n] = new LongAdder();
        }
        last = counts();
    }

    void record(Outcome outcome, long latencyNs) {
        outcomes[outcome.ordinal()].increment();
        recorder.recordValue(Math.min(Math.max(latencyNs, 1), HIGHEST_LATENCY_NS));
    }

    synchronized void blame(String cause, String text) {
        if (!causes.containsKey(cause) && causes.size() >= CAUSES_KEPT) {
            cause = "other";
        }
        ErrorCount known = causes.computeIfAbsent(cause, name -> {
            ErrorCount created = new ErrorCount();
            created.cause = name;
            created.first = text.substring(0, Math.min(text.length(), FIRST_CHARACTERS));
            return created;
        });
        known.count++;
    }

    Map<String, Long> counts() {
        long ok = sum(Outcome.OK);
        long hits = sum(Outcome.HIT);
        long misses = sum(Outcome.MISS);
        long wrong = sum(Outcome.WRONG);
        long failed = sum(Outcome.FAILED);
        long unknown = sum(Outcome.UNKNOWN);
        Map<String, Long> counts = new LinkedHashMap<>();
        counts.put("ops", ok + hits + misses + wrong + failed + unknown);
        counts.put("ok", ok + hits + misses);
        counts.put("failed", failed + wrong);
        counts.put("unknown", unknown);
        counts.put("hits", hits);
        counts.put("misses", misses);
        counts.put("wrong", wrong);
        return counts;
    }

    /** Counts and quantiles since the call before. One thread calls it. */
    Map<String, Long> takeInterval() {
        Map<String, Long> now = counts();
        Map<String, Long> figures = new LinkedHashMap<>();
        now.forEach((name, count) -> figures.put(name, count - last.get(name)));
        last = now;
        interval = recorder.getIntervalHistogram(interval);
        latency.add(interval);
        boolean some = interval.getTotalCount() > 0;
        figures.put("p50_ns", some ? interval.getValueAtPercentile(50) : 0L);
        figures.put("p99_ns", some ? interval.getValueAtPercentile(99) : 0L);
        figures.put("max_ns", some ? interval.getMaxValue() : 0L);
        return figures;
    }

    /** The histogram of the whole phase in HdrHistogram's V2 format, deflated, base64. */
    String encoded() {
        ByteBuffer buffer = ByteBuffer.allocate(latency.getNeededByteBufferCapacity());
        int length = latency.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(java.util.Arrays.copyOf(buffer.array(), length));
    }

    synchronized List<ErrorCount> errors() {
        return causes.values().stream().sorted(Comparator.comparingLong((ErrorCount each) -> -each.count)).toList();
    }

    private long sum(Outcome outcome) {
        return outcomes[outcome.ordinal()].sum();
    }
}
