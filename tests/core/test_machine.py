from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.rig import T0_MS, Rig, frozen
from topics.core.commands import Append, Configure, Delete, Drop
from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.core.facts import Appended, Deleted, FloorsMoved, HeadMoved, TopicCreated, parse_log_fact, parse_meta_fact
from topics.core.log import Hole
from topics.core.machine import Bounds
from topics.core.match import parse_match
from topics.core.outcome import Outcome, StoredFact
from topics.core.records import Records
from topics.core.registry import META_LOG_ID
from topics.errors import (
    InvalidRequest,
    ProducerFenced,
    RecordTooLarge,
    Throttled,
    TopicExistsIncompatible,
    TopicFull,
    TopicNotEmpty,
    TopicNotFound,
    TopicsError,
)
from topics.limits import CEILING_RESERVE_MIN
from topics.model import Configured, Dropped, Durability, Reason, TopicConfig, Written
from topics.model import Deleted as DeletedAnswer
from topics.testing.oracle import View


def records(*datas: Any) -> Records:
    return Records.of([{"data": data} for data in datas])


def kinds(outcome: Outcome) -> list[str]:
    """The facts of an outcome by name, with the log they belong to."""
    return [f"{fact.log_id}:{type(parsed(fact)).__name__}" for fact in outcome.facts]


def parsed(fact: StoredFact) -> Any:
    body = b"".join(fact.body)
    if fact.appended:
        return Appended.parse(memoryview(body))
    return parse_meta_fact(body) if fact.log_id == META_LOG_ID else parse_log_fact(body)


# ---- transcripts


def test_a_write_creates_its_topic_in_one_outcome() -> None:
    rig = Rig()
    outcome = rig.step(Append("t", records(1, 2), config={"durability": "fsync"}))
    assert outcome.reply == Written(topic="t", partition=0, first_seq=1, last_seq=2, head_seq=2, created=True)
    assert kinds(outcome) == ["0:TopicCreated", "1:Appended"] and outcome.must_sync
    assert (outcome.log, outcome.seq, outcome.durability) == (rig.log(), 2, Durability.FSYNC)
    outcome = rig.step(Append("t", records(3), config={"durability": "memory"}))
    assert outcome.reply == Written(topic="t", partition=0, first_seq=3, last_seq=3, head_seq=3)
    assert kinds(outcome) == ["1:Appended"] and outcome.must_sync, "an inline config acts on creation only"


def test_only_the_classes_that_promise_more_wait_for_a_sync() -> None:
    rig = Rig()
    for durability, must_sync, facts in (
        ("disk", False, 1),
        ("memory", False, 1),
        ("fsync", True, 1),
        ("ephemeral", False, 0),
    ):
        rig.configure(durability, durability=durability)
        outcome = rig.step(Append(durability, records(1)))
        assert (outcome.must_sync, len(outcome.facts)) == (must_sync, facts)
        outcome = rig.step(Delete(durability, before_seq=2))
        assert (outcome.must_sync, len(outcome.facts)) == (must_sync, facts)


def test_seqs_are_contiguous_and_each_partition_has_its_own() -> None:
    rig = Rig()
    rig.configure(partitions=2)
    rig.write({"data": 1}, {"data": 2}, partition=0)
    rig.write({"data": 1}, partition=1)
    answer = rig.write({"data": 3}, partition=0)
    assert (answer.first_seq, list(answer.seqs), answer.count) == (3, [3], 1)
    assert (rig.view(partition=0).head_seq, rig.view(partition=1).head_seq) == (3, 1)
    assert [record.seq for record in rig.scan(partition=1)] == [1]


def test_a_disk_class_write_reserves_seqs_ahead() -> None:
    rig = Rig()
    rig.configure()
    first = parsed(rig.step(Append("t", records(1))).facts[0])
    assert first.ceiling == 1 + CEILING_RESERVE_MIN
    second = parsed(rig.step(Append("t", records(2))).facts[0])
    assert second.ceiling == first.ceiling, "it moves when half of it is used"
    for _ in range(CEILING_RESERVE_MIN // 2):
        last = parsed(rig.step(Append("t", records(3))).facts[0])
    assert last.ceiling > first.ceiling
    rig.configure("f", durability="fsync")
    assert parsed(rig.step(Append("f", records(1))).facts[0]).ceiling == 0


def test_a_topic_dropped_and_made_again_begins_anew() -> None:
    rig = Rig()
    rig.write({"data": 1}, key=IdempotencyKey("k"))
    before = rig.machine.topic("t").epoch
    assert rig.drop() == Dropped(topic="t", deleted=True)
    assert rig.drop() == Dropped(topic="t", deleted=False)
    assert rig.machine.dropped_logs[0].log_id == 1 and rig.machine.totals.count == 0
    answer = rig.write({"data": 2}, key=IdempotencyKey("k"))
    assert (answer.first_seq, answer.created, answer.deduped) == (1, True, False)
    assert rig.machine.topic("t").epoch > before and rig.log().log_id == 2
    again = rig.replayed()
    assert (again.machine.next_log_id, again.machine.next_epoch) == (3, 3) and again.scan() == rig.scan()


def test_drop_if_empty_counts_what_is_live_now() -> None:
    rig = Rig()
    rig.configure(ttl_ms=5, partitions=2)
    rig.write({"data": 1}, partition=1)
    with pytest.raises(TopicNotEmpty, match='topic "t" holds 1 records') as refused:
        rig.drop(if_empty=True)
    assert refused.value.detail == {"topic": "t", "count": 1}
    rig.now_ms += 6
    assert rig.drop(if_empty=True).deleted


def test_put_is_the_whole_config_and_patch_a_part_of_it() -> None:
    rig = Rig()
    assert rig.configure(ttl_ms=5, cap_records=3) == Configured(
        topic="t", created=True, config=TopicConfig(ttl_ms=5, cap_records=3)
    )
    outcome = rig.step(Configure("t", {"ttl_ms": 7}, merge=True))
    assert outcome.reply == Configured(topic="t", created=False, config=TopicConfig(ttl_ms=7, cap_records=3))
    assert kinds(outcome) == ["0:TopicConfigured"] and outcome.must_sync
    outcome = rig.step(Configure("t", {"ttl_ms": 7, "cap_records": 3}))
    assert (outcome.facts, outcome.must_sync) == ([], False), "nothing changed, nothing is stored"
    assert rig.configure().config == TopicConfig()


def test_a_lower_cap_acts_at_once_and_a_higher_one_brings_nothing_back() -> None:
    rig = Rig()
    rig.write_numbers(1, 2, 3, 4)
    outcome = rig.step(Configure("t", {"cap_records": 2}))
    assert kinds(outcome) == ["0:TopicConfigured", "1:FloorsMoved"]
    assert parsed(outcome.facts[1]) == FloorsMoved(3, 3, {Reason.CAP: 2})
    assert rig.view() == View(4, 3, 3, 2, 2)
    rig.configure(cap_records=100)
    assert rig.view() == View(4, 3, 3, 2, 2) == rig.replayed().view()


@pytest.mark.parametrize("read_first", [False, True])
def test_what_a_ttl_took_stays_gone_when_it_is_raised(read_first: bool) -> None:
    rig = Rig()
    rig.configure(ttl_ms=10)
    rig.write_numbers(1)
    rig.now_ms += 11
    if read_first:
        assert rig.seqs() == [], "reading moves the floor, and nothing is stored of that"
    rig.configure(ttl_ms=0)
    assert rig.view() == View(1, 2, 2, 0, 0) == rig.replayed().view()


@pytest.mark.parametrize("match", [None, "a"])
@pytest.mark.parametrize("read_first", [False, True])
def test_what_expired_before_a_delete_is_still_loss_after_a_replay(match: str | None, read_first: bool) -> None:
    rig = Rig()
    rig.configure(ttl_ms=10)
    rig.write({"data": 1, "tag": "a"})
    rig.now_ms += 11
    if read_first:
        rig.seqs()
    rig.write({"data": 2, "tag": "a"})
    answer = rig.delete(match=match, before_seq=3)
    assert (answer.deleted, answer.earliest_seq) == (1, 3)
    assert rig.view() == View(2, 3, 2, 0, 0) == rig.replayed().view()
    assert rig.replayed().page(0).tombstone == rig.page(0).tombstone is not None


def test_expiry_goes_before_a_cap_when_a_config_brings_both() -> None:
    rig = Rig()
    rig.write_numbers(1, 2)
    rig.now_ms += 10
    rig.write_numbers(3)
    rig.configure(ttl_ms=5, cap_records=1)
    assert rig.log().lost == {Reason.TTL: 2}, "what is expired does not count towards the cap"


def test_deletes_answer_the_state_behind_them() -> None:
    rig = Rig()
    rig.write({"data": 1, "tag": "a"}, {"data": 22}, {"data": 333, "tag": "a:b"})
    assert rig.delete(match="a") == DeletedAnswer(
        topic="t", partition=0, deleted=1, earliest_seq=2, head_seq=3, count=2, bytes=5
    )
    outcome = rig.step(Delete("t", match=parse_match(["tag", "Glob", "zzz*"])))
    assert outcome.facts == [], "a delete that finds nothing leaves nothing behind"
    outcome = rig.step(Delete("t", before_seq=99))
    assert [parsed(fact) for fact in outcome.facts] == [Deleted(4)], "bounded by the head of this moment"
    assert rig.view() == View(3, 4, 1, 0, 0)
    rig.write({"data": 4, "tag": "a"})
    assert rig.seqs() == rig.replayed().seqs() == [4]


def test_a_repeated_write_gets_the_first_answer() -> None:
    rig = Rig()
    rig.configure(idempotency_window_ms=100, cap_records=2, discard="reject")
    key = IdempotencyKey("k")
    first = rig.write({"data": 1}, {"data": 2}, key=key)
    outcome = rig.step(Append("t", records(3), dedupe_key=key))
    assert outcome.reply == Written(
        topic="t", partition=0, first_seq=first.first_seq, last_seq=2, head_seq=2, deduped=True
    )
    assert (outcome.facts, outcome.seq, outcome.log) == ([], 2, rig.log()), "full or not, it was written"
    again = rig.replayed()
    assert again.write({"data": 3}, key=key).deduped, "the key is stored with the records"
    rig.now_ms += 101
    rig.delete(before_seq=3)
    assert rig.write({"data": 3}, key=key).first_seq == 3


def test_a_producer_is_fenced_by_its_newer_epoch() -> None:
    rig = Rig()
    rig.write({"data": 1}, key=ProducerKey("p", 1, 0))
    assert rig.write({"data": 1}, key=ProducerKey("p", 1, 0)).deduped
    rig.write({"data": 2}, key=ProducerKey("p", 2, 0))
    with pytest.raises(ProducerFenced):
        rig.replayed().write({"data": 3}, key=ProducerKey("p", 1, 1))


def test_an_ephemeral_topic_that_is_stored_from_now_on_keeps_its_head() -> None:
    rig = Rig()
    rig.configure(durability="ephemeral", cap_records=2)
    rig.write_numbers(1, 2, 3)
    outcome = rig.step(Configure("t", {"durability": "disk", "cap_records": 2}))
    assert [parsed(fact) for fact in outcome.facts[1:]] == [HeadMoved(4), FloorsMoved(2, 2, {Reason.CAP: 1})]
    rig.write_numbers(4)
    assert rig.seqs(2) == [3, 4]
    again = rig.replayed()
    assert again.view() == View(4, 4, 3, 1, 1)
    assert again.page(2).tombstone is not None, "record 3 was in memory only"


def test_floors_are_stored_when_a_topic_becomes_ephemeral() -> None:
    rig = Rig()
    rig.configure(ttl_ms=5)
    rig.write_numbers(1)
    rig.now_ms += 6
    rig.configure(durability="ephemeral")
    assert rig.replayed().view() == View(1, 2, 2, 0, 0)


def test_an_ephemeral_topic_stores_nothing_but_its_config() -> None:
    rig = Rig()
    rig.configure(durability="ephemeral", ttl_ms=5)
    rig.write_numbers(1, 2)
    rig.now_ms += 6
    rig.configure(durability="ephemeral", cap_records=1)
    rig.delete(before_seq=2)
    assert {fact.log_id for fact in rig.facts} == {META_LOG_ID}


def test_a_replay_needs_no_more_than_the_facts() -> None:
    rig = Rig()
    rig.configure(partitions=2, ttl_ms=50)
    rig.write({"data": 1, "tag": "x", "node": "n", "meta": {"k": "v"}}, partition=1)
    rig.configure("u", cap_bytes=3)
    rig.write({"data": 22}, {"data": 33}, topic="u")
    again = rig.replayed()
    for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
        assert again.view(topic, partition) == rig.view(topic, partition)
        assert again.scan(topic, partition) == rig.scan(topic, partition)
    assert again.machine.topic("t").created_ms == T0_MS
    assert frozen(again.machine.totals) == frozen(rig.machine.totals)


# ---- refusals


def full_rig() -> Rig:
    """Two topics, one of them full and refusing; a stage; a producer and a batch that are known."""
    rig = Rig(Bounds(topics_max=3, total_bytes_max=60, staged_bytes_max=12))
    rig.configure("full", cap_records=2, cap_bytes=8, discard="reject", idempotency_window_ms=5)
    rig.write({"data": 1}, {"data": 22}, topic="full", key=IdempotencyKey("old"))
    rig.configure("roomy", partitions=2)
    rig.write({"data": 333, "tag": "a"}, topic="roomy", key=ProducerKey("p", 4, 1))
    rig.stage("open", {"data": 1}, topic="full")
    rig.stage("taken", {"data": 1}, topic="roomy")
    rig.stage("used", {"data": 1}, topic="roomy")
    rig.decide("taken", producer_id="unfinished", epoch=3)
    rig.publish("used", producer_id="done", epoch=3)
    rig.now_ms += 6
    return rig


FULL: dict[str, object] = {"cap_records": 2, "cap_bytes": 8}
REFUSALS: dict[str, tuple[Callable[[Rig], object], type[TopicsError], str, dict[str, object]]] = {
    "append, full": (
        lambda rig: rig.write({"data": 1}, topic="full", key=IdempotencyKey("new")),
        TopicFull,
        'topic "full" is full; delete records, or raise its cap',
        {**FULL, "head_seq": 2, "earliest_seq": 1},
    ),
    "append, full by bytes": (
        lambda rig: (rig.delete("full", before_seq=2), rig.write({"data": "12345"}, topic="full")),
        TopicFull,
        'topic "full" is full; delete records, or raise its cap',
        {**FULL, "head_seq": 2, "earliest_seq": 2},
    ),
    "append, more records than it may ever hold": (
        lambda rig: rig.write({"data": 1}, {"data": 1}, {"data": 1}, topic="full"),
        RecordTooLarge,
        'a write of 3 records and 3 bytes is larger than all that topic "full" may hold; write less at once, '
        "or raise its cap",
        FULL,
    ),
    "append, more bytes than it may ever hold": (
        lambda rig: rig.write({"data": "1234567"}, topic="full"),
        RecordTooLarge,
        'a write of 1 record and 9 bytes is larger than all that topic "full" may hold; raise its cap',
        FULL,
    ),
    "append, to a topic that must exist": (
        lambda rig: rig.write({"data": 1}, topic="new", create=False),
        TopicNotFound,
        'topic "new" does not exist and this write may not create it; create it first, or write with create: true',
        {"topic": "new"},
    ),
    "append, creating what the config forbids": (
        lambda rig: rig.write({"data": 1}, topic="new", config={"auto_create": False}),
        TopicNotFound,
        'topic "new" does not exist and this write may not create it; create it first, or write with create: true',
        {"topic": "new"},
    ),
    "append, creating a topic too full for it": (
        lambda rig: rig.write({"data": 1}, {"data": 2}, topic="new", config={"cap_records": 1, "discard": "reject"}),
        RecordTooLarge,
        'a write of 2 records and 2 bytes is larger than all that topic "new" may hold; write less at once, '
        "or raise its cap",
        {"cap_records": 1, "cap_bytes": 0},
    ),
    "append, creating with a wrong partition": (
        lambda rig: rig.write({"data": 1}, topic="new", partition=1),
        InvalidRequest,
        'topic "new" has partitions 0 to 0, not 1',
        {"field": "partition", "expected": "0..0"},
    ),
    "append, to a wrong partition": (
        lambda rig: rig.write({"data": 1}, topic="roomy", partition=2),
        InvalidRequest,
        'topic "roomy" has partitions 0 to 1, not 2',
        {"field": "partition", "expected": "0..1"},
    ),
    "append, more than all may hold": (
        lambda rig: rig.write({"data": "x" * 60}, topic="roomy"),
        Throttled,
        "all topics together may hold 60 bytes; delete records, or raise TOPICS_MAX_TOTAL_BYTES",
        {"limit": "max_total_bytes", "max": 60},
    ),
    "append, an older epoch": (
        lambda rig: rig.write({"data": 1}, topic="roomy", key=ProducerKey("p", 3, 9)),
        ProducerFenced,
        'producer "p" has written with epoch 4: epoch 3 is over',
        {"producer_id": "p", "epoch": 3, "current_epoch": 4},
    ),
    "append, a wrong config, though the topic is there": (
        lambda rig: rig.step(Append("roomy", records(1), config={"ttl_ms": -1})),
        InvalidRequest,
        "ttl_ms must be an integer from 0 to 2^64-1, not -1",
        {"field": "ttl_ms", "value": "-1", "expected": "an integer from 0 to 2^64-1"},
    ),
    "configure, another type": (
        lambda rig: rig.configure("roomy", type="queue"),
        TopicExistsIncompatible,
        'type of topic "roomy" is log and fixed since its creation: it cannot become queue',
        {"topic": "roomy", "field": "type", "current": "log", "requested": "queue"},
    ),
    "configure, a wrong value": (
        lambda rig: rig.configure("roomy", merge=True, ttl_ms=-1),
        InvalidRequest,
        "ttl_ms must be an integer from 0 to 2^64-1, not -1",
        {"field": "ttl_ms", "value": "-1", "expected": "an integer from 0 to 2^64-1"},
    ),
    "drop, not empty": (
        lambda rig: rig.drop("roomy", if_empty=True),
        TopicNotEmpty,
        'topic "roomy" holds 2 records',
        {"topic": "roomy", "count": 2},
    ),
    "delete, of nothing in particular": (
        lambda rig: rig.delete("roomy"),
        InvalidRequest,
        "a delete names before_seq, match, or both",
        {"expected": "before_seq or match"},
    ),
    "delete, in no topic": (
        lambda rig: rig.delete("new", before_seq=1),
        TopicNotFound,
        'topic "new" does not exist',
        {"topic": "new"},
    ),
    "delete, in a wrong partition": (
        lambda rig: rig.delete("roomy", before_seq=1, partition=-1),
        InvalidRequest,
        'topic "roomy" has partitions 0 to 1, not -1',
        {"field": "partition", "expected": "0..1"},
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_command_says_why(name: str) -> None:
    act, kind, message, detail = REFUSALS[name]
    with pytest.raises(kind) as refused:
        act(full_rig())
    assert type(refused.value) is kind
    assert (refused.value.message, refused.value.detail) == (message, detail)


@pytest.mark.parametrize("name", [name for name in REFUSALS if name != "append, full by bytes"])
def test_a_refused_command_leaves_the_state_as_it_was(name: str) -> None:
    act, kind, _, _ = REFUSALS[name]
    rig = full_rig()
    before = frozen(rig.machine)
    with pytest.raises(kind):
        act(rig)
    assert frozen(rig.machine) == before


@pytest.mark.parametrize("name", ["", "-x", "a b", "x" * 256, "ä"])
@pytest.mark.parametrize("command", [Append("", records(1)), Configure("", {})], ids=["append", "configure"])
def test_a_topic_has_a_proper_name(command: Append | Configure, name: str) -> None:
    rig = full_rig()
    before = frozen(rig.machine)
    named = Append(name, records(1)) if isinstance(command, Append) else Configure(name, {})
    with pytest.raises(InvalidRequest, match="is not a topic name"):
        rig.step(named)
    assert frozen(rig.machine) == before


def test_topics_are_bounded_and_existing_ones_may_still_be_changed() -> None:
    rig = full_rig()
    rig.configure("third")
    before = frozen(rig.machine)
    for command in (Configure("fourth", {}), Append("fourth", records(1))):
        with pytest.raises(Throttled, match="there are 3 topics, as many as TOPICS_MAX_TOPICS allows") as refused:
            rig.step(command)
        assert refused.value.detail == {"limit": "max_topics", "max": 3}
    assert frozen(rig.machine) == before
    rig.configure("third", ttl_ms=1)
    rig.step(Drop("third"))
    rig.configure("fourth")


def test_a_state_that_differs_is_seen_to_differ() -> None:
    """The comparison above sees a single byte: each of these changes something, and no two of them the same."""
    states = {frozen(full_rig().machine)}
    changes: list[Callable[[Rig], object]] = [
        lambda rig: rig.write({"data": 9}, topic="roomy"),
        lambda rig: rig.write({"data": 8}, topic="roomy"),
        lambda rig: rig.write({"data": 8}, topic="roomy", key=IdempotencyKey("k")),
        lambda rig: rig.delete("roomy", match="a"),
        lambda rig: rig.delete("roomy", before_seq=2),
        lambda rig: rig.configure("roomy", merge=True, priority=1),
        lambda rig: rig.drop("roomy"),
        lambda rig: rig.stage("open", {"data": 1}, topic="full"),
        lambda rig: rig.abort("open"),
    ]
    for change in changes:
        rig = full_rig()
        change(rig)
        states.add(frozen(rig.machine))
    assert len(states) == 1 + len(changes)


def test_a_topic_s_own_changes_are_marked_for_the_checkpoint() -> None:
    rig = Rig()
    rig.configure()
    rig.machine.changed.clear()
    rig.write_numbers(1)
    assert rig.machine.changed == set()
    rig.configure(ttl_ms=1)
    assert rig.machine.changed == {"t"}


def test_a_topic_is_created_with_its_facts() -> None:
    rig = Rig()
    outcome = rig.step(Configure("t", {"partitions": 3}))
    assert parsed(outcome.facts[0]) == TopicCreated("t", 1, 1, TopicConfig(partitions=3), T0_MS)
    assert rig.machine.next_log_id == 4 and sorted(rig.machine.logs) == [1, 2, 3]


def test_a_record_that_is_missing_among_the_facts_leaves_a_hole() -> None:
    rig = Rig()
    for number in range(4):
        rig.write_numbers(number)
    del rig.facts[2:4]
    log = rig.replayed().log()
    assert (log.holes, log.count) == ([Hole(2, 3, Reason.DAMAGE)], 2)
