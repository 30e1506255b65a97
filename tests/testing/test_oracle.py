from __future__ import annotations

from typing import Any

import pytest

from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.errors import ProducerFenced, RecordTooLarge, TopicFull
from topics.model import Discard, Durability, Reason, Record, Tombstone, TopicConfig
from topics.testing.oracle import Answer, Draft, OracleLog, Receipt, View, payload_bytes

T0_MS = 1_748_470_000_000
PLENTY = 1 << 30


def drafts(*datas: Any, **fields: Any) -> list[Draft]:
    return [{"data": data, **fields} for data in datas]


def log_of(*datas: Any, **config: Any) -> OracleLog:
    log = OracleLog(TopicConfig(**config))
    if datas:
        log.append(drafts(*datas), T0_MS)
    return log


def seqs(answer: Answer) -> list[int]:
    return [record.seq for record in answer.records]


def test_the_worked_example_of_the_specification() -> None:
    log = log_of(*range(1_200), cap_records=1_134)
    head, floor = log.head_seq, log.evict_floor
    assert (head, floor) == (1_200, 67)
    answer = log.read(6, T0_MS, 100, PLENTY)
    assert answer.tombstone == Tombstone(7, 66, Reason.CAP, 60, 67, 1_200)
    assert (seqs(answer), answer.next_from_seq) == (list(range(67, 167)), 166)


def test_deletes_are_silent_and_losses_are_not() -> None:
    log = log_of(1, 2, 3, ttl_ms=10)
    assert log.delete(T0_MS, before_seq=3) == 2
    assert log.read(0, T0_MS, 9, PLENTY).tombstone is None
    assert log.view(T0_MS) == View(3, 3, 1, 1, 1)
    assert log.view(T0_MS + 11) == View(3, 4, 4, 0, 0)
    answer = log.read(0, T0_MS + 11, 9, PLENTY)
    assert answer == Answer([], Tombstone(1, 3, Reason.TTL, 3, 4, 3), 3)


def test_tags_and_nodes() -> None:
    log = OracleLog()
    log.append([{"data": 1, "tag": "a:1", "node": "n"}, {"data": 2, "tag": "a"}, {"data": 3}], T0_MS)
    assert seqs(log.read(0, T0_MS, 9, PLENTY, nodes=["n"])) == [2, 3]
    assert seqs(log.read(0, T0_MS, 9, PLENTY, match=["tag", "Glob", "a*"])) == [1, 2]
    assert log.delete(T0_MS, match=["tag", "Eq", "a"]) == 1
    assert log.delete(T0_MS, match=["tag", "Glob", "*"], before_seq=1) == 0
    assert log.delete(T0_MS, match=["tag", "Glob", "*"]) == 1
    assert seqs(log.read(0, T0_MS, 9, PLENTY)) == [3]


def test_a_page_has_room_for_so_many_records_and_bytes() -> None:
    log = log_of("123", 4, 5, 6)
    assert payload_bytes({"data": "123", "meta": {"k": "v"}}) == 14
    assert seqs(log.read(0, T0_MS, 2, PLENTY)) == [1, 2]
    assert seqs(log.read(0, T0_MS, 9, 1)) == [1]
    assert seqs(log.read(0, T0_MS, 9, 6)) == [1, 2]


def test_what_is_refused() -> None:
    log = log_of(1, cap_records=2, cap_bytes=5, discard=Discard.REJECT)
    with pytest.raises(RecordTooLarge):
        log.append(drafts(1, 2, 3), T0_MS)
    with pytest.raises(RecordTooLarge):
        log.append(drafts("1234"), T0_MS)
    with pytest.raises(TopicFull):
        log.append(drafts(1, 2), T0_MS)
    with pytest.raises(TopicFull):
        log.append(drafts("123"), T0_MS)
    assert len(log.operations) == 1 and log.view(T0_MS) == View(1, 1, 1, 1, 1)


def test_repeated_writes() -> None:
    log = OracleLog(TopicConfig(idempotency_window_ms=10))
    assert log.append(drafts(1), T0_MS, IdempotencyKey("k")) == Receipt(1, 1)
    assert log.append(drafts(1), T0_MS + 10, IdempotencyKey("k")) == Receipt(1, 1, deduped=True)
    assert log.append(drafts(1), T0_MS + 11, IdempotencyKey("k")) == Receipt(2, 2)
    assert log.append(drafts(1), T0_MS, ProducerKey("p", 1, 7)) == Receipt(3, 3)
    assert log.append(drafts(1), T0_MS, ProducerKey("p", 1, 7)) == Receipt(3, 3, deduped=True)
    assert log.append(drafts(1), T0_MS, ProducerKey("p", 2, 7)) == Receipt(4, 4)
    with pytest.raises(ProducerFenced):
        log.append(drafts(1), T0_MS, ProducerKey("p", 1, 8))


# ---- crashes


def crashed(log: OracleLog, operations: int, head_seq: int = 0) -> tuple[list[Record], View]:
    """What a recovery would show that kept so many operations and skipped the seqs up to `head_seq`."""
    survivor = log.survivor(operations)
    survivor.skip(head_seq)
    return [item.record for item in survivor.live], survivor.view(T0_MS)


def workload(durability: Durability) -> OracleLog:
    log = OracleLog(TopicConfig(durability=durability))
    log.append(drafts(1, 2, tag="a"), T0_MS)
    log.append(drafts(3), T0_MS)
    log.delete(T0_MS, match=["tag", "Eq", "a"])
    log.append(drafts(4, 5), T0_MS)
    return log


def test_every_prefix_from_the_promised_one_on_is_a_possible_outcome() -> None:
    log = workload(Durability.FSYNC)
    log.acked(2)
    for operations in (2, 3, 4):
        found = log.explain(*crashed(log, operations), T0_MS)
        assert len(found.operations) == found.promised_operations == operations
    for operations in (0, 1):
        with pytest.raises(AssertionError):
            log.explain(*crashed(log, operations), T0_MS)


def test_what_is_missing_and_what_was_never_written_is_named() -> None:
    log = workload(Durability.FSYNC)
    log.acked(4)
    records, view = crashed(log, 4)
    other = log_of(9, durability=Durability.FSYNC).live[0].record
    with pytest.raises(AssertionError, match=r"the missing seqs \[3\] and the unexpected \[1\]"):
        log.explain([other, *records[1:]], view, T0_MS)


def test_a_delete_that_was_promised_is_not_undone() -> None:
    log = workload(Durability.FSYNC)
    log.acked(3)
    records, view = crashed(log, 2)
    with pytest.raises(AssertionError, match="not the outcome of any 3 to 4 operations"):
        log.explain(records, view, T0_MS)


def test_the_disk_class_promises_what_is_synced_and_never_gives_a_seq_out_twice() -> None:
    log = workload(Durability.DISK)
    log.acked(4)
    log.synced(1)
    with pytest.raises(AssertionError, match="seq 5 was acked and could be given out again behind 3"):
        log.explain(*crashed(log, 2), T0_MS)
    found = log.explain(*crashed(log, 2, head_seq=9), T0_MS)
    assert found.head_seq == 9 and found.append(drafts(6), T0_MS) == Receipt(10, 10)
    tombstone = found.read(3, T0_MS, 9, PLENTY).tombstone
    assert tombstone is not None and (tombstone.gap_from, tombstone.gap_to) == (4, 9)
    with pytest.raises(AssertionError):
        log.explain(*crashed(log, 0, head_seq=9), T0_MS)


def test_memory_promises_nothing_and_invents_nothing() -> None:
    log = workload(Durability.MEMORY)
    log.acked(4)
    log.synced(4)
    assert log.explain(*crashed(log, 0), T0_MS).head_seq == 0
    records, view = crashed(log, 2)
    with pytest.raises(AssertionError):
        log.explain([*records[:-1], Record(3, T0_MS, "invented")], view, T0_MS)


def test_ephemeral_records_leave_their_seqs() -> None:
    log = workload(Durability.EPHEMERAL)
    log.acked(4)
    assert log.explain([], View(0, 1, 1, 0, 0), T0_MS).head_seq == 0
    found = log.explain([], View(5, 6, 1, 0, 0), T0_MS)
    assert found.read(0, T0_MS, 9, PLENTY).tombstone == Tombstone(1, 5, Reason.RESTART, 5, 6, 5)


def test_a_torn_batch_and_a_hole_in_the_middle_are_no_outcome() -> None:
    log = workload(Durability.DISK)
    records, view = crashed(log, 2)
    assert log.explain(records[:2], View(2, 1, 1, 2, 2), T0_MS).head_seq == 2, "the first batch, whole"
    for kept, shown in (
        (records[:1], View(1, 1, 1, 1, 1)),
        (records[:1], View(2, 1, 1, 1, 1)),
        ([records[0], records[2]], View(3, 1, 1, 2, 2)),
        (records[1:], view),
    ):
        with pytest.raises(AssertionError, match="all of them would differ by"):
            log.explain(kept, shown, T0_MS)
