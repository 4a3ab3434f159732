"""What a phase counted: outcomes, latencies and the causes of errors. Every operation enters exactly once."""

import threading

from hdrh.histogram import HdrHistogram

from inflight.outcome import FAILED, HIT, MISS, OK, UNKNOWN, WRONG

HIGHEST_LATENCY_NS = 3_600_000_000_000
CAUSES_KEPT = 20
FIRST_CHARACTERS = 300


def new_histogram():
    return HdrHistogram(1, HIGHEST_LATENCY_NS, 3)


class Tally:
    def __init__(self):
        self._lock = threading.Lock()
        self._outcomes = dict.fromkeys((OK, HIT, MISS, WRONG, FAILED, UNKNOWN), 0)  # under _lock
        # Lower end of a histogram's bucket → count. HdrHistogram.record_value alone takes 3.3 us in Python, `record` 1.6.
        self._buckets = {}  # under _lock
        self._last = self.counts()
        self._latency = new_histogram()
        self._causes = {}  # under _lock

    def record(self, outcome, latency_ns):
        shift = latency_ns.bit_length() - 11
        bucket = latency_ns >> shift << shift if shift > 0 else latency_ns
        with self._lock:
            self._outcomes[outcome] += 1
            self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def blame(self, cause, text):
        with self._lock:
            if cause not in self._causes and len(self._causes) >= CAUSES_KEPT:
                cause = "other"
            known = self._causes.setdefault(cause, {"cause": cause, "count": 0, "first": text[:FIRST_CHARACTERS]})
            known["count"] += 1

    def counts(self):
        o = self._outcomes
        return {
            "ops": sum(o.values()),
            "ok": o[OK] + o[HIT] + o[MISS],
            "failed": o[FAILED] + o[WRONG],
            "unknown": o[UNKNOWN],
            "hits": o[HIT],
            "misses": o[MISS],
            "wrong": o[WRONG],
        }

    def take_interval(self):
        """Counts and quantiles since the call before."""
        with self._lock:
            counts, buckets, self._buckets = self.counts(), self._buckets, {}
        since = {name: count - self._last[name] for name, count in counts.items()}
        self._last = counts
        interval = new_histogram()
        for bucket, count in buckets.items():
            interval.record_value(min(max(bucket, 1), HIGHEST_LATENCY_NS), count)
        self._latency.add(interval)
        quantile = interval.get_value_at_percentile if buckets else lambda _: 0
        return {**since, "p50_ns": quantile(50), "p99_ns": quantile(99), "max_ns": quantile(100)}

    def encoded(self):
        """The histogram of the whole phase in HdrHistogram's V2 format, deflated, base64."""
        return self._latency.encode().decode()

    def errors(self):
        return sorted(self._causes.values(), key=lambda each: -each["count"])
