package stepladder.inflight;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;
import sun.misc.Signal;

/** The runner: one plan in, lines of JSON out. Exit codes: 0, 2 bad plan, 3 cannot connect, 130 and 143 stopped. */
public final class Runner {
    /** How many values are put at once before the run. */
    private static final int PRELOAD_IN_FLIGHT = 100;

    private static final long SAME_SIGNAL_NS = 100_000_000;

    private static volatile int code;
    private static volatile long stoppedNs;

    private Runner() {}

    public static void main(String[] arguments) throws InterruptedException {
        Logger.getLogger("").setLevel(Level.WARNING);
        Plan plan;
        try {
            plan = Plan.read(arguments.length == 1 ? arguments[0] : "");
        } catch (Plan.BadPlan e) {
            System.exit(say(e.getMessage(), 2));
            return;
        }
        // Threads of client libraries must not keep the process.
        System.exit(run(plan));
    }

    private static int say(String message, int exitCode) {
        Map<String, String> line = new LinkedHashMap<>();
        line.put("type", "error");
        line.put("message", message);
        InFlight.printLine(line);
        return exitCode;
    }

    private static int run(Plan plan) throws InterruptedException {
        AtomicBoolean stop = new AtomicBoolean();
        for (String name : List.of("INT", "TERM")) {
            Signal.handle(new Signal(name), signal -> {
                // A second signal ends the process, unless it is the first one again: some wrappers pass it on twice.
                if (code != 0 && System.nanoTime() - stoppedNs > SAME_SIGNAL_NS) {
                    Runtime.getRuntime().halt(128 + signal.getNumber());
                }
                if (code != 0) {
                    return;
                }
                stoppedNs = System.nanoTime();
                code = 128 + signal.getNumber();
                stop.set(true);
            });
        }
        Workload workload = new Workload(plan);
        if (plan.target().equals("fake:")) {
            Fake fake = new Fake(plan.inFlight(), plan.warmup(), plan.total());
            sized(InFlight.of(fake::start), plan, stop)
                    .clock(fake::clock)
                    .client(new InFlight.Client("fake", "1"))
                    .run();
            return code;
        }
        Store store = null;
        try {
            store = plan.target().equals("null:") ? new Store.Null(workload) : Store.connect(plan);
            preload(plan, store, workload);
        } catch (Exception e) {
            String what = store == null ? "connect to " : "put the first values into ";
            String cluster = plan.target().startsWith("hazelcast") ? " (cluster " + plan.cluster() + ")" : "";
            return say("cannot " + what + plan.target() + cluster + ": " + e.getMessage(), 3);
        }
        try (Store connected = store) {
            Operations nothing = new Operations(plan, new Store.Null(workload), workload);
            Operations operations = new Operations(plan, connected, workload);
            sized(InFlight.<Object>of(operations), plan, stop)
                    .check(operations)
                    .isUnknown(connected::isUnknown)
                    .nullOp(nothing, nothing)
                    .client(connected.client())
                    .member(connected.member())
                    .run();
        }
        return code;
    }

    private static <T> InFlight<T> sized(InFlight<T> benchmark, Plan plan, AtomicBoolean stop) {
        return benchmark
                .totalOps(plan.total())
                .warmupOps(plan.warmup())
                .inFlight(plan.inFlight())
                .timeoutMs(plan.timeoutMs())
                .memoryCapBytes(plan.memoryCapBytes())
                .semaphore(plan.variant().equals("semaphore"))
                .stop(stop)
                .plan(plan.asRun());
    }

    /** What operation i does with a store, and how its result is judged. */
    static final class Operations implements InFlight.NextOp<Object>, InFlight.Check<Object> {
        private final Store store;
        private final Workload workload;
        private final boolean unrounded;

        Operations(Plan plan, Store store, Workload workload) {
            this.store = store;
            this.workload = workload;
            this.unrounded = plan.unlimited();
        }

        @Override
        public CompletionStage<?> start(long i) {
            int key = unrounded ? 0 : workload.key(i);
            String name = unrounded ? workload.unroundedKey(i) : workload.name(key);
            return switch (workload.kind(i)) {
                case GET -> store.get(name);
                case SET -> store.set(name, workload.value(key));
                case DELETE -> store.delete(name);
            };
        }

        @Override
        public Outcome judge(Object value, long i) {
            if (workload.kind(i) != Workload.Kind.GET) {
                return Outcome.OK;
            }
            if (value == null) {
                return Outcome.MISS;
            }
            return value.equals(workload.value(unrounded ? 0 : workload.key(i))) ? Outcome.HIT : Outcome.WRONG;
        }
    }

    /** Puts every value that a get can hit. */
    private static void preload(Plan plan, Store store, Workload workload) throws Exception {
        if (plan.op().equals("set") || plan.unlimited()) {
            return;
        }
        for (int first = 0; first < workload.keyCount(); first += PRELOAD_IN_FLIGHT) {
            List<CompletableFuture<?>> puts = new ArrayList<>();
            for (int key = first; key < Math.min(first + PRELOAD_IN_FLIGHT, workload.keyCount()); key++) {
                puts.add(store.set(workload.name(key), workload.value(key)).toCompletableFuture());
            }
            for (CompletableFuture<?> put : puts) {
                put.get(plan.timeoutMs(), TimeUnit.MILLISECONDS);
            }
        }
    }
}
