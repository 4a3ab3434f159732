package stepladder.inflight;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;

/**
 * The in-flight benchmark: N operations in flight, each one that ends starts the next, until the total is reached.
 *
 * <p>It works for any client library whose operations return a {@link CompletionStage}. The output is described in
 * {@code ../README.md}. Every operation that was started is counted exactly once, even when {@code nextOp} throws, its
 * stage completes at once or never completes.
 */
public final class InFlight<T> {
    /** Every operation starts at once. */
    public static final int UNLIMITED = Integer.MAX_VALUE;

    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();
    private static final long OVERHEAD_NS = 100_000_000;
    /** The JVM compiles the loop while it runs. */
    private static final long OVERHEAD_WARMUP_NS = 500_000_000;

    /** Starts operation i (from 0, warm-up included). It must not block. */
    @FunctionalInterface
    public interface NextOp<T> {
        CompletionStage<? extends T> start(long i) throws Exception;
    }

    /** Judges the result of operation i. */
    @FunctionalInterface
    public interface Check<T> {
        Outcome judge(T result, long i);
    }

    /** The library that is measured. */
    public record Client(String name, String version) {}

    /** The server, as far as the client library knows it. */
    public record Member(String version) {}

    /** The last line: the measured part, without the warm-up. */
    public record End(Map<String, Object> line) {
        public long count(String name) {
            return (Long) line.get(name);
        }

        public String latency() {
            return (String) line.get("latency");
        }
    }

    NextOp<T> nextOp;
    Check<? super T> check = (result, i) -> Outcome.OK;
    Predicate<Throwable> isUnknown = error -> error instanceof UnknownOutcome;
    int inFlight = 100;
    long timeoutMs = 10_000;
    long memoryCapBytes = 512L * 1024 * 1024;
    boolean semaphore;
    AtomicBoolean stop = new AtomicBoolean();
    LongSupplier clock = System::nanoTime;
    private long totalOps = 1_000_000;
    private long warmupOps = -1;
    private Client client = new Client("custom", "");
    private Member member;
    private Object plan;
    private NextOp<T> nullOp = i -> CompletableFuture.completedFuture(null);
    private Check<? super T> nullCheck = (result, i) -> Outcome.OK;
    private Consumer<Map<String, ?>> onLine = InFlight::printLine;

    private InFlight(NextOp<T> nextOp) {
        this.nextOp = nextOp;
    }

    public static <T> InFlight<T> of(NextOp<T> nextOp) {
        return new InFlight<>(nextOp);
    }

    /** Operations in all, warm-up included. Default: 1,000,000. */
    public InFlight<T> totalOps(long ops) {
        totalOps = ops;
        return this;
    }

    /** The first ones, which are not counted. Default: a tenth of {@code totalOps}. */
    public InFlight<T> warmupOps(long ops) {
        warmupOps = ops;
        return this;
    }

    /** Operations that are under way at once, or {@link #UNLIMITED}. Default: 100. */
    public InFlight<T> inFlight(int operations) {
        inFlight = operations;
        return this;
    }

    /** An operation that takes longer ends as unknown. Default: 10,000. */
    public InFlight<T> timeoutMs(long ms) {
        timeoutMs = ms;
        return this;
    }

    /** Default: every result is OK. */
    public InFlight<T> check(Check<? super T> judge) {
        check = judge;
        return this;
    }

    /** Whether an error leaves it open what became of the operation. Default: an {@link UnknownOutcome} does. */
    public InFlight<T> isUnknown(Predicate<Throwable> test) {
        isUnknown = test;
        return this;
    }

    /** With {@link #UNLIMITED}, the run stops when the process holds more memory than this. Default: 512 MiB. */
    public InFlight<T> memoryCapBytes(long bytes) {
        memoryCapBytes = bytes;
        return this;
    }

    /** One thread starts all operations and waits for a semaphore, instead of callbacks that start the next one. */
    public InFlight<T> semaphore(boolean use) {
        semaphore = use;
        return this;
    }

    /** Set it to stop the run; what it has is still reported. */
    public InFlight<T> stop(AtomicBoolean flag) {
        stop = flag;
        return this;
    }

    public InFlight<T> client(Client library) {
        client = library;
        return this;
    }

    public InFlight<T> member(Member server) {
        member = server;
        return this;
    }

    /** Goes into the line {@code start} as it is. */
    public InFlight<T> plan(Object asRun) {
        plan = asRun;
        return this;
    }

    /** Does nothing, at the price that {@code nextOp} and {@code check} have besides the client library. */
    public InFlight<T> nullOp(NextOp<T> op, Check<? super T> judge) {
        nullOp = op;
        nullCheck = judge;
        return this;
    }

    /** Receives the lines. Default: they go to standard output as JSON. */
    public InFlight<T> onLine(Consumer<Map<String, ?>> consumer) {
        onLine = consumer;
        return this;
    }

    /** For tests: a clock in nanoseconds. */
    InFlight<T> clock(LongSupplier ns) {
        clock = ns;
        return this;
    }

    public static void printLine(Map<String, ?> line) {
        System.out.println(GSON.toJson(line));
    }

    /** Runs the benchmark, writes its lines and returns the last one. */
    public End run() throws InterruptedException {
        long warmup = warmupOps < 0 ? totalOps / 10 : warmupOps;
        if (totalOps < 1 || warmup >= totalOps) {
            throw new IllegalArgumentException("totalOps must be more than warmupOps (" + warmup + "), got " + totalOps);
        }
        if (inFlight < 1) {
            throw new IllegalArgumentException("inFlight must be 1 or more, or UNLIMITED, got " + inFlight);
        }
        long[] overhead = ownOverhead();
        Map<String, Object> start = new LinkedHashMap<>();
        start.put("type", "start");
        start.put("format", 1);
        start.put("client", client);
        start.put("runtime", new Client("java", System.getProperty("java.version")));
        start.put("member", member);
        start.put("plan", plan != null ? plan : Map.of("total", totalOps, "warmup", warmup, "in_flight", inFlight));
        start.put("own_overhead_ns_per_op", overhead[0]);
        start.put("own_overhead_cpu_ns_per_op", overhead[1]);
        onLine.accept(start);

        try (Fitness fitness = new Fitness()) {
            long beganNs = System.nanoTime();
            String stopped = null;
            if (warmup > 0) {
                stopped = new Phase<>(this, seconds("warmup", beganNs, fitness)).run(0, warmup).stopped();
            }
            Recorded profile = Profile.start();
            fitness.takeSecond();
            fitness.takePhase();
            Fitness.Cpu cpu = Fitness.Cpu.now();
            var measured = new Phase.Result(new Tally(), 0, List.of(), stopped);
            if (stopped == null) {
                measured = new Phase<>(this, seconds("measure", beganNs, fitness)).run(warmup, totalOps);
            }
            End end = new End(end(measured, cpu, fitness));
            try {
                profile.end(measured.stopped() == null);
            } catch (Exception e) {
                throw new IllegalStateException("the profile cannot be written: " + e.getMessage(), e);
            }
            Map<String, Object> timeline = new LinkedHashMap<>();
            timeline.put("type", "timeline");
            timeline.put("operations", measured.timeline());
            onLine.accept(timeline);
            onLine.accept(end.line());
            return end;
        }
    }

    private BiConsumer<Map<String, Long>, Integer> seconds(String phase, long beganNs, Fitness fitness) {
        return (figures, open) -> {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("type", "second");
            line.put("phase", phase);
            line.put("at_ns", System.nanoTime() - beganNs);
            line.putAll(figures);
            line.put("in_flight", open);
            line.put("runtime", fitness.takeSecond());
            onLine.accept(line);
        };
    }

    private static Map<String, Object> end(Phase.Result measured, Fitness.Cpu cpuBefore, Fitness fitness) {
        Fitness.Cpu cpu = Fitness.Cpu.now();
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("type", "end");
        line.put("elapsed_ns", measured.elapsedNs());
        line.putAll(measured.tally().counts());
        line.put("latency", measured.tally().encoded());
        line.put("cpu_user_ns", cpu.userNs() - cpuBefore.userNs());
        line.put("cpu_system_ns", cpu.systemNs() - cpuBefore.systemNs());
        line.put("rss_bytes", Fitness.rssBytes());
        line.put("rss_peak_bytes", Fitness.rssPeakBytes());
        line.put("runtime", fitness.takePhase());
        line.put("errors", List.copyOf(measured.tally().errors()));
        if (measured.stopped() != null) {
            line.put("stopped", measured.stopped());
        }
        return line;
    }

    /** Wall and CPU ns per operation that does nothing: in a run of at least 100 ms, after shorter ones. */
    private long[] ownOverhead() throws InterruptedException {
        InFlight<T> nothing = new InFlight<>(nullOp);
        nothing.check = nullCheck;
        nothing.semaphore = semaphore;
        nothing.inFlight = inFlight == UNLIMITED ? 100 : inFlight;
        long ops = 10_000;
        for (long warmedNs = 0; ; ) {
            long cpuNs = Fitness.Cpu.now().totalNs();
            long elapsedNs = new Phase<>(nothing, (figures, open) -> {}).run(0, ops).elapsedNs();
            if (elapsedNs >= OVERHEAD_NS && warmedNs >= OVERHEAD_WARMUP_NS) {
                return new long[] {elapsedNs / ops, (Fitness.Cpu.now().totalNs() - cpuNs) / ops};
            }
            warmedNs += elapsedNs;
            ops = elapsedNs < OVERHEAD_NS ? ops * 2 : ops;
        }
    }
}
