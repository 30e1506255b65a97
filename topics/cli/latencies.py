"""Durations counted in buckets that grow by an eighth of a power of two: bounded, and exact to a few per cent."""

from __future__ import annotations

from collections import Counter

STEPS = 8
"""Buckets between two powers of two."""


class Latencies:
    def __init__(self) -> None:
        self.count = 0
        self.longest_us = 0
        self._buckets: Counter[int] = Counter()

    def add(self, us: int) -> None:
        self.count += 1
        self.longest_us = max(self.longest_us, us)
        self._buckets[_bucket(us)] += 1

    def percentile_us(self, share: float) -> int:
        """The time that so many did not exceed; 0 when there are none."""
        left = share * self.count
        for bucket in sorted(self._buckets):
            left -= self._buckets[bucket]
            if left <= 0:
                return min(_upper_us(bucket), self.longest_us)
        return self.longest_us

    def by_power(self) -> list[tuple[int, int]]:
        """(upper bound in µs, how many) for each power of two, without the empty ends."""
        powers: Counter[int] = Counter()
        for bucket, count in self._buckets.items():
            powers[bucket // STEPS] += count
        if not powers:
            return []
        return [(1 << (power + 1), powers[power]) for power in range(min(powers), max(powers) + 1)]


def _bucket(us: int) -> int:
    us = max(us, 1)
    power = us.bit_length() - 1
    return power * STEPS + ((us - (1 << power)) * STEPS >> power)


def _upper_us(bucket: int) -> int:
    power, step = divmod(bucket, STEPS)
    return (1 << power) + ((step + 1) << power) // STEPS
