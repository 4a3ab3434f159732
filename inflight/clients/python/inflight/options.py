"""Options of a benchmark, with their defaults."""

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from inflight.outcome import OK, UnknownOutcome

UNLIMITED = float("inf")


def print_line(line):
    sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")
    sys.stdout.flush()


@dataclasses.dataclass(kw_only=True)
class Options:
    """`next_op(i)` starts operation i (from 0, warm-up included); see README.md for the rest."""

    #: Operations in all, warm-up included.
    total_ops: int = 1_000_000
    #: Operations that are under way at once; `UNLIMITED`: all of them.
    in_flight: float = 100
    #: The first ones, which are not counted; None: a tenth of `total_ops`.
    warmup_ops: int | None = None
    #: An operation that takes longer ends as unknown.
    timeout_ms: int = 10_000
    #: Judges the result of operation i: `check(result, i)` returns an outcome.
    check: Callable[[Any, int], str] = lambda _result, _i: OK
    #: Whether an error leaves it open what became of the operation.
    is_unknown: Callable[[BaseException], bool] = lambda error: isinstance(error, UnknownOutcome)
    #: With `UNLIMITED`, the run stops when the process holds more memory.
    memory_cap_bytes: int = 512 * 1024 * 1024
    #: Set it to stop the run; what it has is still reported.
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)
    client: dict = dataclasses.field(default_factory=lambda: {"name": "custom", "version": ""})
    member: dict | None = None
    #: Goes into the line `start` as it is.
    plan: Any = None
    #: (next_op, check) that do nothing, at the price that the real ones have besides the client library.
    null_op: tuple[Callable, Callable] | None = None
    #: Receives the lines.
    on_line: Callable[[dict], None] = print_line
    #: For tests: a clock in nanoseconds.
    clock: Callable[[], int] = time.perf_counter_ns

    def __post_init__(self):
        if self.warmup_ops is None:
            self.warmup_ops = self.total_ops // 10
        if not 0 <= self.warmup_ops < self.total_ops:
            raise ValueError(f"warmup_ops must be from 0 to {self.total_ops - 1}, got {self.warmup_ops}")
        if self.in_flight < 1:
            raise ValueError(f"in_flight must be 1 or more, or UNLIMITED, got {self.in_flight}")
        if self.plan is None:
            in_flight = "unlimited" if self.in_flight == UNLIMITED else self.in_flight
            self.plan = {"total": self.total_ops, "warmup": self.warmup_ops, "in_flight": in_flight}

    def for_overhead(self):
        """The same for operations that do nothing."""
        in_flight = 100 if self.in_flight == UNLIMITED else self.in_flight
        check = self.null_op[1] if self.null_op else self.check
        return dataclasses.replace(self, check=check, in_flight=in_flight, clock=time.perf_counter_ns, stop=threading.Event())
