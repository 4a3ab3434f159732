"""The runner: one plan in, lines of JSON out. Exit codes: 0, 2 bad plan, 3 cannot connect, 130 and 143 stopped."""

import asyncio
import inspect
import os
import signal
import sys
import threading
import time

from inflight.benchmark import benchmark, benchmark_async
from inflight.fake import Fake
from inflight.options import UNLIMITED, print_line
from inflight.outcome import HIT, MISS, OK, WRONG
from inflight.plan import BadPlan, read_plan
from inflight.stores import HazelcastStore, NullStore, RedisStore
from inflight.workload import Workload

#: How many values are put at once before the run.
PRELOAD_IN_FLIGHT = 100
SAME_SIGNAL_NS = 100_000_000


def operations(plan, store, workload):
    """What operation i does with a store, and how its result is judged."""
    names, kind, key = workload.names, workload.kind, workload.key
    get, put, delete = store.get, store.set, store.delete
    unrounded = plan["in_flight"] == "unlimited"

    def next_op(i):
        number = 0 if unrounded else key(i)
        name = workload.unrounded_key(i) if unrounded else names[number]
        what = kind(i)
        if what == "get":
            return get(name)
        return put(name, workload.value(number)) if what == "set" else delete(name)

    def check(value, i):
        if kind(i) != "get":
            return OK
        if value is None:
            return MISS
        return HIT if value == workload.value(0 if unrounded else key(i)) else WRONG

    return next_op, check


def keys_to_preload(plan, workload):
    return [] if plan["op"] == "set" or plan["in_flight"] == "unlimited" else range(len(workload.names))


def preload(plan, store, workload):
    """Puts every value that a get can hit."""
    keys = keys_to_preload(plan, workload)
    for first in range(0, len(keys), PRELOAD_IN_FLIGHT):
        puts = [store.set(workload.names[key], workload.value(key)) for key in keys[first : first + PRELOAD_IN_FLIGHT]]
        for put in puts:
            put.result()


async def preload_async(plan, store, workload):
    keys = keys_to_preload(plan, workload)
    for first in range(0, len(keys), PRELOAD_IN_FLIGHT):
        chunk = keys[first : first + PRELOAD_IN_FLIGHT]
        await asyncio.gather(*(store.set(workload.names[key], workload.value(key)) for key in chunk))


def say(message, code):
    print_line({"type": "error", "message": message})
    return code


class CannotBegin(Exception):
    """Connecting or preloading failed."""


def run(plan):
    stop = threading.Event()
    code = stopped_ns = 0

    def on_signal(number, _frame):
        nonlocal code, stopped_ns
        # A second signal ends the process, unless it is the first one again: some wrappers pass it on twice.
        if code and time.perf_counter_ns() - stopped_ns > SAME_SIGNAL_NS:
            os._exit(128 + number)
        if code:
            return
        stopped_ns = time.perf_counter_ns()
        code = 128 + number
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    workload = Workload(plan)
    options = {
        "total_ops": plan["total"],
        "warmup_ops": plan["warmup"],
        "in_flight": UNLIMITED if plan["in_flight"] == "unlimited" else plan["in_flight"],
        "timeout_ms": plan["timeout_ms"],
        "memory_cap_bytes": plan["memory_cap_bytes"],
        "stop": stop,
        "plan": plan,
        "null_op": operations(plan, NullStore(workload), workload),
    }
    try:
        if plan["target"] == "fake:":
            fake = Fake(options["in_flight"], plan["warmup"], plan["total"])
            benchmark(fake.next_op, **{**options, "null_op": None}, clock=fake.clock, client={"name": "fake", "version": "1"})
        elif plan["target"].startswith(("redis:", "rediss:")):
            asyncio.run(run_redis(plan, options, workload))
        else:
            run_futures(plan, options, workload)
    except CannotBegin as error:
        return say(str(error), 3)
    return code


def run_futures(plan, options, workload):
    store = None
    try:
        store = NullStore(workload) if plan["target"] == "null:" else HazelcastStore(plan)
        preload(plan, store, workload)
    except Exception as error:
        raise CannotBegin(cannot(plan, store, error)) from error
    next_op, check = operations(plan, store, workload)
    about = {"client": store.client, "member": store.member, "is_unknown": store.is_unknown}
    benchmark(next_op, check=check, **about, **options)
    store.close()


async def run_redis(plan, options, workload):
    store = None
    try:
        store = await RedisStore.connect(plan)
        await preload_async(plan, store, workload)
    except Exception as error:
        raise CannotBegin(cannot(plan, store, error)) from error
    null_next_op, null_check = options["null_op"]

    async def null_op(i):
        return null_next_op(i).result()

    next_op, check = operations(plan, store, workload)
    about = {"client": store.client, "member": store.member, "is_unknown": store.is_unknown}
    await benchmark_async(next_op, check=check, **about, **{**options, "null_op": (null_op, null_check)})
    closing = store.close()
    if inspect.isawaitable(closing):
        await closing


def cannot(plan, store, error):
    cluster = f" (cluster {plan['cluster']})" if plan["target"].startswith("hazelcast") else ""
    return f"cannot {'put the first values into' if store else 'connect to'} {plan['target']}{cluster}: {error}"


def main():
    try:
        plan = read_plan(sys.argv[1] if len(sys.argv) == 2 else "")
    except BadPlan as error:
        return say(str(error), 2)
    return run(plan)


if __name__ == "__main__":
    sys.exit(main())
