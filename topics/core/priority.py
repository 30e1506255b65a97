"""The priority a scheduler serves topics by: what an operator set or how recently it was read, and how long it waits.

    effective = (priority, or recency when there is none) + age

Recency is 500 just after a read and halves every 30 s; age adds 100 a second waited, up to 1000, so that nothing
starves. It is computed when asked for and never stored. Integers only: 2^-x is a table of 64 steps over one halving
with straight lines between them, in 16-bit fixed point, and whole halvings are shifts.
"""

from __future__ import annotations

from typing import Final

from topics.limits import PRIORITY_MAX, PRIORITY_MIN

RECENCY_MAX: Final = 500
HALF_LIFE_MS: Final = 30_000
RECENCY_FLOOR_MS: Final = 300_000
"""From here on recency counts nothing."""

AGE_PER_SECOND: Final = 100
AGE_CAP_MS: Final = 10_000

STEPS: Final = 64
_ONE_BITS: Final = 16
_HALVING: Final = tuple(round(2 ** (_ONE_BITS - step / STEPS)) for step in range(STEPS))

assert RECENCY_MAX >> (RECENCY_FLOOR_MS // HALF_LIFE_MS) == 0, "the floor hides less than one point"


def effective(
    priority: int | None,
    auto_priority: bool,
    now_ms: int,
    last_read_ms: int | None = None,
    waiting_since_ms: int | None = None,
) -> int:
    """The effective priority of a topic now; higher is served first."""
    if priority is not None:
        base = max(PRIORITY_MIN, min(priority, PRIORITY_MAX))
    elif auto_priority and last_read_ms is not None:
        base = recency(now_ms - last_read_ms)
    else:
        base = 0
    return base if waiting_since_ms is None else base + age(now_ms - waiting_since_ms)


def recency(idle_ms: int) -> int:
    """What having been read `idle_ms` ago is worth; a clock that went back counts as just now."""
    if idle_ms <= 0:
        return RECENCY_MAX
    if idle_ms >= RECENCY_FLOOR_MS:
        return 0
    halvings, rest_ms = divmod(idle_ms, HALF_LIFE_MS)
    step, between = divmod(rest_ms * STEPS, HALF_LIFE_MS)
    here = _HALVING[step]
    following = _HALVING[step + 1] if step + 1 < STEPS else _HALVING[0] // 2
    scaled = here - (here - following) * between // HALF_LIFE_MS
    shift = _ONE_BITS + halvings
    return (RECENCY_MAX * scaled + (1 << (shift - 1))) >> shift


def age(waited_ms: int) -> int:
    """What having waited is worth."""
    return AGE_PER_SECOND * max(0, min(waited_ms, AGE_CAP_MS)) // 1000
