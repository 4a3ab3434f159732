"""Which key, value and kind operation i has: pure functions of the plan and i, the same in every language (README.md)."""

import bisect
import zlib

ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def draw(seed, n):
    """The n-th random number of a seed: counted, so that it does not depend on who draws when."""
    h = (seed + n * 0x9E3779B9) & 0xFFFFFFFF
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return h ^ h >> 16


class Workload:
    def __init__(self, plan):
        op, keys, seed = plan["op"], plan["keys"], plan["seed"]
        count = keys.get("count", 1)
        self._value_bytes = plan["value_bytes"]
        self._seed = seed
        self._values = {}
        #: Names of the keys by number.
        self.names = [f"k{j}" for j in range(count)]
        self._starts = [zlib.crc32(name.encode()) % 62 for name in self.names]
        #: Kind of operation i: get, set or delete.
        self.kind = (lambda i: mixed(draw(seed, 2 * i))) if op == "mix" else lambda _i: op
        #: Number of operation i's key.
        self.key = lambda _i: 0
        if keys["pattern"] == "uniform":
            self.key = lambda i: draw(seed, 2 * i + 1) * count >> 32
        if keys["pattern"] == "zipf":
            limits = zipf_limits(count, keys["theta"])
            self.key = lambda i: bisect.bisect_right(limits, draw(seed, 2 * i + 1))

    def value(self, key):
        """The value of key number `key`. There are only 62 of a length, and each is made once."""
        start = self._starts[key]
        value = self._values.get(start)
        if value is None:
            endless = (ALPHABET[start:] + ALPHABET[:start]) * (self._value_bytes // 62 + 1)
            value = self._values[start] = endless[: self._value_bytes].decode()
        return value

    def unrounded_key(self, i):
        """A key that is practically never there: what the replaced benchmark asked for."""
        return str(draw(self._seed, 2 * i + 1) / 2**32)


def mixed(share):
    """40 % get, 40 % set, 20 % delete."""
    return "get" if share < 1_717_986_918 else "set" if share < 3_435_973_836 else "delete"


def zipf_limits(count, theta):
    """Key j is drawn when the number is below limits[j] and not below the one before: probability ∝ 1 / (j + 1)^theta."""
    sums, total = [], 0.0
    for j in range(count):
        total += (j + 1) ** -theta
        sums.append(total)
    return [int(each / total * 2**32) for each in sums[:-1]] + [2**32]
