#!/usr/bin/env python3
"""Short runs of each runner against real servers: are hits, misses and wrong values what they must be?

    inflight/clients/real.py [LANGUAGE…]

It starts a Hazelcast member (inflight/clients/member) and a redis-server on free ports of the loopback interface, runs every
language that is set up, and stops both. A server that is not installed is NOT RUN. Run by inflight/clients/check --real.
"""

import json
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import expected

HERE = pathlib.Path(__file__).resolve().parent
OPS, WARMUP, KEYS, SEED = 100_000, 10_000, 1000, 1
COUNTS = ("ops", "ok", "failed", "unknown", "hits", "misses", "wrong")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def expected_counts(op):
    """Counts of the measured part if operations take effect in the order of their numbers."""
    measured = OPS - WARMUP
    counts = dict.fromkeys(COUNTS, 0) | {"ops": measured, "ok": measured}
    if op == "get":
        counts["hits"] = measured
    if op == "mix":
        there = set(range(KEYS))
        for i in range(OPS):
            kind, key = expected.kind(SEED, i), expected.uniform(SEED, i, KEYS)
            if kind == "get" and i >= WARMUP:
                counts["hits" if key in there else "misses"] += 1
            if kind == "set":
                there.add(key)
            if kind == "delete":
                there.discard(key)
    return counts


def run(language, plan):
    done = subprocess.run([HERE / "run", language, json.dumps(plan)], capture_output=True, text=True, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr


def mistakes_of(lines, code, op):
    end, wanted = lines[-1], expected_counts(op)
    if code != 0 or end["type"] != "end":
        return [f"exit code {code}, {end}"]
    # In flight at once, operations on one key may overtake each other: a few hits more or fewer, the sum is the same.
    slack = 100 if op == "mix" else 0
    found = [f"{name} {end[name]}, want {wanted[name]}" for name in COUNTS if abs(end[name] - wanted[name]) > slack]
    if end["hits"] + end["misses"] != wanted["hits"] + wanted["misses"]:
        found.append(f"{end['hits']} hits and {end['misses']} misses do not add up to the gets")
    seconds = sum(line["ops"] for line in lines if line["type"] == "second" and line["phase"] == "measure")
    if seconds != end["ops"]:
        found.append(f"the seconds add up to {seconds}")
    if not lines[0]["member"] or not lines[0]["client"]["version"]:
        found.append(f"versions are missing: {lines[0]['client']}, {lines[0]['member']}")
    return found


def check(language, target):
    good = True
    for op, keys in (("get", {"pattern": "one"}), ("set", {"pattern": "one"}), ("mix", {"pattern": "uniform", "count": KEYS})):
        plan = {"target": target, "op": op, "keys": keys, "total": OPS, "warmup": WARMUP, "seed": SEED, "value_bytes": 1024}
        code, lines, stderr = run(language, plan)
        found = mistakes_of(lines, code, op)
        good = good and not found
        end, about = lines[-1], lines[0].get("client", {})
        if found:
            print(f"{language} {op}: {'; '.join(found)}\n{stderr[-2000:]}", flush=True)
        else:
            cpu_us = (end["cpu_user_ns"] + end["cpu_system_ns"]) / end["ops"] / 1000
            rate = end["ops"] / end["elapsed_ns"] * 1e9
            print(f"{language} {op}: {about['name']} {about['version']}, {rate:,.0f} ops/s, {cpu_us:.1f} us CPU per operation", flush=True)
    return good


def refuses_nothing_there(language):
    """A server that is not there is exit code 3 and a message. Only Redis: Hazelcast's clients try for 10 s."""
    code, lines, _ = run(language, {"target": f"redis://127.0.0.1:{free_port()}", "total": 10})
    if code == 3 and lines[-1]["type"] == "error" and "cannot connect to redis://" in lines[-1]["message"]:
        return True
    print(f"{language}: no server, but exit code {code}, {lines[-1]}")
    return False


def main(languages):
    built = {"node": "node/dist/src/runner.js", "java": "java/inflight.jar", "go": "go/runner", "python": "python/installed"}
    target = HERE.parent.parent / "target" / "clients"
    languages = [each for each in languages or built if (target / built[each]).exists()]
    good = True
    port = str(free_port())
    if (target / "java" / "lib").exists() and shutil.which("java"):
        subprocess.run([HERE / "member", "start", port], check=True)
        try:
            good = all([check(each, f"hazelcast://127.0.0.1:{port}/real") for each in languages]) and good
        finally:
            subprocess.run([HERE / "member", "stop", port], check=True)
    else:
        print("!! NOT RUN: Hazelcast; its member comes with inflight/clients/setup java", file=sys.stderr)
    if shutil.which("redis-server"):
        port = str(free_port())
        options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        server = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", int(port))) == 0:
                        break
                time.sleep(0.1)
            good = all([check(each, f"redis://127.0.0.1:{port}") for each in languages]) and good
        finally:
            server.terminate()
            server.wait()
        good = all([refuses_nothing_there(each) for each in languages]) and good
    else:
        print("!! NOT RUN: Redis; install redis-server (Debian: apt-get install redis-server)", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
