package stepladder.inflight;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The loop itself, against planted operations. */
class InFlightTest {
    private final ExecutorService pool = Executors.newFixedThreadPool(30);
    private final List<Map<String, ?>> lines = new ArrayList<>();

    @AfterEach
    void stopPool() {
        pool.shutdownNow();
    }

    private InFlight.End run(InFlight<?> benchmark) throws InterruptedException {
        InFlight.End end = benchmark.onLine(lines::add).run();
        assertEquals("start", lines.get(0).get("type"));
        assertEquals(end.line(), lines.get(lines.size() - 1));
        return end;
    }

    private static List<Long> counts(InFlight.End end) {
        return List.of("ops", "ok", "failed", "unknown", "hits", "misses", "wrong").stream()
                .map(end::count)
                .toList();
    }

    private static Map<String, Long> errors(InFlight.End end) {
        Map<String, Long> errors = new TreeMap<>();
        for (Object each : (List<?>) end.line().get("errors")) {
            errors.put(((Tally.ErrorCount) each).cause, ((Tally.ErrorCount) each).count);
        }
        return errors;
    }

    private static CompletableFuture<Object> done() {
        return CompletableFuture.completedFuture(null);
    }

    /** Keeps the largest number that was under way at once. */
    private static final class Most {
        private int open;
        private int most;

        synchronized void enter() {
            most = Math.max(most, ++open);
        }

        synchronized void leave() {
            open--;
        }

        synchronized int most() {
            return most;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void noMoreThanInFlightOperationsRunAtOnceAndAsManyAsThatDo(boolean semaphore) throws InterruptedException {
        Most most = new Most();
        CountDownLatch together = new CountDownLatch(13);
        InFlight.End end = run(InFlight.of(i -> {
                    most.enter();
                    return CompletableFuture.runAsync(
                            () -> {
                                if (i < 13) {
                                    together.countDown();
                                    try {
                                        together.await();
                                    } catch (InterruptedException e) {
                                        throw new CompletionException(e);
                                    }
                                }
                                most.leave();
                            },
                            pool);
                })
                .totalOps(5000)
                .inFlight(13)
                .semaphore(semaphore));
        assertEquals(13, most.most());
        assertEquals(List.of(4500L, 4500L, 0L, 0L, 0L, 0L, 0L), counts(end));
    }

    /** Calls back twice, the second time with an error. */
    private static final class Twice extends CompletableFuture<Object> {
        @Override
        public CompletableFuture<Object> whenCompleteAsync(BiConsumer<? super Object, ? super Throwable> then, Executor in) {
            then.accept("once", null);
            then.accept(null, new IllegalStateException("twice"));
            return this;
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void everyOperationIsCountedOnceHoweverItEnds(boolean semaphore) throws InterruptedException {
        Map<Long, Integer> started = new ConcurrentHashMap<>();
        InFlight.End end = run(InFlight.of(i -> {
                    started.merge(i, 1, Integer::sum);
                    return switch ((int) (i % 6)) {
                        case 0 -> throw new IllegalArgumentException("thrown at once");
                        case 1 -> CompletableFuture.failedFuture(new CompletionException(new ArithmeticException("failed")));
                        case 2 -> CompletableFuture.failedFuture(new UnknownOutcome("who knows"));
                        case 3 -> new Twice();
                        case 4 -> done();
                        default -> CompletableFuture.supplyAsync(() -> "later", pool);
                    };
                })
                .totalOps(6000)
                .warmupOps(0)
                .inFlight(10)
                .semaphore(semaphore));
        assertEquals(6000, started.size());
        assertTrue(started.values().stream().allMatch(times -> times == 1));
        assertEquals(List.of(6000L, 3000L, 2000L, 1000L, 0L, 0L, 0L), counts(end));
        assertEquals(
                Map.of("IllegalArgumentException", 1000L, "ArithmeticException", 1000L, "UnknownOutcome", 1000L), errors(end));
    }

    @Test
    void operationsThatCompleteAtOnceDoNotFillTheStack() throws InterruptedException {
        InFlight.End end = run(InFlight.of(i -> done()).totalOps(1_000_000).warmupOps(0).inFlight(3));
        assertEquals(1_000_000, end.count("ok"));
    }

    @Test
    void theWarmUpIsRunFirstAndNotCounted() throws InterruptedException {
        List<Long> order = new ArrayList<>();
        InFlight.End end = run(InFlight.of(i -> {
                    order.add(i);
                    return i < 300 ? CompletableFuture.failedFuture(new ArithmeticException("in the warm-up")) : done();
                })
                .totalOps(1000)
                .warmupOps(300)
                .inFlight(5));
        assertEquals(java.util.stream.LongStream.range(0, 1000).boxed().toList(), order);
        assertEquals(List.of(700L, 700L, 0L, 0L, 0L, 0L, 0L), counts(end));
        assertEquals(Map.of(), errors(end));
        Map<Object, Long> sums = new TreeMap<>();
        lines.stream()
                .filter(line -> line.get("type").equals("second"))
                .forEach(line -> sums.merge(line.get("phase"), (Long) line.get("ops"), Long::sum));
        assertEquals(Map.of("warmup", 300L, "measure", 700L), sums);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anOperationThatHangsEndsAsUnknownAndItsLateResultIsNotCounted(boolean semaphore) throws InterruptedException {
        List<CompletableFuture<Object>> pending = Collections.synchronizedList(new ArrayList<>());
        InFlight.End end = run(InFlight.of(i -> {
                    pending.add(new CompletableFuture<>());
                    if (i < 7) {
                        return pending.get((int) i);
                    }
                    // The last one starts when the first four have been given up. It ends all others, those four too late.
                    pending.forEach(each -> each.complete(null));
                    return done();
                })
                .totalOps(8)
                .warmupOps(0)
                .inFlight(4)
                .timeoutMs(20)
                .semaphore(semaphore));
        assertEquals(List.of(8L, 4L, 0L, 4L, 0L, 0L, 0L), counts(end));
        assertEquals(Map.of("timeout", 4L), errors(end));
    }

    @Test
    void unlimitedStartsEverythingAtOnceAndStopsAtTheMemoryCap() throws InterruptedException {
        List<CompletableFuture<Object>> pending = Collections.synchronizedList(new ArrayList<>());
        InFlight.End end = run(InFlight.of(i -> {
                    CompletableFuture<Object> operation = new CompletableFuture<>();
                    pending.add(operation);
                    if (pending.size() == 3000) {
                        pending.forEach(each -> each.complete(null));
                    }
                    return operation;
                })
                .totalOps(3000)
                .warmupOps(0)
                .inFlight(InFlight.UNLIMITED)
                .memoryCapBytes(1L << 40));
        assertEquals(3000, end.count("ok"));
        assertFalse(end.line().containsKey("stopped"));
        lines.clear();
        InFlight.End capped = run(InFlight.of(i -> done())
                .totalOps(100_000)
                .warmupOps(0)
                .inFlight(InFlight.UNLIMITED)
                .memoryCapBytes(1));
        assertEquals("memory", capped.line().get("stopped"));
        assertTrue(capped.count("ops") < 100_000);
        assertEquals(capped.count("ops"), capped.count("ok"));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aStopEndsTheRunAndWhatHasNoResultByThenIsUnknown(boolean semaphore) throws InterruptedException {
        AtomicBoolean stop = new AtomicBoolean();
        InFlight.End end = run(InFlight.of(i -> {
                    if (i < 50) {
                        return done();
                    }
                    stop.set(true);
                    return new CompletableFuture<>();
                })
                .totalOps(1000)
                .warmupOps(0)
                .inFlight(1)
                .stop(stop)
                .semaphore(semaphore));
        assertEquals("signal", end.line().get("stopped"));
        assertEquals(List.of(51L, 50L, 0L, 1L, 0L, 0L, 0L), counts(end));
        assertEquals(Map.of("stopped", 1L), errors(end));
    }

    @Test
    void whatCannotBeRunIsRefused() {
        InFlight<Object> warmupOnly = InFlight.of(i -> done()).totalOps(10).warmupOps(10);
        String message = assertThrows(IllegalArgumentException.class, warmupOnly::run).getMessage();
        assertEquals("totalOps must be more than warmupOps (10), got 10", message);
        InFlight<Object> none = InFlight.of(i -> done()).inFlight(0);
        message = assertThrows(IllegalArgumentException.class, none::run).getMessage();
        assertEquals("inFlight must be 1 or more, or UNLIMITED, got 0", message);
    }
}
