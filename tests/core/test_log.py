from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.damage import spoil
from tests.core.rig import T0_MS, Rig, frozen
from topics.core import hole
from topics.core.facts import Appended, Deleted, Floors, FloorsMoved, HeadMoved, SeqsSkipped
from topics.core.hole import Hole
from topics.core.log import Log
from topics.core.records import Records
from topics.core.totals import Totals
from topics.limits import TAIL_BATCH_BYTES_MAX, TAIL_BATCH_RECORDS_MAX
from topics.model import Discard, Durability, Reason, TopicConfig
from topics.testing.oracle import View


def new_log() -> Log:
    return Log(7, "t", 0, 1)


def append(log: Log, *datas: Any, config: TopicConfig | None = None, ts: int = T0_MS, tag: str = "") -> Floors | None:
    records = Records.of([{"data": data, "tag": tag} for data in datas])
    return log.append(records.encode(log.next_seq, ts), config or TopicConfig())


def shape(log: Log) -> list[tuple[str, int, int]]:
    return [(type(run).__name__, run.first_seq, run.last_seq) for run in log.parts()]


CONFIGS = st.builds(
    TopicConfig,
    durability=st.sampled_from(list(Durability)),
    cap_records=st.sampled_from([0, 3]),
    cap_bytes=st.sampled_from([0, 40]),
)
WRITES = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b" * 11, "c" * TAIL_BATCH_BYTES_MAX]),
        st.sampled_from([0, 1, 2**32]),
        st.sampled_from(["", "", "", "hole", "delete"]),
    ),
    max_size=8,
)


def disturb(log: Log, how: str) -> None:
    """What may stand between two writes."""
    if how == "hole":
        log.add_hole(log.next_seq, log.next_seq + 2, Reason.RESTART)
    elif how == "delete":
        log.apply_deleted(Deleted(log.next_seq - 1))


@given(CONFIGS, WRITES)
def test_a_plain_record_is_appended_as_a_batch_of_one_would_be(
    config: TopicConfig, writes: list[tuple[str, int, str]]
) -> None:
    by_batch, by_record = new_log(), new_log()
    ts = T0_MS
    for data, step_ms, how in writes:
        ts += step_ms
        records = Records.of([{"data": data}])
        floors = by_batch.append(records.encode(by_batch.next_seq, ts), config)
        text = records.plain_text(by_record.next_seq, ts)
        assert by_record.append_plain(ts, text, records.payload_bytes, config) == floors
        for log in (by_batch, by_record):
            disturb(log, how)
        assert frozen(by_record) == frozen(by_batch)


@given(WRITES)
def test_a_plain_record_is_replayed_as_a_batch_of_one_would_be(writes: list[tuple[str, int, str]]) -> None:
    by_batch, by_record = new_log(), new_log()
    ts = T0_MS
    for ceiling, (data, step_ms, how) in enumerate(writes):
        ts += step_ms
        records = Records.of([{"data": data}])
        encoded = records.encode(by_batch.next_seq, ts)
        by_batch.apply_appended(Appended(encoded, 100 - ceiling))
        by_record.apply_plain(100 - ceiling, ts, memoryview(encoded.text), records.payload_bytes)
        for log in (by_batch, by_record):
            disturb(log, how)
            log.recount()
        assert frozen(by_record) == frozen(by_batch)


def test_small_batches_gather_in_the_tail_and_large_ones_are_runs() -> None:
    log = new_log()
    append(log, 1, 2)
    append(log, 3)
    assert shape(log) == [("Tail", 1, 3)]
    append(log, *range(TAIL_BATCH_RECORDS_MAX + 1))
    assert shape(log) == [("MemoryRun", 1, 3), ("MemoryRun", 4, 516)]
    append(log, "x" * TAIL_BATCH_BYTES_MAX)
    append(log, 4)
    append(log, 5)
    assert shape(log)[2:] == [("MemoryRun", 517, 517), ("Tail", 518, 519)]
    assert (log.count, log.head_seq, log.earliest_seq()) == (519, 519, 1)
    assert [log.run_index(seq) for seq in (0, 3, 4, 516, 517, 518)] == [0, 0, 1, 1, 2, 3]
    assert [run.first_seq for run in log.parts_from(516)] == [4, 517, 518]


def test_a_hole_ends_a_tail() -> None:
    log = new_log()
    append(log, 1)
    log.apply(SeqsSkipped(2, 4, Reason.RESTART))
    append(log, 2)
    assert shape(log) == [("MemoryRun", 1, 1), ("Tail", 5, 5)]
    assert log.holes == [Hole(2, 4, Reason.RESTART)]


def test_a_cap_evicts_the_oldest_live_records() -> None:
    log = new_log()
    caps = TopicConfig(cap_records=3)
    assert append(log, 1, 2, config=caps) is None
    log.apply_deleted(Deleted(2))
    assert append(log, 3, 4, config=caps) is None, "a deleted record does not count"
    assert append(log, 5, config=caps) == Floors(3, 3, {Reason.CAP: 2})
    assert (log.count, log.earliest_seq(), log.evict_floor) == (3, 3, 3)


def test_a_cap_by_bytes_evicts_whole_records() -> None:
    log = new_log()
    caps = TopicConfig(cap_bytes=10)
    append(log, "12345678", config=caps)
    assert (log.count, log.bytes) == (1, 10), "quotes count: it is the JSON that is stored"
    append(log, 1, config=caps)
    assert (log.count, log.bytes, log.evict_floor) == (1, 1, 2)
    append(log, "123456789", config=caps)
    assert (log.count, log.bytes, log.evict_floor, log.earliest_seq()) == (0, 0, 4, 4), "larger than the cap: all goes"


def test_whichever_cap_is_hit_first_evicts() -> None:
    log = new_log()
    caps = TopicConfig(cap_bytes=10, cap_records=2)
    append(log, 1, 1, 1, config=caps)
    assert log.evict_floor == 2
    append(log, "1234567", config=caps)
    assert (log.evict_floor, log.bytes) == (3, 10)
    append(log, 1, config=caps)
    assert (log.evict_floor, log.bytes) == (4, 10)
    append(log, 11, config=caps)
    assert (log.evict_floor, log.bytes) == (5, 3)


def test_expiry_is_strict_and_moves_with_time() -> None:
    log = new_log()
    config = TopicConfig(ttl_ms=10)
    append(log, 1, ts=T0_MS)
    append(log, 2, ts=T0_MS + 5)
    log.observe(config, T0_MS + 10)
    assert (log.count, log.evict_floor) == (2, 1)
    log.observe(config, T0_MS + 11)
    assert (log.count, log.evict_floor, log.earliest_seq(), log.lost) == (1, 2, 2, {Reason.TTL: 1})
    assert log.floors_unstored
    log.observe(config, T0_MS + 16)
    assert (log.count, log.evict_floor, log.earliest_seq()) == (0, 3, 3)
    log.observe(TopicConfig(ttl_ms=10_000), T0_MS + 17)
    assert (log.count, log.evict_floor) == (0, 3), "a longer TTL brings nothing back"


def test_what_was_deleted_before_it_expired_is_no_loss() -> None:
    log = new_log()
    append(log, 1, 2, ts=T0_MS)
    append(log, 3, 4, ts=T0_MS, tag="a")
    log.apply_deleted(Deleted(5, b"a"))
    log.observe(TopicConfig(ttl_ms=1), T0_MS + 2)
    assert (log.evict_floor, log.earliest_seq()) == (3, 5), "1 and 2 were lost; 3 and 4 were deleted"
    log = new_log()
    append(log, 1, 2)
    log.apply_deleted(Deleted(3))
    log.observe(TopicConfig(ttl_ms=1), T0_MS + 2)
    assert (log.evict_floor, log.earliest_seq(), log.lost) == (1, 3, {})


def test_why_something_was_lost() -> None:
    log = new_log()
    append(log, 1, 2, 3, config=TopicConfig(cap_records=2))
    log.observe(TopicConfig(ttl_ms=1), T0_MS + 2)
    assert log.lost == {Reason.CAP: 1, Reason.TTL: 3}
    assert [log.loss_reason(gap_from) for gap_from in (1, 2, 3)] == [Reason.MIXED, Reason.TTL, Reason.TTL]


def test_time_does_not_go_back_in_a_log() -> None:
    rig = Rig()
    rig.write({"data": 1})
    rig.now_ms -= 1000
    rig.write({"data": 2})
    assert [record.ts for record in rig.scan()] == [T0_MS, T0_MS]


def test_runs_that_hold_nothing_are_released() -> None:
    log = new_log()
    for number in range(3):
        append(log, number, tag=f"tag{number}")
        # A tail stands in for a run in a file: all that counts is that it is more than memory.
        assert log.tail is not None
        log.runs.append(log.tail)
        log.tail = None
    append(log, 3)
    log.apply_deleted(Deleted(5, b"tag1"))
    assert [run.first_seq for run in log.released] == [2], "the middle one, which a tag delete emptied"
    log.apply_deleted(Deleted(2))
    assert [run.first_seq for run in log.released] == [2, 1]
    assert shape(log) == [("Tail", 3, 3), ("Tail", 4, 4)]
    log.freeze_tail()
    log.apply_deleted(Deleted(5))
    assert [run.first_seq for run in log.released] == [2, 1, 3], "a run in memory has no owner to tell"
    assert shape(log) == [] and (log.count, log.earliest_seq(), log.next_seq) == (0, 5, 5)
    append(log, 4)
    assert (log.count, log.earliest_seq()) == (1, 5)


def test_deletes_answer_what_was_removed() -> None:
    log = new_log()
    append(log, 1, 2, tag="a")
    append(log, 3, tag="b")
    assert log.apply_deleted(Deleted(2))[0] == 1
    assert log.apply_deleted(Deleted(2))[0] == 0
    assert log.apply_deleted(Deleted(99, b"a"))[0] == 1, "bounded by what is there"
    append(log, 4, tag="a")
    assert (log.count, log.earliest_seq()) == (2, 3), "later records with the tag stay"
    assert log.apply_deleted(Deleted(4, b"", prefix=True))[0] == 1
    assert (log.count, log.earliest_seq(), log.evict_floor) == (1, 4, 1)


def test_holes_of_one_reason_that_touch_are_one() -> None:
    log = new_log()
    log.apply(SeqsSkipped(1, 2, Reason.RESTART))
    log.apply(SeqsSkipped(3, 4, Reason.RESTART))
    log.apply(SeqsSkipped(5, 6, Reason.DAMAGE))
    assert log.holes == [Hole(1, 4, Reason.RESTART), Hole(5, 6, Reason.DAMAGE)]
    assert (log.next_seq, log.earliest_seq()) == (7, 7)


def test_holes_are_bounded_and_what_is_told_never_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hole, "HOLES_MAX", 2)
    log = new_log()
    for _ in range(3):
        log.apply(SeqsSkipped(log.next_seq, log.next_seq, Reason.RESTART))
        append(log, 1)
    assert log.holes == [Hole(1, 3, Reason.MIXED), Hole(5, 5, Reason.RESTART)]


def test_holes_below_the_floor_are_forgotten() -> None:
    log = new_log()
    append(log, 1)
    log.apply(SeqsSkipped(2, 3, Reason.RESTART))
    append(log, 4)
    append(log, 5, config=TopicConfig(cap_records=2))
    assert log.holes == [Hole(2, 3, Reason.RESTART)], "only record 1 was evicted"
    append(log, 6, config=TopicConfig(cap_records=2))
    assert (log.evict_floor, log.holes) == (5, [])


def test_a_moved_head_leaves_a_hole() -> None:
    log = new_log()
    log.apply(HeadMoved(1))
    assert list(log.holes) == []
    log.apply(HeadMoved(4))
    assert (log.next_seq, log.holes) == (4, [Hole(1, 3, Reason.RESTART)])
    log.apply(HeadMoved(4))
    assert log.holes == [Hole(1, 3, Reason.RESTART)]


def test_an_append_further_on_than_the_log_is_a_gap_in_what_was_stored() -> None:
    log = new_log()
    log.apply_appended(Appended(Records.of([{"data": 1}]).encode(3, T0_MS)))
    assert (log.holes, log.next_seq) == ([Hole(1, 2, Reason.DAMAGE)], 4)


def test_replayed_floors_never_go_back() -> None:
    log = new_log()
    append(log, 1, 2, 3, 4)
    log.apply(FloorsMoved(4, 3, {Reason.CAP: 2}))
    log.apply(FloorsMoved(2, 2, {Reason.CAP: 1, Reason.TTL: 1}))
    log.recount()
    assert (log.low, log.evict_floor, log.lost) == (4, 3, {Reason.CAP: 2, Reason.TTL: 1})
    assert (log.count, log.bytes) == (1, 1)


def test_the_totals_follow_every_log() -> None:
    totals = Totals()
    first, second = Log(1, "a", 0, 1, totals), Log(2, "b", 0, 2, totals)
    append(first, 1, 22)
    append(second, 333, tag="x")
    assert (totals.count, totals.bytes) == (3, 6)
    second.apply_deleted(Deleted(2, b"x"))
    append(first, 4, config=TopicConfig(cap_records=2))
    assert (totals.count, totals.bytes) == (2, 3)
    first.leave()
    assert (totals.count, totals.bytes) == (0, 0)


def damaged_log() -> Log:
    log = new_log()
    append(log, 1, 2, 3)
    spoil(log)
    append(log, 4)
    return log


def test_damage_stops_the_floor_and_not_the_writes() -> None:
    log = damaged_log()
    log.observe(TopicConfig(ttl_ms=1), T0_MS + 100)
    assert (log.low, log.evict_floor, log.count) == (1, 1, 4)
    assert append(log, 5, config=TopicConfig(cap_records=1)) is None
    assert (log.count, log.head_seq) == (5, 5)
    log.low = 2
    log.recount()
    assert log.count == 5, "what cannot be counted is taken as it was"


def test_an_ephemeral_log_keeps_its_floors_to_itself() -> None:
    log = new_log()
    assert append(log, 1, 2, config=TopicConfig(cap_records=1, durability=Durability.EPHEMERAL)) is None
    assert (log.evict_floor, log.floors_unstored) == (2, True)


def test_reject_and_old_evict_alike_once_a_record_is_in() -> None:
    log = new_log()
    append(log, 1, 2, 3)
    assert log.evict(TopicConfig(cap_records=1, discard=Discard.REJECT))
    assert (log.count, log.evict_floor) == (1, 3)


def test_what_comes_back_from_the_facts_is_the_same_log() -> None:
    rig = Rig()
    rig.configure(cap_records=5)
    rig.write_numbers(1, 2, 3, 4)
    rig.delete(match="none")
    rig.write_numbers(5, 6, 7)
    rig.delete(before_seq=4)
    assert rig.view() == View(7, 4, 3, 4, 4)
    again = rig.replayed()
    assert (again.view(), again.scan()) == (rig.view(), rig.scan())
