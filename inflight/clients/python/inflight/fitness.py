"""How fit this runtime was while it measured: delay of a timer, pauses of the garbage collector, CPU and memory."""

import gc
import os
import resource
import time

TIMER_NS = 10_000_000


class Fitness:
    """Figures of the last second and of the phase. The timer is a thread's, or the event loop's with asyncio."""

    def __init__(self):
        self._spans = {"second": Span(), "phase": Span()}
        self._gc_began_ns = 0
        gc.callbacks.append(self._on_gc)

    def timer_ran(self, late_ns):
        """A timer of 10 ms ran this much later than it was due."""
        for span in self._spans.values():
            span.delays_ns.append(late_ns)

    def take(self, name):
        span, self._spans[name] = self._spans[name], Span()
        return span.figures()

    def close(self):
        gc.callbacks.remove(self._on_gc)

    def _on_gc(self, when, _info):
        now_ns = time.perf_counter_ns()
        if when == "start":
            self._gc_began_ns = now_ns
            return
        for span in self._spans.values():
            span.pauses_ns.append(now_ns - self._gc_began_ns)


class Span:
    def __init__(self):
        self.delays_ns = []
        self.pauses_ns = []

    def figures(self):
        delays_ns = sorted(self.delays_ns)
        figures = {}
        if delays_ns:
            figures["loop_delay_p99_ns"] = delays_ns[(len(delays_ns) * 99 - 1) // 100]
            figures["loop_delay_max_ns"] = delays_ns[-1]
        figures["gc_pause_ns"] = sum(self.pauses_ns)
        figures["gc_pause_max_ns"] = max(self.pauses_ns, default=0)
        figures["gc_count"] = len(self.pauses_ns)
        return figures


def cpu_times_ns():
    """User and system time of the process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return round(usage.ru_utime * 1e9), round(usage.ru_stime * 1e9)


def rss_bytes():
    """Resident memory; 0 where there is no /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def rss_peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
