"""The loop itself, against planted operations. Run by inflight/clients/check."""

import asyncio
import threading
import unittest
from concurrent.futures import Future, ThreadPoolExecutor

from inflight import UnknownOutcome, benchmark, benchmark_async
from inflight.options import UNLIMITED

NAMES = ["ops", "ok", "failed", "unknown", "hits", "misses", "wrong"]


def done(value=None):
    future = Future()
    future.set_result(value)
    return future


def broken(error):
    future = Future()
    future.set_exception(error)
    return future


def run(next_op, **options):
    """Runs without printing, and returns the last line and those of the seconds."""
    lines = []
    end = benchmark(next_op, on_line=lines.append, **options)
    return check_lines(lines, end)


def run_async(next_op, **options):
    lines = []
    end = asyncio.run(benchmark_async(next_op, on_line=lines.append, **options))
    return check_lines(lines, end)


def check_lines(lines, end):
    assert lines[0]["type"] == "start" and lines[-1] is end
    return end, [line for line in lines if line["type"] == "second"]


def counts(end):
    return [end[name] for name in NAMES]


def errors(end):
    return {each["cause"]: each["count"] for each in end["errors"]}


class Twice:
    """A future that calls back twice, in the second case with the other kind of result."""

    def done(self):
        return False

    def add_done_callback(self, callback):
        callback(self)
        callback(self)

    def result(self):
        return None


class Most:
    """Keeps the largest number that was under way at once."""

    def __init__(self):
        self._lock = threading.Lock()
        self._open = self.most = 0

    def __enter__(self):
        with self._lock:
            self._open += 1
            self.most = max(self.most, self._open)

    def __exit__(self, *_):
        with self._lock:
            self._open -= 1


class Futures(unittest.TestCase):
    def test_no_more_than_in_flight_operations_run_at_once_and_as_many_as_that_do(self):
        most = Most()
        together = threading.Barrier(13)

        def operation(i):
            with most:
                if i < 13:
                    together.wait()

        with ThreadPoolExecutor(30) as pool:
            end, _ = run(lambda i: pool.submit(operation, i), total_ops=3000, in_flight=13)
        self.assertEqual(most.most, 13)
        self.assertEqual(counts(end), [2700, 2700, 0, 0, 0, 0, 0])

    def test_every_operation_is_counted_once_however_it_ends(self):
        started = []

        def next_op(i):
            started.append(i)
            if i % 6 == 0:
                raise TypeError("raised at once")
            if i % 6 == 1:
                return broken(ValueError("rejected"))
            if i % 6 == 2:
                return broken(UnknownOutcome("who knows"))
            if i % 6 == 3:
                return Twice()
            return done() if i % 6 == 4 else pool.submit(int)

        with ThreadPoolExecutor(4) as pool:
            end, _ = run(next_op, total_ops=3000, warmup_ops=0, in_flight=10)
        self.assertEqual(sorted(started), list(range(3000)))
        self.assertEqual(counts(end), [3000, 1500, 1000, 500, 0, 0, 0])
        self.assertEqual(errors(end), {"TypeError": 500, "ValueError": 500, "UnknownOutcome": 500})

    def test_the_warm_up_is_run_first_and_not_counted(self):
        order = []

        def next_op(i):
            order.append(i)
            return done() if i >= 300 else broken(ValueError("fails in the warm-up"))

        end, seconds = run(next_op, total_ops=1000, warmup_ops=300, in_flight=5)
        self.assertEqual(order, list(range(1000)))
        self.assertEqual(counts(end), [700, 700, 0, 0, 0, 0, 0])
        self.assertEqual(end["errors"], [])
        sums = {phase: sum(each["ops"] for each in seconds if each["phase"] == phase) for phase in ("warmup", "measure")}
        self.assertEqual(sums, {"warmup": 300, "measure": 700})

    def test_an_operation_that_hangs_ends_as_unknown_and_its_late_result_is_not_counted(self):
        pending = []

        def next_op(i):
            pending.append(Future())
            if i < 7:
                return pending[i]
            # The last one starts when the first four have been given up. It ends all others, those four too late.
            for each in pending[:7]:
                each.set_result(None)
            return done()

        end, _ = run(next_op, total_ops=8, warmup_ops=0, in_flight=4, timeout_ms=20)
        self.assertEqual(counts(end), [8, 4, 0, 4, 0, 0, 0])
        self.assertEqual(end["errors"], [{"cause": "timeout", "count": 4, "first": "no result within 20 ms"}])

    def test_unlimited_starts_everything_at_once_and_stops_at_the_memory_cap(self):
        futures = []

        def next_op(_i):
            futures.append(Future())
            if len(futures) == 3000:
                for each in futures[:-1]:
                    each.set_result(None)
                futures[-1].set_result(None)
            return futures[-1]

        end, _ = run(next_op, total_ops=3000, warmup_ops=0, in_flight=UNLIMITED, memory_cap_bytes=1 << 40)
        self.assertEqual(counts(end), [3000, 3000, 0, 0, 0, 0, 0])
        self.assertNotIn("stopped", end)
        end, _ = run(lambda _i: done(), total_ops=100_000, warmup_ops=0, in_flight=UNLIMITED, memory_cap_bytes=1)
        self.assertEqual(end["stopped"], "memory")
        self.assertLess(end["ops"], 100_000)

    def test_a_stop_ends_the_run_and_what_has_no_result_by_then_is_unknown(self):
        stop = threading.Event()

        def next_op(i):
            if i < 50:
                return done()
            stop.set()
            return Future()

        end, _ = run(next_op, total_ops=1000, warmup_ops=0, in_flight=1, stop=stop)
        self.assertEqual(end["stopped"], "signal")
        self.assertEqual(counts(end), [51, 50, 0, 1, 0, 0, 0])
        self.assertEqual(errors(end), {"stopped": 1})

    def test_what_cannot_be_run_is_refused(self):
        with self.assertRaisesRegex(ValueError, "warmup_ops must be from 0 to 9, got 10"):
            benchmark(lambda _i: done(), total_ops=10, warmup_ops=10)
        with self.assertRaisesRegex(ValueError, "in_flight must be 1 or more, or UNLIMITED, got 0"):
            benchmark(lambda _i: done(), total_ops=10, in_flight=0)


class Coroutines(unittest.TestCase):
    def test_no_more_than_in_flight_operations_run_at_once_and_as_many_as_that_do(self):
        most = Most()

        async def next_op(i):
            with most:
                for _ in range(i % 7 + 1):
                    await asyncio.sleep(0)

        end, _ = run_async(next_op, total_ops=3000, in_flight=13)
        self.assertEqual(most.most, 13)
        self.assertEqual(counts(end), [2700, 2700, 0, 0, 0, 0, 0])

    def test_every_operation_is_counted_once_however_it_ends(self):
        started = []

        async def next_op(i):
            started.append(i)
            if i % 4 == 0:
                raise TypeError("raised at once")
            if i % 4 == 1:
                await asyncio.sleep(0)
                raise UnknownOutcome("who knows")
            if i % 4 == 2:
                await asyncio.sleep(0)

        end, _ = run_async(next_op, total_ops=3000, warmup_ops=1000, in_flight=10)
        self.assertEqual(sorted(started), list(range(3000)))
        self.assertEqual(counts(end), [2000, 1000, 500, 500, 0, 0, 0])
        self.assertEqual(errors(end), {"TypeError": 500, "UnknownOutcome": 500})

    def test_an_operation_that_hangs_ends_as_unknown_and_so_does_one_that_is_stopped(self):
        stop = threading.Event()

        async def next_op(i):
            if i == 20:
                stop.set()
            if i < 4 or i == 20:
                await asyncio.Future()

        end, _ = run_async(next_op, total_ops=1000, warmup_ops=0, in_flight=1, timeout_ms=20, stop=stop)
        self.assertEqual(counts(end), [21, 16, 0, 5, 0, 0, 0])
        self.assertEqual(end["stopped"], "signal")


if __name__ == "__main__":
    unittest.main()
