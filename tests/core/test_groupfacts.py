"""Every fact of a group as it is stored: it says the same when it is read, and its bytes stay what they are."""

from __future__ import annotations

import msgspec
import pytest

from topics.core.facts import LogFact, encode, parse_log_fact
from topics.core.groupfacts import (
    AnyGroupFact,
    GroupAcked,
    GroupDropped,
    GroupFreed,
    GroupKept,
    GroupLeased,
    GroupPaused,
    GroupPlaced,
)

FACTS: dict[str, tuple[AnyGroupFact, dict[str, object]]] = {
    "placed": (GroupPlaced("g", 7, 9), {"cursor": 7, "at_ms": 9}),
    "leased": (
        GroupLeased("g", 1, 2, 3, 4, "c", [(5, 6)]),
        {"first_seq": 1, "last_seq": 2, "due_ms": 3, "token": 4, "consumer": "c", "told": [[5, 6]]},
    ),
    "acked": (GroupAcked("g", 9, [(1, 2)], [(3, 4)]), {"at_ms": 9, "ranges": [[1, 2]], "known": [[3, 4]]}),
    "freed": (GroupFreed("g", 9, [(1, 2)], [(3, 4)]), {"due_ms": 9, "ranges": [[1, 2]], "untold": [[3, 4]]}),
    "kept": (GroupKept("g", 9, [(1, 2)], [(3, 4)]), {"due_ms": 9, "ranges": [[1, 2]], "told": [[3, 4]]}),
    "paused": (GroupPaused("g", True), {"paused": True}),
    "dropped": (GroupDropped("g"), {}),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_fact_is_stored_as_it_is_documented(name: str) -> None:
    fact, fields = FACTS[name]
    stored: LogFact = fact
    body = encode(stored)
    assert parse_log_fact(body) == fact
    assert msgspec.msgpack.decode(body) == {"type": f"group_{name}", "group": "g", **fields}


def test_what_is_usual_is_left_out() -> None:
    body = encode(GroupLeased("g", 1, 2, 3, 4))
    assert msgspec.msgpack.decode(body) == {
        "type": "group_leased",
        "group": "g",
        "first_seq": 1,
        "last_seq": 2,
        "due_ms": 3,
        "token": 4,
    }
