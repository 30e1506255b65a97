from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.rig import T0_MS, Rig, frozen
from topics.core import batch as module
from topics.core import log as log_module
from topics.core.batch import STAGE_CONFIG, records_of
from topics.core.commands import Publish, Stage
from topics.core.facts import BatchFinished, StageDropped
from topics.core.machine import Bounds
from topics.core.records import Records
from topics.core.registry import META_LOG_ID
from topics.errors import (
    InvalidRequest,
    ProducerFenced,
    RecordTooLarge,
    StageConflict,
    StageNotFound,
    Throttled,
    TopicFull,
    TopicNotFound,
    TopicsError,
)
from topics.limits import PUBLISHED_KEPT_MS, STAGES_PER_BATCH_MAX
from topics.model import Aborted, Published, StageState, TopicType, Written
from topics.testing.oracle import View


def staged_rig() -> Rig:
    """Two topics with a record each; three stages, two of them for the first."""
    rig = Rig()
    rig.write({"data": "old"}, topic="t")
    rig.write({"data": "old"}, topic="u")
    rig.stage("s1", {"data": 1, "tag": "a", "node": "n", "meta": {"k": "v"}}, {"data": 2}, topic="t")
    rig.stage("s2", {"data": 3}, topic="u")
    rig.stage("s3", {"data": 4}, topic="t")
    return rig


ANSWER = Published(
    written=(
        Written(topic="t", partition=0, first_seq=2, last_seq=3, head_seq=4),
        Written(topic="u", partition=0, first_seq=2, last_seq=2, head_seq=2),
        Written(topic="t", partition=0, first_seq=4, last_seq=4, head_seq=4),
    )
)


def datas(rig: Rig, topic: str) -> list[Any]:
    return [record.data for record in rig.scan(topic)]


def test_a_stage_is_durable_and_invisible() -> None:
    rig = Rig()
    rig.configure()
    outcome = rig.machine.step(Stage("s", "t", Records.of([{"data": 1}, {"data": 22}])), rig.now_ms)
    expires_ms = T0_MS + rig.machine.bounds.stage_ttl_ms
    assert outcome.reply == StageState(
        stage="s", topic="t", type=TopicType.LOG, partition=0, partitions=1, count=2, bytes=3, expires_ts=expires_ms
    )
    assert [(fact.log_id, fact.appended) for fact in outcome.facts] == [(META_LOG_ID, False), (2, True)]
    assert outcome.must_sync
    assert rig.view() == View(0, 1, 1, 0, 0)
    again = rig.machine.step(Stage("s", "t", Records.of([{"data": 3}])), rig.now_ms)
    assert isinstance(again.reply, StageState) and again.reply.count == 3
    assert [(fact.log_id, fact.appended) for fact in again.facts] == [(2, True)], "it is open already"


def test_stages_are_published_in_the_order_they_are_named() -> None:
    rig = staged_rig()
    rig.now_ms += 7
    assert rig.publish("s1", "s2", "s3") == ANSWER
    assert (datas(rig, "t"), datas(rig, "u")) == (["old", 1, 2, 4], ["old", 3])
    first = rig.scan("t")[1]
    assert (first.tag, first.node, first.meta, first.ts) == ("a", "n", {"k": "v"}, rig.now_ms)
    assert rig.machine.batches.stages == {} and rig.machine.totals.count == 6
    assert rig.log("t").published == rig.log("u").published == {}


def test_publishing_twice_gives_the_first_answer() -> None:
    rig = staged_rig()
    assert not rig.publish("s1", "s2", "s3").deduped
    for again in (rig, rig.replayed()):
        facts = len(again.facts)
        answer = again.publish("s1", "s2", "s3")
        assert (answer.written, answer.deduped, len(again.facts)) == (ANSWER.written, True, facts)
        assert again.publish("other", producer_id="p", epoch=1).written == ANSWER.written, "the epoch says which it is"
        assert datas(again, "t") == ["old", 1, 2, 4]


def test_a_batch_that_is_being_published_is_joined() -> None:
    rig = staged_rig()
    batch = rig.decide("s1", "s2")
    assert rig.decide("s1", "s2") is batch and batch.answer is None
    rig.append_stages(batch)
    answer = rig.finish(batch)
    assert rig.decide("s1", "s2").answer == answer


UNDECIDED = (False, 0, 0, False)
APPENDING = [(True, of_t, of_u, False) for of_t in range(4) for of_u in range(2)]
FINISHED = (True, 3, 1, True)


@pytest.mark.parametrize(("decided", "kept_t", "kept_u", "finished"), [UNDECIDED, *APPENDING, FINISHED])
def test_a_crash_between_any_two_facts_is_made_good(
    decided: bool, kept_t: int, kept_u: int, finished: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the facts of each log a prefix survives; recovery goes on from there, and the outcome is the same."""
    monkeypatch.setattr(log_module, "TAIL_BATCH_RECORDS_MAX", 1)
    rig = staged_rig()
    rig.stage("s1", {"data": "more"}, {"data": "and more"}, topic="t")
    before = len(rig.facts)
    expected = rig.publish("s1", "s2", "s3")
    meta, t, u = ([fact for fact in rig.facts[before:] if fact.log_id == log_id] for log_id in (META_LOG_ID, 1, 2))
    assert (len(meta), len(t), len(u)) == (2, 3, 1)
    rig.facts[before:] = meta[:decided] + u[:kept_u] + t[:kept_t] + meta[1 : 1 + finished]
    again = rig.replayed()
    unfinished = again.machine.batches.unfinished()
    assert len(unfinished) == (decided and not finished)
    for batch in unfinished:
        again.append_stages(batch)
        again.append_stages(batch)
        again.finish(batch)
    assert sorted(again.machine.batches.stages) == ([] if decided else ["s1", "s2", "s3"])
    assert datas(again, "t") == (["old", 1, 2, "more", "and more", 4] if decided else ["old"])
    assert datas(again, "u") == (["old", 3] if decided else ["old"])
    assert again.publish("s1", "s2", "s3").written == expected.written
    third = again.replayed()
    assert (third.view("t"), third.scan("t")) == (again.view("t"), again.scan("t"))
    assert third.machine.batches.unfinished() == [] and third.log("t").published == {}


def test_where_a_batch_begins_in_each_log() -> None:
    rig = staged_rig()
    batch = rig.decide("s1", "s2", "s3")
    assert [(log.topic, first_seq) for log, first_seq in rig.append_stages(batch)] == [("t", 2), ("u", 2)]
    assert [(log.topic, first_seq) for log, first_seq in rig.append_stages(batch)] == [("t", 2), ("u", 2)]
    assert rig.log("t").published == {3: (2, 2), 5: (4, 1)}


def test_a_publish_obeys_the_caps_of_its_topics() -> None:
    rig = Rig()
    rig.configure(cap_records=2)
    rig.stage("s", {"data": 1}, {"data": 2}, {"data": 3})
    rig.publish("s")
    assert rig.view() == View(3, 2, 2, 2, 2) == rig.replayed().view()


def test_an_ephemeral_topic_takes_a_batch_in_memory_only() -> None:
    rig = Rig()
    rig.configure(durability="ephemeral")
    rig.stage("s", {"data": 1})
    rig.publish("s")
    assert datas(rig, "t") == [1]
    assert not [fact for fact in rig.facts if fact.appended], "neither the stage nor its topic is stored"


def test_a_topic_deleted_meanwhile_gets_nothing() -> None:
    rig = staged_rig()
    batch = rig.decide("s1", "s2")
    rig.drop("t")
    rig.append_stages(batch)
    answer = rig.finish(batch)
    assert answer.written[0] == Written(topic="t", partition=0, first_seq=0, last_seq=-1, head_seq=0)
    assert answer.written[0].count == 0 and answer.written[1].first_seq == 2
    again = rig.replayed()
    assert again.machine.topics.get("t") is None and datas(again, "u") == ["old", 3]


def test_aborted_stages_are_gone() -> None:
    rig = staged_rig()
    assert rig.abort("s1", "unknown", "s3") == Aborted(stages=("s1", "s3"))
    assert rig.abort("s1") == Aborted(stages=())
    again = rig.replayed()
    for one in (rig, again):
        assert sorted(one.machine.batches.stages) == ["s2"] and one.machine.totals.count == 3
        with pytest.raises(StageNotFound):
            one.decide("s1")
    assert rig.stage("s1", {"data": 1}, topic="u").count == 1, "the name is free again"


def test_a_stage_that_is_named_twice_is_aborted_once() -> None:
    rig = staged_rig()
    facts = len(rig.facts)
    assert rig.abort("s1", "s1", "never", "s3") == Aborted(stages=("s1", "s3"))
    assert len(rig.facts) == facts + 2 and set(rig.replayed().machine.batches.stages) == {"s2"}


def test_stages_that_nobody_published_are_due() -> None:
    rig = Rig(Bounds(stage_ttl_ms=100))
    rig.configure()
    rig.stage("s1", {"data": 1})
    rig.now_ms += 50
    rig.stage("s1", {"data": 2})
    rig.stage("s2", {"data": 1})
    rig.stage("s3", {"data": 1})
    rig.decide("s3")
    batches = rig.machine.batches
    assert batches.due(T0_MS + 99) == []
    assert batches.due(T0_MS + 100) == ["s1"], "writing to a stage does not prolong it"
    assert batches.due(T0_MS + 1000) == ["s1", "s2"], "what is decided does not expire"
    assert rig.replayed().machine.batches.due(T0_MS + 1000) == ["s1", "s2"]


def test_answers_are_kept_for_a_day_and_the_newest_of_a_producer_longer() -> None:
    rig = staged_rig()
    rig.publish("s1", epoch=1)
    rig.now_ms += 10
    rig.publish("s2", epoch=2)
    unfinished = rig.decide("s3", producer_id="q")
    batches = rig.machine.batches
    batches.forget_before(T0_MS + PUBLISHED_KEPT_MS - 1)
    assert list(batches.by_producer) == [("p", 1), ("p", 2), ("q", 1)]
    batches.forget_before(T0_MS + PUBLISHED_KEPT_MS)
    assert list(batches.by_producer) == [("p", 2), ("q", 1)] and batches.newest_epoch == {"p": 2, "q": 1}
    batches.forget_before(T0_MS + 2 * PUBLISHED_KEPT_MS)
    assert list(batches.by_producer) == [("p", 2), ("q", 1)] and batches.newest_epoch == {"p": 2, "q": 1}
    assert batches.by_producer["q", 1] is unfinished
    rig.now_ms = T0_MS + 3 * PUBLISHED_KEPT_MS
    rig.stage("s4", {"data": 5}, topic="t")
    again = rig.decide("s4", epoch=2)
    assert again.answer is not None and again.answer.written[0].topic == "u", "a week later it is still known"
    rig.publish("s4", epoch=3)
    assert list(batches.by_producer) == [("q", 1), ("p", 3)], "with a newer one it is not needed any more"


def test_records_go_into_a_stage_once_at_their_place() -> None:
    rig = Rig()
    rig.configure()

    def stage(at: int | None, *datas: object) -> StageState:
        records = Records.of([{"data": data} for data in datas])
        reply = rig.machine.step(Stage("s", "t", records, 0, at), rig.now_ms).reply
        assert isinstance(reply, StageState)
        return reply

    with pytest.raises(StageNotFound):
        stage(1, "too early")
    assert [stage(0, 1, 2).count, stage(0, 1, 2).count, stage(2, 3).count, stage(2, 3).count] == [2, 2, 3, 3]
    before = frozen(rig)
    for at in (0, 1, 4):
        with pytest.raises(StageConflict):
            stage(at, "elsewhere")
    assert frozen(rig) == before
    assert stage(None, "at the end").count == 4


def test_answers_to_older_epochs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PUBLISHED_ANSWERS_MAX", 2)
    rig = Rig()
    rig.configure()
    for epoch in range(5):
        rig.stage("s", {"data": epoch})
        rig.publish("s", epoch=epoch)
    assert list(rig.machine.batches.by_producer) == [("p", 2), ("p", 3), ("p", 4)]


def test_a_batch_that_is_being_published_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PUBLISHED_ANSWERS_MAX", 1)
    rig = staged_rig()
    unfinished = rig.decide("s1", producer_id="~slow")
    rig.publish("s2", producer_id="~a", epoch=0)
    rig.publish("s3", producer_id="~b", epoch=1)
    assert list(rig.machine.batches.by_producer) == [("~slow", 1), ("~a", 0), ("~b", 1)]
    rig.append_stages(unfinished)
    assert rig.finish(unfinished).written[0].count == 2
    rig.stage("s4", {"data": 5}, topic="t")
    rig.publish("s4", producer_id="~c", epoch=2)
    assert list(rig.machine.batches.by_producer) == [("~c", 2)]


def test_a_stage_that_a_repair_lost_keeps_no_batch_from_its_end() -> None:
    rig = staged_rig()
    rig.decide("s1", "s2")
    batches = rig.machine.batches
    lost = batches.stages.pop("s1")
    batches.apply(rig.machine, StageDropped("s1"))
    assert lost.log.log_id in rig.machine.logs and "s2" in batches.stages
    batches.apply(rig.machine, BatchFinished("p", 1, [("t", 0, 2, 3, 4), ("u", 0, 2, 2, 2)], rig.now_ms))
    answer = batches.by_producer["p", 1].answer
    assert answer is not None and [part.topic for part in answer.written] == ["t", "u"]
    assert set(batches.stages) == {"s3"}


def refusing_rig() -> Rig:
    rig = Rig(Bounds(staged_bytes_max=30))
    rig.configure("full", cap_records=2, cap_bytes=9, discard="reject")
    rig.write({"data": 1}, topic="full")
    rig.configure("roomy", partitions=2)
    rig.stage("f1", {"data": 1}, topic="full")
    rig.stage("f2", {"data": 1}, topic="full")
    rig.stage("large", {"data": 1}, {"data": 1}, {"data": 1}, topic="full")
    rig.stage("wide", {"data": "12345678"}, topic="full")
    rig.stage("r", {"data": 1}, topic="roomy", partition=1)
    rig.stage("taken", {"data": 1}, topic="roomy")
    rig.decide("taken", producer_id="q", epoch=5)
    return rig


REFUSALS: dict[str, tuple[Callable[[Rig], object], type[TopicsError], str, dict[str, object]]] = {
    "stage, no topic": (
        lambda rig: rig.stage("s", {"data": 1}, topic="none"),
        TopicNotFound,
        'topic "none" does not exist',
        {"topic": "none"},
    ),
    "stage, no partition": (
        lambda rig: rig.stage("s", {"data": 1}, topic="roomy", partition=2),
        InvalidRequest,
        'topic "roomy" has partitions 0 to 1, not 2',
        {"field": "partition", "expected": "0..1"},
    ),
    "stage, no name": (
        lambda rig: rig.stage("", {"data": 1}, topic="roomy"),
        InvalidRequest,
        "a stage id has 1 to 128 bytes",
        {"field": "stage"},
    ),
    "stage, long name": (
        lambda rig: rig.stage("ä" * 65, {"data": 1}, topic="roomy"),
        InvalidRequest,
        "a stage id has 1 to 128 bytes",
        {"field": "stage"},
    ),
    "stage, for another topic": (
        lambda rig: rig.stage("r", {"data": 1}, topic="full"),
        StageConflict,
        'stage "r" holds records for partition 1 of topic "roomy"',
        {"topic": "roomy", "partition": 1},
    ),
    "stage, for another partition": (
        lambda rig: rig.stage("r", {"data": 1}, topic="roomy"),
        StageConflict,
        'stage "r" holds records for partition 1 of topic "roomy"',
        {"topic": "roomy", "partition": 1},
    ),
    "stage, decided": (
        lambda rig: rig.stage("taken", {"data": 1}, topic="roomy"),
        StageConflict,
        'stage "taken" is being published already',
        {"stage": "taken"},
    ),
    "stage, too much": (
        lambda rig: rig.stage("r", {"data": "x" * 30}, topic="roomy", partition=1),
        Throttled,
        "too much is staged; publish or abort some stages, or raise TOPICS_MAX_STAGED_BYTES",
        {"limit": "max_staged_bytes", "max": 30},
    ),
    "abort, decided": (
        lambda rig: rig.abort("f1", "taken"),
        StageConflict,
        'stage "taken" is being published already',
        {"stage": "taken"},
    ),
    "publish, none": (
        lambda rig: rig.decide(),
        InvalidRequest,
        f"publish 1 to {STAGES_PER_BATCH_MAX} stages",
        {"field": "stages"},
    ),
    "publish, one twice": (
        lambda rig: rig.decide("f1", "f1"),
        InvalidRequest,
        "each stage may be published once",
        {"field": "stages"},
    ),
    "publish, no producer": (
        lambda rig: rig.decide("f1", producer_id=""),
        InvalidRequest,
        "a producer id has 1 to 128 bytes",
        {"field": "producer_id"},
    ),
    "publish, a negative epoch": (
        lambda rig: rig.decide("f1", epoch=-1),
        InvalidRequest,
        "an epoch is a whole number from 0",
        {"field": "epoch"},
    ),
    "publish, an unknown stage": (
        lambda rig: rig.decide("f1", "none"),
        StageNotFound,
        'there is no stage "none": it expired, was aborted, or never was',
        {"stage": "none"},
    ),
    "publish, a stage of another batch": (
        lambda rig: rig.decide("r", "taken"),
        StageConflict,
        'stage "taken" is being published by another batch',
        {"stage": "taken"},
    ),
    "publish, an older epoch": (
        lambda rig: rig.decide("r", producer_id="q", epoch=4),
        ProducerFenced,
        'producer "q" has published epoch 5 already; 4 is older',
        {"newest_epoch": 5},
    ),
    "publish, full together": (
        lambda rig: rig.decide("r", "f1", "f2"),
        TopicFull,
        'topic "full" is full; delete records, or raise its cap',
        {"topic": "full"},
    ),
    "publish, full by bytes": (
        lambda rig: rig.decide("r", "wide"),
        RecordTooLarge,
        'the batch is larger than all that topic "full" may hold',
        {"topic": "full"},
    ),
    "publish, larger than the cap together": (
        lambda rig: rig.decide("f1", "f2", "large"),
        RecordTooLarge,
        'the batch is larger than all that topic "full" may hold',
        {"topic": "full"},
    ),
    "publish, larger than the cap": (
        lambda rig: rig.decide("large"),
        RecordTooLarge,
        'the batch is larger than all that topic "full" may hold',
        {"topic": "full"},
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_refused_says_why_and_changes_nothing(name: str) -> None:
    act, kind, message, detail = REFUSALS[name]
    rig = refusing_rig()
    before = frozen(rig.machine)
    with pytest.raises(kind) as refused:
        act(rig)
    assert type(refused.value) is kind
    assert (refused.value.message, refused.value.detail) == (message, detail)
    assert frozen(rig.machine) == before


def test_a_publish_to_a_topic_that_is_gone_is_refused() -> None:
    rig = refusing_rig()
    rig.drop("full")
    before = frozen(rig.machine)
    with pytest.raises(TopicNotFound):
        rig.decide("r", "f1")
    assert frozen(rig.machine) == before


def test_too_many_stages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STAGES_MAX", 2)
    rig = Rig()
    rig.configure()
    for stage in ("s1", "s2", "s1"):
        rig.stage(stage, {"data": 1})
    with pytest.raises(Throttled):
        rig.stage("s3", {"data": 1})


def test_the_step_answers_with_the_batch() -> None:
    rig = staged_rig()
    outcome = rig.step(Publish(("s1",), "p", 1))
    assert outcome.must_sync and len(outcome.facts) == 1
    assert rig.step(Publish(("s1",), "p", 1)).facts == []


@pytest.mark.parametrize("start", range(4))
def test_records_come_out_of_a_block_as_they_went_in(start: int) -> None:
    items: list[dict[str, Any]] = [
        {"data": 1, "tag": "ä", "node": "n1"},
        {"data": {"x": [1]}, "meta": {"k": "v"}},
        {"data": None, "node": 'n"2', "meta": {}, "tag": "b"},
        {"data": "%d"},
    ]
    block = Records.of(items).encode(9, T0_MS).as_block()
    taken = records_of(block, start).encode(100, T0_MS + 5)
    fresh = Records.of(items[start:]).encode(100, T0_MS + 5).as_block()
    found = taken.as_block()
    assert found.text == fresh.text and taken.payload_bytes == int(fresh.sizes.sum())
    assert found.ends.tolist() == fresh.ends.tolist() and found.sizes.tolist() == fresh.sizes.tolist()
    for index in range(found.count):
        assert (found.tag(index), found.node(index)) == (fresh.tag(index), fresh.node(index))
        assert (found.meta(index), found.data(index)) == (fresh.meta(index), fresh.data(index))


def test_a_stage_promises_what_fsync_promises() -> None:
    assert STAGE_CONFIG.durable and not STAGE_CONFIG.cap_records and not STAGE_CONFIG.ttl_ms
