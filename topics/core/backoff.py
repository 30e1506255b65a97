"""How long a message rests after a delivery that failed: a random part of a bound that doubles from failure to failure.

The chance is in the lease's token, which no other lease has: its bits are mixed into a number that looks random. So the
time a lease that ran out leads to is known from what is stored, before a crash and after it, and needs no fact.
"""

from __future__ import annotations

from topics.limits import HEAP_BACKOFF_MS_MAX, HEAP_BACKOFF_MS_MIN, U64_MAX

_DOUBLINGS_MAX = 20


def backoff_ms(attempts: int, token: int) -> int:
    """From 0 to the bound for so many failures, all equally likely."""
    bound_ms = min(HEAP_BACKOFF_MS_MAX, HEAP_BACKOFF_MS_MIN << min(attempts - 1, _DOUBLINGS_MAX))
    return _mixed(token) * (bound_ms + 1) >> 64


def _mixed(number: int) -> int:
    """The finalizer of splitmix64: every bit of the result depends on every bit of the number."""
    mixed = (number + 0x9E3779B97F4A7C15) & U64_MAX
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & U64_MAX
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & U64_MAX
    return mixed ^ mixed >> 31
