"""History checkers: given only what clients sent and were told, was every promise kept?

They are written apart from the engine and know nothing of it: a checker that shares code with what it checks shares its
mistakes. What got no answer may have happened or not, and both are fine; each rule speaks of what is certain only. Each
has a bad history in `tests/testing/` that it must refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from topics.testing.checkers.batch import check_batches
from topics.testing.checkers.dedup import check_dedup
from topics.testing.checkers.events import Call, Fault, Heard, History, Outcome, Topic, Violation
from topics.testing.checkers.fresh import check_fresh
from topics.testing.checkers.group import check_groups
from topics.testing.checkers.heap import check_heap
from topics.testing.checkers.leases import check_leases
from topics.testing.checkers.liveness import check_liveness
from topics.testing.checkers.log import check_log
from topics.testing.checkers.recreation import check_recreation
from topics.testing.checkers.retention import check_retention
from topics.testing.checkers.router import check_routers
from topics.testing.checkers.stream import check_streams

__all__ = ["CHECKERS", "Call", "Fault", "Heard", "History", "Outcome", "Topic", "Violation", "check"]

CHECKERS: dict[str, Callable[[History], Iterator[Violation]]] = {
    "log": check_log,
    "retention": check_retention,
    "recreation": check_recreation,
    "dedup": check_dedup,
    "batch": check_batches,
    "lease": check_leases,
    "heap": check_heap,
    "group": check_groups,
    "router": check_routers,
    "fresh": check_fresh,
    "stream": check_streams,
    "liveness": check_liveness,
}


def check(history: History) -> list[Violation]:
    """Every promise that the history shows to be broken."""
    return [violation for checker in CHECKERS.values() for violation in checker(history)]
