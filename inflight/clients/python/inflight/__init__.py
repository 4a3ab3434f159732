"""The in-flight benchmark: N operations in flight, each one that ends starts the next, until the total is reached.

`benchmark` works for any client library whose operations return futures (with `done`, `result` and `add_done_callback`,
as those of `concurrent.futures` and of hazelcast-python-client), `benchmark_async` for coroutines. The output is described
in ../../README.md. Every operation that was started is counted exactly once, even when `next_op` raises, its future
calls back twice or it never completes.
"""

from inflight.benchmark import benchmark, benchmark_async
from inflight.outcome import UnknownOutcome

__all__ = ["UnknownOutcome", "benchmark", "benchmark_async"]
