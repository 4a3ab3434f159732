"""`benchmark` and `benchmark_async`: warm-up, measurement and the lines."""

import asyncio
import concurrent.futures
import platform
import time

from inflight.fitness import Fitness, cpu_times_ns, rss_bytes, rss_peak_bytes
from inflight.options import Options
from inflight.phase import CoroutinePhase, FuturePhase
from inflight.tally import Tally

OVERHEAD_NS = 100_000_000


def benchmark(next_op, **options):
    """Runs operations that are futures, writes the lines and returns the last one. Options: `inflight.options.Options`."""
    options = Options(**options)
    done = concurrent.futures.Future()
    done.set_result(None)
    null_op = options.null_op[0] if options.null_op else lambda _i: done
    report = Report(options, own_overhead(null_op, options))
    for name, first, last in report.phases():
        report.phase_began(name)
        report.phase_ended(FuturePhase(next_op, options, report.fitness, report.second).run(first, last))
    return report.end()


async def benchmark_async(next_op, **options):
    """The same for coroutines, on the running event loop."""
    options = Options(**options)

    async def nothing(_i):
        return None

    null_op = options.null_op[0] if options.null_op else nothing
    # The overhead is measured on an event loop of its own, before anything else runs on this one.
    overhead = await asyncio.get_running_loop().run_in_executor(None, own_overhead, null_op, options)
    report = Report(options, overhead)
    for name, first, last in report.phases():
        report.phase_began(name)
        report.phase_ended(await CoroutinePhase(next_op, options, report.fitness, report.second).run(first, last))
    return report.end()


def own_overhead(null_op, options):
    """(wall, CPU) ns per operation that does nothing: in a run of at least 100 ms, after shorter ones."""
    options = options.for_overhead()
    is_async = asyncio.iscoroutinefunction(null_op)
    ops, warmed_ns = 1000, 0
    while True:
        cpu_ns = sum(cpu_times_ns())
        phase = (CoroutinePhase if is_async else FuturePhase)(null_op, options)
        asyncio.run(phase.run(0, ops)) if is_async else phase.run(0, ops)
        cpu_ns = sum(cpu_times_ns()) - cpu_ns
        if phase.elapsed_ns >= OVERHEAD_NS and warmed_ns >= OVERHEAD_NS:
            return round(phase.elapsed_ns / ops), round(cpu_ns / ops)
        warmed_ns += phase.elapsed_ns
        if phase.elapsed_ns < OVERHEAD_NS:
            ops *= 2


class Report:
    """Turns what happens into lines."""

    def __init__(self, options, overhead):
        self.fitness = Fitness()
        self._options = options
        self._name = None
        self._measured = None
        self._stopped = None
        wall_ns, cpu_ns = overhead
        self._write(
            {
                "type": "start",
                "format": 1,
                "client": options.client,
                "runtime": {"name": "python", "version": platform.python_version()},
                "member": options.member,
                "plan": options.plan,
                "own_overhead_ns_per_op": wall_ns,
                "own_overhead_cpu_ns_per_op": cpu_ns,
            }
        )
        self._began_ns = time.perf_counter_ns()

    def phases(self):
        """Name, first operation and the one past the last, of each phase that is to run."""
        total, warmup = self._options.total_ops, self._options.warmup_ops
        if warmup > 0:
            yield "warmup", 0, warmup
        if not self._stopped:
            yield "measure", warmup, total

    def phase_began(self, name):
        self._name = name
        self.fitness.take("second")
        self.fitness.take("phase")
        self._cpu_ns = cpu_times_ns()

    def phase_ended(self, phase):
        self._stopped = phase.stopped
        if self._name == "measure":
            self._measured = phase

    def second(self, figures, in_flight):
        at_ns = time.perf_counter_ns() - self._began_ns
        runtime = self.fitness.take("second")
        self._write({"type": "second", "phase": self._name, "at_ns": at_ns, **figures, "in_flight": in_flight, "runtime": runtime})

    def end(self):
        user_ns, system_ns = (now - before for now, before in zip(cpu_times_ns(), self._cpu_ns))
        tally = self._measured.tally if self._measured else Tally()
        line = {
            "type": "end",
            "elapsed_ns": self._measured.elapsed_ns if self._measured else 0,
            **tally.counts(),
            "latency": tally.encoded(),
            "cpu_user_ns": user_ns if self._measured else 0,
            "cpu_system_ns": system_ns if self._measured else 0,
            "rss_bytes": rss_bytes(),
            "rss_peak_bytes": rss_peak_bytes(),
            "runtime": self.fitness.take("phase"),
            "errors": tally.errors(),
        }
        if self._stopped:
            line["stopped"] = self._stopped
        self.fitness.close()
        self._write({"type": "timeline", "operations": self._measured.timeline if self._measured else []})
        self._write(line)
        return line

    def _write(self, line):
        self._options.on_line(line)
