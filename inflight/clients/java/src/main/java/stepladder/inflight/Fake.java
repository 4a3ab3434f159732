package stepladder.inflight;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;

/**
 * The deterministic fake: operation i has a planted latency and outcome, in virtual time. It checks the harness itself.
 *
 * <p>When as many operations wait as can be in flight, they end inside the last one's {@code whenCompleteAsync}:
 * whichever is due first ends first and sets the clock, and what its callback starts waits in turn. One thread does it all.
 */
final class Fake {
    private final long inFlight;
    private final long warmup;
    private final long total;
    private final PriorityQueue<Planted> pending =
            new PriorityQueue<>(Comparator.<Planted>comparingLong(each -> each.endsNs).thenComparingLong(each -> each.i));
    private long nowNs;
    private boolean ending;

    Fake(long inFlight, long warmup, long total) {
        this.inFlight = inFlight;
        this.warmup = warmup;
        this.total = total;
    }

    static long plantedLatencyNs(long i) {
        return 1000 + i * 7919 % 100_003 * 37;
    }

    long clock() {
        return nowNs;
    }

    CompletableFuture<Void> start(long i) {
        return new Planted(i, nowNs + plantedLatencyNs(i));
    }

    private void await(Planted operation) {
        pending.add(operation);
        long phaseSize = operation.i < warmup ? warmup : total - warmup;
        if (ending || pending.size() < Math.min(inFlight, phaseSize)) {
            return;
        }
        ending = true;
        while (!pending.isEmpty()) {
            Planted first = pending.remove();
            nowNs = first.endsNs;
            first.end();
        }
        ending = false;
    }

    private final class Planted extends CompletableFuture<Void> {
        final long i;
        final long endsNs;

        Planted(long i, long endsNs) {
            this.i = i;
            this.endsNs = endsNs;
        }

        @Override
        public CompletableFuture<Void> whenCompleteAsync(BiConsumer<? super Void, ? super Throwable> then, Executor in) {
            CompletableFuture<Void> dependent = super.whenCompleteAsync(then, in);
            await(this);
            return dependent;
        }

        void end() {
            if (i % 1009 == 0) {
                completeExceptionally(new IllegalStateException("operation " + i + " fails as planted"));
            } else if (i % 2003 == 0) {
                completeExceptionally(new UnknownOutcome("operation " + i + " is unknown as planted"));
            } else {
                complete(null);
            }
        }

        @Override
        public <U> CompletableFuture<U> newIncompleteFuture() {
            return new CompletableFuture<>();
        }
    }
}
