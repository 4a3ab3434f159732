"""The plan: one JSON object that says what a runner does. Everything wrong with it is said at once."""

import json
import re

TARGETS = re.compile(
    r"hazelcasts?://[^/,]+:\d+(,[^/,]+:\d+)*/.+|rediss?://(\[[^\]]+\]|[^/:,]+):\d+(/\d+)?|null:|fake:"
)
KEYS_OF_PLAN = (
    "target op value_bytes total warmup in_flight keys seed cluster timeout_ms memory_cap_bytes ca insecure variant"
).split()
KEYS_OF_KEYS = ["pattern", "count", "theta"]


class BadPlan(Exception):
    """Names every mistake."""


def read_plan(text):
    """The plan with its defaults filled in, as a dict. Raises BadPlan."""
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise BadPlan('the plan is not a JSON object; give one, for example {"target":"null:"}')
    reader = Reader(given)
    reader.known("", given, KEYS_OF_PLAN)
    if "variant" in given:
        reader.mistakes.append('"variant" is for the Java runner only')
    target = given.get("target", ABSENT)
    if not isinstance(target, str) or not TARGETS.fullmatch(target):
        reader.refuse("target", "hazelcast://HOST:PORT/MAP, redis://HOST:PORT, over TLS hazelcasts:// and rediss://, null: or fake:", target)
    plan = {"target": target}
    plan["op"] = reader.word("op", given, ["get", "set", "mix"], "get, set or mix")
    plan["value_bytes"] = reader.whole("value_bytes", given, 1, 16_777_216, 3)
    plan["total"] = reader.whole("total", given, 1, 1_000_000_000, 1_000_000)
    plan["warmup"] = reader.whole("warmup", given, 0, plan["total"] - 1, plan["total"] // 10)
    if given.get("in_flight") == "unlimited":
        plan["in_flight"] = "unlimited"
    else:
        plan["in_flight"] = reader.whole("in_flight", given, 1, 100_000, 100, ' or "unlimited"')
    plan["keys"] = reader.keys()
    plan["seed"] = reader.whole("seed", given, 0, 4_294_967_295, 1)
    plan["cluster"] = given.get("cluster", "dev")
    if not isinstance(plan["cluster"], str) or plan["cluster"] == "":
        reader.refuse("cluster", "a name", plan["cluster"])
    plan["timeout_ms"] = reader.whole("timeout_ms", given, 1, 600_000, 10_000)
    plan["memory_cap_bytes"] = reader.whole("memory_cap_bytes", given, 1_048_576, 1_099_511_627_776, 536_870_912)
    if "ca" in given:
        plan["ca"] = given["ca"]
        if not isinstance(plan["ca"], str) or plan["ca"] == "":
            reader.refuse("ca", "the path of a PEM file", plan["ca"])
    insecure = given.get("insecure", False)
    if not isinstance(insecure, bool):
        reader.refuse("insecure", "true or false", insecure)
    if insecure is True:
        plan["insecure"] = True
    if reader.mistakes:
        raise BadPlan("; ".join(reader.mistakes))
    return plan


ABSENT = object()


class Reader:
    def __init__(self, given):
        self.given = given
        self.mistakes = []

    def refuse(self, name, must, value):
        compact = "but is missing" if value is ABSENT else "got " + json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        self.mistakes.append(f'"{name}" must be {must}, {compact}')

    def known(self, prefix, given, names):
        for name in given:
            if name not in names:
                known = ", ".join(prefix + each for each in names)
                self.mistakes.append(f'unknown key "{prefix}{name}"; known are {known}')

    def whole(self, name, given, least, most, fallback, or_else=""):
        value = given.get(name.removeprefix("keys."), ABSENT)
        if value is ABSENT:
            return fallback
        if is_number(value) and value == int(value) and least <= value <= most:
            return int(value)
        self.refuse(name, f"a whole number from {least} to {most}{or_else}", value)
        return fallback

    def word(self, name, given, words, must):
        value = given.get(name.removeprefix("keys."), words[0])
        if value in words:
            return value
        self.refuse(name, must, value)
        return words[0]

    def keys(self):
        given = self.given.get("keys", {})
        if not isinstance(given, dict):
            self.refuse("keys", 'an object such as {"pattern":"uniform","count":1000}', given)
            given = {}
        self.known("keys.", given, KEYS_OF_KEYS)
        keys = {"pattern": self.word("keys.pattern", given, ["one", "uniform", "zipf"], "one, uniform or zipf")}
        count = self.whole("keys.count", given, 1, 1_000_000, 1000)
        theta = given.get("theta", 0.99)
        if not is_number(theta) or not 0 <= theta <= 10:
            self.refuse("keys.theta", "a number from 0 to 10", theta)
        if keys["pattern"] != "one":
            keys["count"] = count
        if keys["pattern"] == "zipf":
            keys["theta"] = theta
        return keys


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) != float("inf")
