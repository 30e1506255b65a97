"""How far copies are durable."""

from __future__ import annotations

from topics.engine.copysync import CopySync


def test_a_log_without_copies_is_as_far_as_its_shard() -> None:
    assert CopySync().own_synced(1, 7) == 7


def test_copies_hold_their_log_back_until_their_source_is_synced() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 3, {0})
    sync.wait(1, 12, 14, 3, {0})
    assert sync.own_synced(1, 20) == 4
    assert sync.own_synced(2, 20) == 20
    assert sync.source_synced(1, 8, 0) == 11
    assert sync.source_synced(1, 14, 0) == 20
    assert sync.own_synced(1, 21) == 21


def test_a_shard_that_is_behind_holds_its_log_back_as_well() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 3, {0})
    assert sync.source_synced(1, 8, 0) == 3


def test_sources_may_come_in_any_order() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 4, {0})
    sync.wait(1, 9, 9, 4, {2})
    assert sync.own_synced(1, 9) == 4
    assert sync.source_synced(1, 9, 2) == 4
    assert sync.source_synced(1, 8, 0) == 9
    assert sync.source_synced(1, 8, 0) == 0, "nothing is waiting any more"


def test_a_copy_of_a_copy_waits_for_all_shards_that_lead_to_the_payload() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 4, {0, 2})
    assert sync.shards_of(1, 4) == set() and sync.shards_of(1, 5) == {0, 2} and sync.shards_of(2, 5) == set()
    assert sync.own_synced(1, 8) == 4 == sync.source_synced(1, 8, 0)
    assert sync.shards_of(1, 9) == {2}
    assert sync.source_synced(1, 8, 2) == 8
