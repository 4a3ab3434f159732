#!/usr/bin/env python3
"""What every runner must agree on, computed from README.md alone: no HDR library and no code of a runner is used here.

    inflight/clients/expected.py write           writes fake-histogram.json and vectors.json
    inflight/clients/expected.py check < LINES   reads a runner's lines for {"target":"fake:","total":200000,"warmup":20000} and
                                        compares its counts, every bucket of its histogram and its timeline; says what differs, exit 1
"""

import base64
import json
import pathlib
import struct
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
TOTAL, WARMUP = 200_000, 20_000
TIMELINE = 200
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


# The fake and its histogram.

def planted_latency_ns(i):
    return 1000 + (i * 7919 % 100_003) * 37


def planted_outcome(i):
    return "failed" if i % 1009 == 0 else "unknown" if i % 2003 == 0 else "ok"


def lowest_equivalent(value):
    """The lower end of value's bucket at 3 significant digits: 2048 buckets below 2048, then 1024 per doubling."""
    shift = max(0, value.bit_length() - 11)
    return value >> shift << shift


def expected_histogram():
    counts = {"ops": 0, "ok": 0, "failed": 0, "unknown": 0}
    buckets = {}
    for i in range(WARMUP, TOTAL):
        counts["ops"] += 1
        counts[planted_outcome(i)] += 1
        lowest = lowest_equivalent(planted_latency_ns(i))
        buckets[lowest] = buckets.get(lowest, 0) + 1
    return counts, sorted(buckets.items())


def decode(text):
    """Buckets of a histogram in the V2 format of HdrHistogram (deflated, base64)."""
    outer = base64.b64decode(text)
    cookie, length = struct.unpack(">ii", outer[:8])
    if cookie & ~0xF0 != 0x1C849304:
        raise ValueError(f"not a compressed V2 histogram: cookie {cookie:#x}")
    inner = zlib.decompress(outer[8 : 8 + length])
    cookie, length, offset, digits, lowest, highest, _ratio = struct.unpack(">iiiiqqd", inner[:40])
    if cookie & ~0xF0 != 0x1C849303:
        raise ValueError(f"not a V2 histogram: cookie {cookie:#x}")
    if (offset, digits, lowest, highest) != (0, 3, 1, 3_600_000_000_000):
        raise ValueError(f"offset {offset}, {digits} digits, range {lowest}..{highest}; want 0, 3, 1..3600000000000")
    index, buckets, at, end = 0, [], 40, 40 + length
    while at < end:
        value = shift = 0
        while True:
            byte = inner[at]
            at += 1
            # The ninth byte carries eight bits and no flag.
            value |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80 or shift == 63:
                break
        count = (value >> 1) ^ -(value & 1)
        if count < 0:
            index -= count
            continue
        if count > 0:
            doubling = max(0, (index >> 10) - 1)
            buckets.append(((index - (doubling << 10)) << doubling, count))
        index += 1
    return buckets


# Keys, values and the order of operations.

def draw(seed, n):
    h = (seed + n * 0x9E3779B9) & 0xFFFFFFFF
    h ^= h >> 16
    h = h * 0x85EBCA6B & 0xFFFFFFFF
    h ^= h >> 13
    h = h * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


def kind(seed, i):
    share = draw(seed, 2 * i)
    return "get" if share < 1717986918 else "set" if share < 3435973836 else "delete"


def uniform(seed, i, count):
    return draw(seed, 2 * i + 1) * count >> 32


def zipf_limits(count, theta):
    total, sums = 0.0, []
    for j in range(count):
        total += (j + 1) ** -theta
        sums.append(total)
    return [int(s / total * 2**32) for s in sums[:-1]] + [2**32]


def zipf(seed, i, limits):
    share = draw(seed, 2 * i + 1)
    return next(j for j, limit in enumerate(limits) if share < limit)


def value(key, length):
    start = zlib.crc32(key.encode())
    return "".join(ALPHABET[(i + start) % 62] for i in range(length))


def vectors():
    limits = zipf_limits(1000, 0.99)
    return {
        "seed": 7,
        "kinds": [kind(7, i) for i in range(200)],
        "uniform_1000": [uniform(7, i, 1000) for i in range(200)],
        "zipf_1000_0.99": [zipf(7, i, limits) for i in range(200)],
        "values": {key: value(key, 70) for key in ("k0", "k1", "k2", "k999", "k999999")},
    }


def write():
    counts, buckets = expected_histogram()
    pairs = [f"[{low},{count}]" for low, count in buckets]
    rows = ",\n".join(",".join(pairs[at : at + 12]) for at in range(0, len(pairs), 12))
    head = json.dumps({"plan": {"target": "fake:", "total": TOTAL, "warmup": WARMUP}, "counts": counts})
    (HERE / "fake-histogram.json").write_text(f'{head[:-1]}, "buckets": [\n{rows}\n]}}\n')
    text = json.dumps(vectors(), indent=1)
    (HERE / "vectors.json").write_text(text.replace(",\n  ", ", ").replace("[\n  ", "[").replace("\n ]", "]") + "\n")


def check():
    lines = list(map(json.loads, sys.stdin))
    ends = [line for line in lines if line["type"] == "end"]
    timelines = [line for line in lines if line["type"] == "timeline"]
    if (len(ends), len(timelines)) != (1, 1):
        sys.exit(f"{len(ends)} lines of type end and {len(timelines)} of type timeline; want 1 of each")
    counts, buckets = expected_histogram()
    mistakes = [f"{name} {ends[0][name]}, want {want}" for name, want in counts.items() if ends[0][name] != want]
    took = [end - start for start, end in timelines[0]["operations"]]
    planted = [planted_latency_ns(WARMUP + place) for place in range(TIMELINE)]
    if took != planted:
        place = next((at for at, pair in enumerate(zip(took, planted)) if pair[0] != pair[1]), min(len(took), TIMELINE))
        mistakes.append(f"the timeline has {len(took)} operations, want {TIMELINE}, and is wrong from operation {place} on")
    got, want = dict(decode(ends[0]["latency"])), dict(buckets)
    for low in sorted(got.keys() | want.keys()):
        if got.get(low) != want.get(low):
            mistakes.append(f"bucket from {low} ns holds {got.get(low, 0)}, want {want.get(low, 0)}")
    if mistakes:
        sys.exit("; ".join(mistakes[:10]) + (f"; and {len(mistakes) - 10} more" if len(mistakes) > 10 else ""))


if __name__ == "__main__":
    commands = {"write": write, "check": check}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__.strip())
    commands[sys.argv[1]]()
