"""What all languages agree on: the files beside ../../check, which ../../expected.py and README.md stand for."""

import json
import pathlib
import unittest

from hdrh.histogram import HdrHistogram

from inflight import benchmark
from inflight.__main__ import operations
from inflight.fake import Fake
from inflight.plan import BadPlan, read_plan
from inflight.stores import NullStore
from inflight.workload import Workload

CLIENTS = pathlib.Path(__file__).resolve().parents[2]


def read(name):
    return json.loads((CLIENTS / name).read_text())


class Agreement(unittest.TestCase):
    def test_the_fake_gives_the_expected_histogram_bucket_by_bucket(self):
        expected = read("fake-histogram.json")
        total, warmup = expected["plan"]["total"], expected["plan"]["warmup"]
        fake = Fake(100, warmup, total)
        end = benchmark(fake.next_op, clock=fake.clock, total_ops=total, warmup_ops=warmup, on_line=lambda _line: None)
        self.assertEqual({name: end[name] for name in expected["counts"]}, expected["counts"])
        histogram = HdrHistogram.decode(end["latency"])
        self.assertEqual(histogram.get_total_count(), expected["counts"]["ops"])
        for lowest, count in expected["buckets"]:
            # The sum over all buckets is right, so that no other bucket holds anything.
            self.assertEqual(histogram.get_count_at_value(lowest), count, f"from {lowest} ns")

    def test_keys_values_and_kinds_are_those_of_every_language(self):
        expected = read("vectors.json")

        def workload(keys):
            plan = {"target": "null:", "op": "mix", "seed": expected["seed"], "value_bytes": 70, "keys": keys}
            return Workload(read_plan(json.dumps(plan)))

        uniform = workload({"pattern": "uniform", "count": 1000})
        zipf = workload({"pattern": "zipf", "count": 1000, "theta": 0.99})
        self.assertEqual([uniform.kind(i) for i in range(200)], expected["kinds"])
        self.assertEqual([uniform.key(i) for i in range(200)], expected["uniform_1000"])
        self.assertEqual([zipf.key(i) for i in range(200)], expected["zipf_1000_0.99"])
        many = workload({"pattern": "uniform", "count": 1_000_000})
        for name, value in expected["values"].items():
            self.assertEqual(many.value(int(name[1:])), value)

    def test_plans_are_read_or_refused_with_everything_that_is_wrong(self):
        plans = read("plans.json")
        for each in plans["good"]:
            self.assertEqual(read_plan(json.dumps(each["plan"])), each["as_run"])
        for each in plans["bad"]:
            with self.assertRaises(BadPlan) as caught:
                read_plan(each["plan"])
            self.assertEqual(str(caught.exception), each["message"])
        with self.assertRaisesRegex(BadPlan, '"variant" is for the Java runner only'):
            read_plan('{"target":"null:","variant":"semaphore"}')

    def test_a_wrong_value_or_length_is_counted_as_wrong_and_a_missing_one_as_a_miss(self):
        keys = {"pattern": "uniform", "count": 4}
        plan = read_plan(json.dumps({"target": "null:", "total": 400, "warmup": 0, "keys": keys, "value_bytes": 10}))
        workload = Workload(plan)
        store = NullStore(workload)
        store._copies.update(k0=workload.value(0) + "x", k1="x" * 10, k2=None)
        drawn = [0, 0, 0, 0]
        for i in range(400):
            drawn[workload.key(i)] += 1
        next_op, check = operations(plan, store, workload)
        end = benchmark(next_op, check=check, total_ops=400, warmup_ops=0, on_line=lambda _line: None)
        wrong = drawn[0] + drawn[1]
        self.assertEqual((end["hits"], end["misses"], end["wrong"]), (drawn[3], drawn[2], wrong))
        self.assertEqual((end["failed"], end["ok"]), (wrong, drawn[2] + drawn[3]))
        self.assertEqual([(each["cause"], each["count"]) for each in end["errors"]], [("wrong", wrong)])


if __name__ == "__main__":
    unittest.main()
