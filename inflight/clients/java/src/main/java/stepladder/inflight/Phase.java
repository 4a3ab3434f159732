package stepladder.inflight;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;

/** One phase of a run, warm-up or measurement: the closed loop itself. Used once. */
final class Phase<T> {
    /** How long operations in flight may still end by themselves after a stop. */
    private static final long GRACE_MS = 1000;

    /** How many operations of a phase are reported one by one. */
    private static final int TIMELINE_OPS = 200;

    private static final long OVERDUE_MS = 100;
    private static final long SIGNAL_MS = 10;
    /**
     * Callbacks run in whatever thread completes the stage. The default of CompletableFuture, a common pool, would be a
     * thread per callback on machines with two cores.
     */
    private static final Executor CALLER = Runnable::run;

    private final InFlight<T> options;
    private final BiConsumer<Map<String, Long>, Integer> onSecond;
    private final Tally tally = new Tally();
    private final Set<Operation> open = ConcurrentHashMap.newKeySet();
    private final AtomicLong next = new AtomicLong();
    private final AtomicLong ended = new AtomicLong();
    private final CountDownLatch finished = new CountDownLatch(1);
    private final Semaphore permits;
    private long from;
    private long to;
    private long beganNs;
    /** Each is written by whoever ends its operation, and read when all have ended. */
    private final long[][] timeline = new long[TIMELINE_OPS][];

    private volatile long endedNs;
    private volatile String stopped;
    private volatile long cutNs;

    record Result(Tally tally, long elapsedNs, List<long[]> timeline, String stopped) {}

    /** An operation that was started. It is true once its outcome has been counted. */
    private static final class Operation extends AtomicBoolean {
        private static final long serialVersionUID = 1;
        final long i;
        final long startedNs;
        /** The starter and who ends the operation both take a turn, and the second one goes on with the next operation. */
        final AtomicInteger turns = new AtomicInteger();

        Operation(long i, long startedNs) {
            this.i = i;
            this.startedNs = startedNs;
        }
    }

    Phase(InFlight<T> options, BiConsumer<Map<String, Long>, Integer> onSecond) {
        this.options = options;
        this.onSecond = onSecond;
        this.permits = options.semaphore ? new Semaphore(options.inFlight) : null;
    }

    /** Runs operations {@code from} to {@code to} − 1 and returns when each of them has ended. */
    Result run(long from, long to) throws InterruptedException {
        this.from = from;
        this.to = to;
        next.set(from);
        ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
            Thread thread = new Thread(task, "inflight-timer");
            thread.setDaemon(true);
            return thread;
        });
        long overdueMs = Math.max(1, Math.min(OVERDUE_MS, options.timeoutMs / 4));
        timer.scheduleAtFixedRate(this::report, 1, 1, TimeUnit.SECONDS);
        timer.scheduleAtFixedRate(this::endOverdue, overdueMs, overdueMs, TimeUnit.MILLISECONDS);
        timer.scheduleAtFixedRate(this::obeyStop, SIGNAL_MS, SIGNAL_MS, TimeUnit.MILLISECONDS);
        beganNs = options.clock.getAsLong();
        if (options.inFlight == InFlight.UNLIMITED) {
            startAll();
        } else if (permits != null) {
            startWithPermits();
        } else {
            long lanes = Math.min(options.inFlight, to - from);
            for (long lane = 0; lane < lanes; lane++) {
                lane();
            }
        }
        finished.await();
        timer.shutdown();
        timer.awaitTermination(1, TimeUnit.MINUTES);
        report();
        return new Result(tally, endedNs - beganNs, told(), stopped);
    }

    /** Starts one operation after the other, until one does not end at once. Who ends that one goes on. */
    private void lane() {
        for (long i = claim(); i >= 0; i = claim()) {
            if (!start(i)) {
                return;
            }
        }
    }

    /** The other way to bound what is in flight: one thread starts everything and waits for permits. */
    private void startWithPermits() throws InterruptedException {
        while (true) {
            permits.acquire();
            long i = claim();
            if (i < 0) {
                return;
            }
            start(i);
        }
    }

    /** The benchmark without back-pressure: a task for each operation, all of them queued at once. */
    private void startAll() {
        ExecutorService tasks = Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
        for (long i = claim(); i >= 0; i = claim()) {
            long number = i;
            tasks.execute(() -> start(number));
            if (i % 1000 == 0 && Fitness.rssBytes() > options.memoryCapBytes) {
                stop("memory");
            }
        }
        tasks.shutdown();
    }

    /** The number of the next operation, or −1 if none is to be started. */
    private long claim() {
        if (stopped != null) {
            return -1;
        }
        long i = next.getAndIncrement();
        return i < to ? i : -1;
    }

    /** Reports whether the operation has ended and this thread is the one that goes on. */
    private boolean start(long i) {
        Operation operation = new Operation(i, options.clock.getAsLong());
        open.add(operation);
        try {
            CompletionStage<? extends T> stage = options.nextOp.start(i);
            stage.whenCompleteAsync((value, error) -> completed(operation, value, error), CALLER);
        } catch (Throwable error) { // An Error too would otherwise end the timer, which may be this thread.
            if (operation.compareAndSet(false, true)) {
                fail(operation, error);
                passOn(operation);
            }
        }
        return operation.turns.incrementAndGet() == 2;
    }

    private void completed(Operation operation, T value, Throwable error) {
        if (!operation.compareAndSet(false, true)) {
            return;
        }
        if (error != null) {
            fail(operation, error);
        } else {
            try {
                Outcome outcome = options.check.judge(value, operation.i);
                if (outcome == Outcome.WRONG) {
                    tally.blame("wrong", "operation " + operation.i + " returned " + excerpt(value));
                }
                count(operation, outcome);
            } catch (RuntimeException | Error thrown) {
                fail(operation, thrown);
            }
        }
        passOn(operation);
    }

    private void fail(Operation operation, Throwable error) {
        Throwable cause = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
        tally.blame(cause.getClass().getSimpleName(), String.valueOf(cause.getMessage()));
        count(operation, options.isUnknown.test(cause) ? Outcome.UNKNOWN : Outcome.FAILED);
    }

    private void count(Operation operation, Outcome outcome) {
        long now = options.clock.getAsLong();
        int place = (int) Math.min(operation.i - from, TIMELINE_OPS);
        if (place < TIMELINE_OPS) {
            timeline[place] = new long[] {operation.startedNs - beganNs, now - beganNs};
        }
        tally.record(outcome, now - operation.startedNs);
        open.remove(operation);
        if (ended.incrementAndGet() == to - from) {
            finish(now);
        }
    }

    /** The first operations, as far as all before them have ended. */
    private List<long[]> told() {
        return Arrays.stream(timeline).takeWhile(Objects::nonNull).toList();
    }

    private void finish(long now) {
        endedNs = now;
        finished.countDown();
    }

    private void passOn(Operation operation) {
        if (permits != null) {
            permits.release();
        } else if (operation.turns.incrementAndGet() == 2 && options.inFlight != InFlight.UNLIMITED) {
            lane();
        }
    }

    private void giveUp(Operation operation, String why, String text) {
        if (operation.compareAndSet(false, true)) {
            tally.blame(why, text);
            count(operation, Outcome.UNKNOWN);
            passOn(operation);
        }
    }

    private void endOverdue() {
        long now = options.clock.getAsLong();
        for (Operation each : open) {
            if (now - each.startedNs >= options.timeoutMs * 1_000_000L) {
                giveUp(each, "timeout", "no result within " + options.timeoutMs + " ms");
            }
        }
    }

    private void stop(String reason) {
        if (stopped == null) {
            cutNs = System.nanoTime() + GRACE_MS * 1_000_000;
            stopped = reason;
        }
    }

    private void obeyStop() {
        if (options.stop.get()) {
            stop("signal");
        }
        if (stopped == null) {
            return;
        }
        if (System.nanoTime() - cutNs >= 0) {
            open.forEach(each -> giveUp(each, "stopped", "the run was stopped before the result came"));
        }
        // Every number that was claimed is that of an operation that was or will be started; a thread that was about to
        // claim one when the stop came has done so by then.
        boolean settled = System.nanoTime() - (cutNs - GRACE_MS * 1_000_000) >= 2 * SIGNAL_MS * 1_000_000;
        if (settled && finished.getCount() > 0 && ended.get() == Math.min(next.get(), to) - from) {
            finish(options.clock.getAsLong());
            if (permits != null) {
                permits.release();
            }
        }
    }

    private void report() {
        Map<String, Long> figures = tally.takeInterval();
        onSecond.accept(figures, open.size());
    }

    private static String excerpt(Object value) {
        if (value instanceof String text) {
            return text.length() + " characters: \"" + text.substring(0, Math.min(80, text.length())) + "\"";
        }
        return value == null ? "null" : value.getClass().getName();
    }
}
