"""The deterministic fake: operation i has a planted latency and outcome, in virtual time. It checks the harness itself."""

import heapq

from inflight.outcome import UnknownOutcome


def planted_latency_ns(i):
    return 1000 + (i * 7919 % 100_003) * 37


class Fake:
    """Its `next_op` and `clock` are for a benchmark of this size.

    When as many operations wait as can be in flight, they end inside the last one's `add_done_callback`: whichever is due
    first ends first and sets the clock, and what its callback starts waits in turn. One thread does it all.
    """

    def __init__(self, in_flight, warmup, total):
        self._in_flight, self._warmup, self._total = in_flight, warmup, total
        self._now_ns = 0
        self._pending = []
        self._ending = False

    def clock(self):
        return self._now_ns

    def next_op(self, i):
        return PlannedFuture(self, i, self._now_ns + planted_latency_ns(i))

    def wait(self, future):
        heapq.heappush(self._pending, (future.ends_ns, future.i, future))
        phase_size = self._warmup if future.i < self._warmup else self._total - self._warmup
        if self._ending or len(self._pending) < min(self._in_flight, phase_size):
            return
        self._ending = True
        while self._pending:
            self._now_ns, _, first = heapq.heappop(self._pending)
            first.end()
        self._ending = False


class PlannedFuture:
    def __init__(self, fake, i, ends_ns):
        self._fake = fake
        self.i = i
        self.ends_ns = ends_ns

    def done(self):
        return False

    def add_done_callback(self, callback):
        self._callback = callback
        self._fake.wait(self)

    def end(self):
        self._callback(self)

    def result(self):
        if self.i % 1009 == 0:
            raise RuntimeError(f"operation {self.i} fails as planted")
        if self.i % 2003 == 0:
            raise UnknownOutcome(f"operation {self.i} is unknown as planted")
