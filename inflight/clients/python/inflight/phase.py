"""One phase of a run, warm-up or measurement: the closed loop itself, for futures and for coroutines."""

import asyncio
import functools
import itertools
import threading
import time

from inflight.fitness import TIMER_NS, rss_bytes
from inflight.options import UNLIMITED
from inflight.outcome import FAILED, UNKNOWN, WRONG
from inflight.tally import Tally

#: How long operations in flight may still end by themselves after a stop.
GRACE_NS = 1_000_000_000
OVERDUE_NS = 100_000_000
#: How many operations of a phase are reported one by one.
TIMELINE_OPS = 200


class Phase:
    """What both kinds share: numbers, open operations, outcomes, and what happens every 10 ms."""

    def __init__(self, next_op, options, fitness=None, on_second=None):
        self.tally = Tally()
        self.stopped = None
        self.elapsed_ns = 0
        self._next_op = next_op
        self._options = options
        self._fitness = fitness
        self._on_second = on_second
        # Number → (start, what gives it up). Taking an operation out is atomic, and only who took it out counts it.
        self._open = {}
        self._cut_ns = None

    def _begin(self, first, last):
        self._numbers = iter(range(first, last))
        self._ended = itertools.count(1)
        self._last_ended = last - first
        self._first = first
        self.timeline = [[0, 0]] * min(TIMELINE_OPS, last - first)
        self._began_ns = self._options.clock()
        self._due_ns = time.perf_counter_ns() + TIMER_NS
        self._second_ns = self._due_ns - TIMER_NS + 1_000_000_000
        self._overdue_ns = self._due_ns

    def _next(self):
        return None if self.stopped else next(self._numbers, None)

    def _succeed(self, i, began_ns, value):
        try:
            outcome = self._options.check(value, i)
        except Exception as error:
            self._fail(i, began_ns, error)
            return
        if outcome == WRONG:
            self.tally.blame("wrong", f"operation {i} returned {excerpt(value)}")
        self._count(i, outcome, began_ns)

    def _fail(self, i, began_ns, error):
        self.tally.blame(type(error).__name__, str(error))
        self._count(i, UNKNOWN if self._options.is_unknown(error) else FAILED, began_ns)

    def _count(self, i, outcome, began_ns):
        now_ns = self._options.clock()
        if i - self._first < TIMELINE_OPS:
            self.timeline[i - self._first] = [began_ns - self._began_ns, now_ns - self._began_ns]
        self.tally.record(outcome, now_ns - began_ns)
        if next(self._ended) == self._last_ended:
            self._finish(now_ns)

    def _finish(self, now_ns):
        self.elapsed_ns = now_ns - self._began_ns
        self._finished.set()

    def stop(self, reason):
        if self.stopped is None:
            self.stopped = reason
            self._cut_ns = time.perf_counter_ns() + GRACE_NS

    def _stop_if_too_large(self):
        if rss_bytes() > self._options.memory_cap_bytes:
            self.stop("memory")

    def _timer(self):
        """Runs every 10 ms: delays, stops, timeouts, lines. Returns the seconds until it is due again."""
        now_ns = time.perf_counter_ns()
        if self._fitness:
            self._fitness.timer_ran(max(0, now_ns - self._due_ns))
        if self._options.stop.is_set():
            self.stop("signal")
        if now_ns >= self._overdue_ns:
            self._overdue_ns = now_ns + min(OVERDUE_NS, self._options.timeout_ms * 250_000)
            self._give_up(self._options.timeout_ms * 1_000_000, "timeout", f"no result within {self._options.timeout_ms} ms")
        if self._cut_ns and now_ns >= self._cut_ns:
            self._give_up(0, "stopped", "the run was stopped before the result came")
        # An operation that was about to start when the stop came has entered by then.
        settled = self._cut_ns and now_ns >= self._cut_ns - GRACE_NS + 2 * TIMER_NS
        if settled and not self._open and not self._finished.is_set():
            self._finish(self._options.clock())
        if now_ns >= self._second_ns:
            self._second_ns += 1_000_000_000
            self._report()
        self._due_ns = time.perf_counter_ns() + TIMER_NS
        return TIMER_NS / 1e9

    def _give_up(self, after_ns, why, text):
        now_ns = self._options.clock()
        for i, (began_ns, _) in list(self._open.items()):
            if now_ns - began_ns < after_ns:
                continue
            taken = self._open.pop(i, None)
            if taken:
                self.tally.blame(why, text)
                self._count(i, UNKNOWN, began_ns)
                self._replace(taken[1])

    def _report(self):
        figures = self.tally.take_interval()
        if self._on_second:
            self._on_second(figures, len(self._open))


class FuturePhase(Phase):
    """Operations are futures; whatever thread completes one starts the next."""

    def run(self, first, last):
        self._finished = threading.Event()
        self._begin(first, last)
        timer = threading.Thread(target=self._run_timer, name="inflight-timer", daemon=True)
        timer.start()
        if self._options.in_flight == UNLIMITED:
            self._start_all()
        else:
            for _ in range(int(min(self._options.in_flight, last - first))):
                self._lane()
        self._finished.wait()
        timer.join()
        self._report()
        return self

    def _run_timer(self):
        wait_s = TIMER_NS / 1e9
        while not self._finished.wait(wait_s):
            wait_s = self._timer()

    def _lane(self):
        """Starts one operation after the other, until one does not end at once. Who ends that one goes on."""
        while (i := self._next()) is not None:
            if not self._start(i):
                return

    def _start_all(self):
        """The benchmark without back-pressure."""
        while (i := self._next()) is not None:
            self._start(i)
            if i % 1000 == 0:
                self._stop_if_too_large()

    def _start(self, i):
        """Reports whether the operation has ended and this thread is the one that goes on."""
        began_ns = self._options.clock()
        # The starter and who ends the operation both take a turn, and the second one goes on with the next operation.
        turn = itertools.count()
        self._open[i] = (began_ns, turn)
        ended_here = False
        try:
            future = self._next_op(i)
            if future.done():
                ended_here = self._take(i, future)
            else:
                future.add_done_callback(functools.partial(self._completed, i, turn))
        except Exception as error:
            if self._open.pop(i, None):
                self._fail(i, began_ns, error)
                ended_here = True
        return ended_here or next(turn) == 1

    def _completed(self, i, turn, future):
        if self._take(i, future):
            self._replace(turn)

    def _take(self, i, future):
        taken = self._open.pop(i, None)
        if taken is None:
            return False
        try:
            value = future.result()
        except Exception as error:
            self._fail(i, taken[0], error)
        else:
            self._succeed(i, taken[0], value)
        return True

    def _replace(self, turn):
        if next(turn) == 1 and self._options.in_flight != UNLIMITED:
            self._lane()


class CoroutinePhase(Phase):
    """Operations are coroutines on one event loop; N tasks keep N of them in flight."""

    async def run(self, first, last):
        self._finished = asyncio.Event()
        self._begin(first, last)
        self._tasks = set()
        if self._options.in_flight == UNLIMITED:
            while (i := self._next()) is not None:
                self._spawn(self._one(i))
                if i % 1000 == 0:
                    self._stop_if_too_large()
        else:
            for _ in range(int(min(self._options.in_flight, last - first))):
                self._spawn(self._lane())
        timer = asyncio.create_task(self._run_timer())
        await self._finished.wait()
        timer.cancel()
        self._report()
        return self

    async def _run_timer(self):
        wait_s = TIMER_NS / 1e9
        while True:
            await asyncio.sleep(wait_s)
            wait_s = self._timer()

    def _spawn(self, coroutine):
        # The event loop itself keeps weak references only.
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _lane(self):
        while (i := self._next()) is not None:
            if not await self._one(i):
                return
            if i % 1000 == 0:
                # Operations that never suspend must not starve the timer.
                await asyncio.sleep(0)

    async def _one(self, i):
        """Reports whether the operation ended by itself; another task has taken over if not."""
        began_ns = self._options.clock()
        self._open[i] = (began_ns, asyncio.current_task())
        try:
            value = await self._next_op(i)
        except (Exception, asyncio.CancelledError) as error:
            if not self._open.pop(i, None):
                return False
            self._fail(i, began_ns, error)
        else:
            if not self._open.pop(i, None):
                return False
            self._succeed(i, began_ns, value)
        return True

    def _replace(self, task):
        task.cancel()
        if self._options.in_flight != UNLIMITED:
            self._spawn(self._lane())


def excerpt(value):
    return f"{len(value)} characters: {value[:80]!r}" if isinstance(value, str) else type(value).__name__
