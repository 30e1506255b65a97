"""What can be looked at in a heap, on an engine driven by hand."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import HeapRig
from topics.core import heapletters
from topics.engine import heaplooking
from topics.errors import InvalidRequest, MessageNotFound, NotAHeap


def test_how_the_priorities_of_what_waits_are_spread() -> None:
    rig = HeapRig()
    rig.heap(partitions=2)
    rig.put(3, 1, 2, partition=1)
    found = rig.engine.heaps.waiting("h", 1)
    assert (found.ready, found.best, found.oldest_ms, found.is_exact) == (3, 1, rig.clock.now_ms(), True)
    assert rig.engine.heaps.waiting("h", 0).ready == 0
    with pytest.raises(InvalidRequest, match="partitions 0 to 1"):
        rig.engine.heaps.waiting("h", 2)
    rig.configure("plain")
    with pytest.raises(NotAHeap):
        rig.engine.heaps.waiting("plain", 0)


def test_a_dead_letter_is_found_by_the_id_of_its_message_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (heapletters, heaplooking):
        monkeypatch.setattr(module, "REDRIVE_SCANNED_MAX", 2)
    monkeypatch.setattr(heaplooking, "LETTERS_LOOKED_AT_MAX", 6)
    rig = HeapRig()
    rig.heap(max_retries=0)
    ids = [rig.put(priority)[0].message_id for priority in range(8)]
    for _ in ids:
        rig.nack(*rig.pop())
    heaps = rig.engine.heaps
    assert [heaps.dead_letter("h", ids[at]).priority for at in (0, 1, 5)] == [0, 1, 5], "page after page"
    for at in (6, 7):
        with pytest.raises(MessageNotFound, match=f"was message {ids[at]}"):
            heaps.dead_letter("h", ids[at])
    (alive,) = rig.put(9)
    monkeypatch.setattr(heaplooking, "LETTERS_LOOKED_AT_MAX", 100)
    with pytest.raises(MessageNotFound):
        heaps.dead_letter("h", alive.message_id)
