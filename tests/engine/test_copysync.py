"""How far copies are durable."""

from __future__ import annotations

from tests.engine.rig import Rig
from tests.engine.routerrig import put, ready
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


def test_what_was_told_twice_changes_nothing() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 4, {0})
    sync.wait(1, 9, 9, 4, {0})
    sync.own_synced(1, 9)
    assert sync.source_synced(1, 8, 0) == 8 == sync.source_synced(1, 8, 0)
    assert sync.source_synced(1, 9, 0) == 9


def test_a_copy_of_a_copy_waits_for_all_shards_that_lead_to_the_payload() -> None:
    sync = CopySync()
    sync.wait(1, 5, 8, 4, {0, 2})
    assert sync.shards_of(1, 4) == set() and sync.shards_of(1, 5) == {0, 2} and sync.shards_of(2, 5) == set()
    assert sync.own_synced(1, 8) == 4 == sync.source_synced(1, 8, 0)
    assert sync.shards_of(1, 9) == {2}
    assert sync.source_synced(1, 8, 2) == 8


# ---- in an engine


def test_fsync_copies_are_shown_when_their_source_is_safe_as_well() -> None:
    rig = Rig()
    rig.configure("a")
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    for number in range(3):
        rig.write("a", number)
        rig.work()
    assert rig.data("b") == [0, 1, 2] and rig.log("a").synced_seq == 3
    before = rig.text("b")
    rig.crash("lost")
    assert rig.text("b") == before


def test_a_copy_of_a_copy_is_shown_when_all_is_safe_that_leads_to_its_payload() -> None:
    rig = Rig()
    for name in ("a", "b", "between"):
        rig.configure(name)
    rig.configure("c", durability="fsync")
    put(rig, "a", "b")
    put(rig, "b", "c")
    shards = [rig.engine.wal.shard_of(rig.log(name).log_id) for name in "abc"]
    assert shards == [1, 0, 0]
    for number in range(3):
        rig.write("a", number)
        rig.work()
    before = rig.text("c")
    assert rig.data("c") == [0, 1, 2]
    rig.crash("lost")
    assert rig.text("c") == before


def test_strong_readers_of_a_copy_wait_for_its_source() -> None:
    rig = ready("ab")
    source, dest = rig.log("a"), rig.log("b")
    for number in range(2):
        rig.write("a", number)
        rig.work()
    rig.configure("b", merge=True, idempotency_window_ms=1000)
    assert dest.visible_seq == 2 and source.synced_seq == 1 == dest.synced_seq, "its own shard is synced, and no other"
    rig.clock.advance(1000)
    rig.work()
    assert source.synced_seq == 2 == dest.synced_seq


def test_write_behind_fsync_copies_waits_for_their_source() -> None:
    rig = ready("ab")
    rig.configure("b", merge=True, durability="fsync")
    rig.write("a", 0)
    rig.work()
    rig.write("a", 1)
    rig.engine.forwarding.pump()
    behind = rig.submit("b", "behind")
    rig.engine.flush()
    rig.driver.wal.work(rig.engine.wal.shard_of(rig.log("b").log_id))
    assert rig.log("a").synced_seq == 1 and not behind.done and rig.data("b") == [0], "a power loss takes copies"
    rig.work()
    assert behind.done and rig.data("b") == [0, 1, "behind"] and rig.log("a").synced_seq == 2


def test_lost_copies_stay_lost_when_their_source_gives_out_the_same_seqs_again() -> None:
    rig = Rig()
    rig.configure("a", durability="memory")
    put(rig, "a", "b")
    rig.write("a", "first")
    rig.work()
    assert rig.log("b").head_seq == 1
    rig.configure("other")
    rig.crash("lost")
    assert rig.data("a") == [] == rig.data("b")
    gap_from, gap_to = next((gap.gap_from, gap.gap_to) for gap in rig.gaps("b"))
    assert gap_from == 1 <= gap_to
    rig.write("a", "second")
    rig.work()
    before = rig.text("b")
    assert rig.data("b") == ["second"] and rig.seqs("a") == [1]
    rig.kill()
    assert rig.text("b") == before
