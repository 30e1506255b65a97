"""The machine and the oracle side by side, driven by the same random commands and the same simulated time.

The sizes at which a tail becomes a block and a batch a run of its own are made small, so that a few dozen records
already lie in many blocks, runs and tails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.core.rig import PLENTY, Rig, frozen
from topics.core import log as log_module
from topics.core import tail as tail_module
from topics.core.dedupe import DedupeKey, IdempotencyKey, ProducerKey
from topics.core.facts import SeqsSkipped, encode
from topics.core.outcome import StoredFact
from topics.errors import TopicsError
from topics.model import Reason, TopicConfig
from topics.testing.oracle import Draft, Fate
from topics.testing.oracletopics import Oracle

TAGS = ("", "a", "a:1", "a:2", "b:a", "bö")
NODES = ("", "n1", "n2", 'q"')
DRAFTS = st.fixed_dictionaries(
    {"data": st.one_of(st.integers(0, 9), st.text("xyz\n", max_size=12), st.none(), st.just({"k": [1, "ä"]}))},
    optional={
        "tag": st.sampled_from(TAGS),
        "node": st.sampled_from(NODES),
        "meta": st.dictionaries(st.sampled_from("km"), st.text("v", max_size=3), max_size=2),
    },
)
SMALL = st.lists(DRAFTS, min_size=1, max_size=3)
LARGE = st.lists(DRAFTS, min_size=5, max_size=14)
KEYS: st.SearchStrategy[DedupeKey] = st.one_of(
    st.builds(IdempotencyKey, st.sampled_from("xyz")),
    st.builds(ProducerKey, st.sampled_from("pq"), st.integers(0, 1), st.integers(0, 4)),
)
EVERY_KEY: list[DedupeKey] = [
    *map(IdempotencyKey, "xyz"),
    *(ProducerKey(producer, epoch, sequence) for producer in "pq" for epoch in range(2) for sequence in range(5)),
]
CONFIGS = st.fixed_dictionaries(
    # Never raised: whether a key that was dead for a while is found again then is nobody's promise.
    {"idempotency_window_ms": st.just(20)},
    optional={
        "ttl_ms": st.sampled_from([0, 5, 50]),
        "cap_records": st.sampled_from([0, 0, 1, 4, 12]),
        "cap_bytes": st.sampled_from([0, 0, 3, 20, 80]),
        "discard": st.sampled_from(["old", "reject"]),
        "durability": st.sampled_from(["disk", "fsync", "memory"]),
    },
)
PREDICATES = st.sampled_from(
    [["tag", "Eq", "a"], ["tag", "Eq", "a:1"], ["tag", "Glob", "a*"], ["tag", "Glob", "a:*"], ["tag", "Glob", "*"]]
)
TOPICS = st.sampled_from(["t", "t", "t", "u"])
SHARES = st.integers(0, 10)


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(log_module, "TAIL_BATCH_RECORDS_MAX", 4)
        self.patch.setattr(log_module, "TAIL_BATCH_BYTES_MAX", 400)
        self.patch.setattr(tail_module, "BLOCK_RECORDS", 6)
        self.patch.setattr(tail_module, "BLOCK_TEXT_BYTES", 300)
        self.rig = Rig()
        self.oracle = Oracle()
        self.floors: dict[str, tuple[int, int]] = {}
        self.stage_count = 0

    @initialize()
    def create(self) -> None:
        self.rig.configure("t")
        self.oracle.configure("t", TopicConfig(), self.rig.now_ms)
        self.rig.configure("u")
        self.oracle.configure("u", TopicConfig(), self.rig.now_ms)

    # ---- commands

    @rule(topic=TOPICS, drafts=SMALL | LARGE, key=st.none() | KEYS)
    def write(self, topic: str, drafts: list[Draft], key: DedupeKey | None) -> None:
        expected = self.refusal(lambda: self.oracle.log(topic).append(drafts, self.rig.now_ms, key))
        if isinstance(expected, TopicsError):
            self.refused(expected, lambda: self.rig.write(*drafts, topic=topic, key=key))
            return
        found = self.rig.write(*drafts, topic=topic, key=key)
        assert (found.first_seq, found.last_seq) == (expected.first_seq, expected.last_seq)
        assert found.deduped == expected.deduped

    @rule(topic=TOPICS, fields=CONFIGS)
    def configure(self, topic: str, fields: dict[str, Any]) -> None:
        config = msgspec.convert(fields, TopicConfig)
        self.rig.configure(topic, **fields)
        self.oracle.configure(topic, config, self.rig.now_ms)

    @rule(elapsed_ms=st.sampled_from([1, 3, 5, 6, 20, 60, 101]))
    def wait(self, elapsed_ms: int) -> None:
        self.rig.now_ms += elapsed_ms

    @rule(topic=TOPICS, share=st.none() | SHARES, match=PREDICATES)
    def delete_matching(self, topic: str, share: int | None, match: list[str]) -> None:
        self.delete(topic, None if share is None else self.at_share(topic, share), match)

    @rule(topic=TOPICS, share=SHARES)
    def delete_prefix(self, topic: str, share: int) -> None:
        self.delete(topic, self.at_share(topic, share), None)

    def delete(self, topic: str, before_seq: int | None, match: list[str] | None) -> None:
        found = self.rig.delete(topic, before_seq, match)
        assert found.deleted == self.oracle.log(topic).delete(self.rig.now_ms, before_seq, match)
        view = self.oracle.log(topic).view(self.rig.now_ms)
        assert (found.earliest_seq, found.head_seq) == (view.earliest_seq, view.head_seq)
        assert (found.count, found.bytes) == (view.count, view.bytes)

    @rule(topic=TOPICS, length=st.integers(1, 4), reason=st.sampled_from([Reason.RESTART, Reason.DAMAGE]))
    def skip(self, topic: str, length: int, reason: Reason) -> None:
        log = self.rig.log(topic)
        fact = SeqsSkipped(log.next_seq, log.head_seq + length, reason)
        log.apply(fact)
        self.rig.store([StoredFact(log.log_id, False, [encode(fact)])])
        self.oracle.log(topic).skip(log.head_seq, reason)

    @rule(topic=st.just("u"))
    def recreate(self, topic: str) -> None:
        assert self.rig.drop(topic).deleted and self.oracle.drop(topic)
        self.rig.configure(topic)
        self.oracle.configure(topic, TopicConfig(), self.rig.now_ms)
        self.floors.pop(topic, None)

    @rule(topic=TOPICS, drafts=SMALL | LARGE, more=SMALL)
    def stage(self, topic: str, drafts: list[Draft], more: list[Draft]) -> None:
        self.stage_count += 1
        stage = f"s{self.stage_count}"
        for part in (drafts, more):
            assert self.rig.stage(stage, *part, topic=topic).count == self.oracle.stage(stage, topic, part)

    @precondition(lambda self: self.oracle.stages)
    @rule(epoch=st.integers(0, 5), most=st.integers(1, 3))
    def publish(self, epoch: int, most: int) -> None:
        stages = sorted(self.oracle.stages)[:most]
        expected = self.refusal(lambda: self.oracle.publish(stages, "spark", epoch, self.rig.now_ms))
        if isinstance(expected, TopicsError):
            self.refused(expected, lambda: self.rig.publish(*stages, producer_id="spark", epoch=epoch))
            return
        found = self.rig.publish(*stages, producer_id="spark", epoch=epoch)
        assert [(part.first_seq, part.last_seq) for part in found.written] == [
            (part.first_seq, part.last_seq) for part in expected
        ]
        assert found.deduped == any(part.deduped for part in expected)

    @precondition(lambda self: self.oracle.stages)
    @rule()
    def abort(self) -> None:
        stage = min(self.oracle.stages)
        assert self.rig.abort(stage).stages == (stage,) and self.oracle.abort(stage)

    # ---- reads

    @rule(
        topic=TOPICS,
        limit=st.integers(1, 9),
        byte_budget=st.sampled_from([1, 7, 30, PLENTY]),
        nodes=st.sampled_from([(), (), ("n1",), ("n1", 'q"'), ("nobody",)]),
        match=st.none() | PREDICATES,
    )
    def read(self, topic: str, limit: int, byte_budget: int, nodes: Sequence[str], match: list[str] | None) -> None:
        """From every cursor, and from one behind the head."""
        oracle = self.oracle.log(topic)
        for from_seq in range(oracle.head_seq + 2):
            found = self.rig.answer(from_seq, limit, byte_budget, nodes=nodes, match=match, topic=topic)
            assert found == oracle.read(from_seq, self.rig.now_ms, limit, byte_budget, nodes, match)

    @rule(topic=TOPICS, share=SHARES, limit=st.integers(1, 5))
    def walk(self, topic: str, share: int, limit: int) -> None:
        """What is not delivered is told of once, or has been deleted."""
        told: list[int] = []
        seen: list[int] = []
        from_seq = self.at_share(topic, share)
        for page in self.rig.walk(limit, topic, from_seq):
            if page.tombstone is not None:
                told += range(page.tombstone.gap_from, page.tombstone.gap_to + 1)
            seen += [record.seq for record in page.records]
        assert told == sorted(set(told)), "no seq is told of twice"
        assert seen == sorted(set(seen)), "the stream is strictly increasing"
        assert not set(told) & set(seen)
        items = self.oracle.log(topic).items[from_seq:]
        assert seen == [item.record.seq for item in items if item.fate is Fate.LIVE]
        lost = {item.record.seq for item in items if item.fate in (Fate.EVICTED, Fate.SKIPPED)}
        assert lost <= set(told), "loss is never silent"
        if not lost:
            assert not told, "a deleted gap is silent"

    @invariant()
    def everything_is_as_the_oracle_says(self) -> None:
        for topic in self.oracle.topics:
            view = self.rig.view(topic)
            assert view == self.oracle.log(topic).view(self.rig.now_ms)
            assert view.evict_floor <= view.earliest_seq
            before = self.floors.get(topic, (1, 1))
            self.floors[topic] = (view.evict_floor, view.earliest_seq)
            assert before[0] <= view.evict_floor and before[1] <= view.earliest_seq
        totals = self.rig.machine.totals
        logs = self.rig.machine.logs.values()
        assert (totals.count, totals.bytes) == (sum(log.count for log in logs), sum(log.bytes for log in logs))

    def teardown(self) -> None:
        self.replay()
        self.patch.undo()

    def replay(self) -> None:
        """Facts alone lead to the same state, for every reader at every cursor."""
        other = self.rig.replayed()
        for topic in self.oracle.topics:
            oracle = self.oracle.log(topic)
            assert other.view(topic) == self.rig.view(topic)
            assert other.scan(topic) == self.rig.scan(topic)
            for from_seq in range(oracle.head_seq + 2):
                found = other.answer(from_seq, 3, 40, topic=topic)
                assert found == oracle.read(from_seq, self.rig.now_ms, 3, 40)
            log, replayed = self.rig.log(topic), other.log(topic)
            window_ms = self.rig.machine.topic(topic).config.idempotency_window_ms
            for key in EVERY_KEY:
                first, second = (
                    self.refusal(partial(one.dedupe.lookup, key, self.rig.now_ms, window_ms)) for one in (log, replayed)
                )
                assert repr(first) == repr(second)
            assert frozen(log.published) == frozen(replayed.published)
        assert frozen(other.machine.batches.by_producer) == frozen(self.rig.machine.batches.by_producer)
        assert other.machine.batches.stages.keys() == self.rig.machine.batches.stages.keys()
        assert other.machine.next_log_id == self.rig.machine.next_log_id
        assert other.machine.next_epoch == self.rig.machine.next_epoch

    # ---- what the rules share

    def at_share(self, topic: str, share: int) -> int:
        """A seq so many tenths into the log."""
        return self.oracle.log(topic).head_seq * share // 10

    @staticmethod
    def refusal(act: Callable[[], Any]) -> Any:
        """What an act returns or is refused with."""
        try:
            return act()
        except TopicsError as error:
            return error

    def refused(self, expected: TopicsError, act: Callable[[], object]) -> None:
        for topic in self.oracle.topics:
            self.rig.log(topic)
        before = frozen(self.rig.machine)
        with pytest.raises(type(expected)):
            act()
        assert frozen(self.rig.machine) == before, "a refused command changes nothing"


def test_the_machine_does_what_the_oracle_says() -> None:
    run_state_machine_as_test(
        Model, settings=settings(max_examples=400, stateful_step_count=50, report_multiple_bugs=False)
    )


@pytest.mark.soak
def test_the_machine_does_what_the_oracle_says_for_longer() -> None:
    run_state_machine_as_test(Model, settings=settings(max_examples=5_000, stateful_step_count=100, derandomize=False))
