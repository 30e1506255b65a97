from __future__ import annotations

import msgspec
import pytest

from topics.core import facts
from topics.core.facts import Acked, Appended
from topics.core.heapfacts import HeapFact, Nacked, PriorityChanged
from topics.core.records import Records


@pytest.mark.parametrize(
    "fact",
    [Nacked([3, 9], [100, 200], 50, "boom"), Nacked([1], [5], 5), PriorityChanged(7, -(2**63))],
    ids=repr,
)
def test_facts_are_read_back_from_their_bytes(fact: HeapFact) -> None:
    assert facts.parse_log_fact(facts.encode(fact)) == fact


def test_the_stored_form() -> None:
    """What is on disk may not change: these are the names a later program finds."""
    assert msgspec.msgpack.decode(facts.encode(Nacked([1], [5], 4, "r"))) == {
        "type": "nacked",
        "seqs": [1],
        "due_times": [5],
        "at_ms": 4,
        "reason": "r",
    }
    assert msgspec.msgpack.decode(facts.encode(PriorityChanged(1, -2))) == {
        "type": "priority_changed",
        "seq": 1,
        "priority": -2,
    }
    assert msgspec.msgpack.decode(facts.encode(Acked([1]))) == {"type": "acked", "seqs": [1]}
    assert msgspec.msgpack.decode(facts.encode(Acked([1], True))) == {"type": "acked", "seqs": [1], "called_off": True}


@pytest.mark.parametrize("keyed", [False, True])
def test_an_append_says_whether_its_messages_name_themselves(keyed: bool) -> None:
    encoded = Records.of([{"data": 1, "meta": {"$sequence": "1"}}]).encode(1, 5)
    body = memoryview(b"".join(Appended(encoded, keyed=keyed).buffers()))
    assert Appended.parse(body).keyed is keyed
