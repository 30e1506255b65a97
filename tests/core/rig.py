"""What the tests of the core share: a machine driven by hand, its replay, and a copy of all state to compare."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
import numpy as np

from topics.core import batch as batches
from topics.core.batch import Batch
from topics.core.commands import Abort, Append, Command, Configure, Delete, Drop, ForgetProducer, Publish, Stage
from topics.core.cut import PLAIN, Shape, cut
from topics.core.dedupe import DedupeKey
from topics.core.log import Log
from topics.core.machine import Bounds, Machine
from topics.core.match import parse_match
from topics.core.outcome import Outcome, StoredFact
from topics.core.read import plan_read
from topics.core.records import Records
from topics.core.registry import META_LOG_ID
from topics.model import Page, Published, Record, parse_records
from topics.testing.oracle import Answer, View

T0_MS = 1_748_470_000_000
PLENTY = 1 << 30
WITH_TAGS = Shape(tags=True)


class Rig:
    """A machine, the facts it has yielded, and the time."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.machine = Machine(bounds)
        self.facts: list[StoredFact] = []
        self.now_ms = T0_MS

    def step(self, command: Command) -> Outcome:
        return self.keep(self.machine.step(command, self.now_ms))

    def keep(self, outcome: Outcome) -> Outcome:
        self.store(outcome.facts)
        return outcome

    def store(self, facts: Sequence[StoredFact]) -> None:
        # A fact is what its bytes say: buffers that alias live state must not change it later.
        self.facts += [StoredFact(fact.log_id, fact.appended, [b"".join(fact.body)]) for fact in facts]

    def configure(self, topic: str = "t", merge: bool = False, **fields: object) -> Any:
        return self.step(Configure(topic, fields, merge)).reply

    def write(
        self,
        *drafts: Mapping[str, Any],
        topic: str = "t",
        partition: int = 0,
        key: DedupeKey | None = None,
        create: bool | None = None,
        config: Mapping[str, object] | None = None,
    ) -> Any:
        return self.step(Append(topic, Records.of(drafts), partition, key, create, config)).reply

    def write_numbers(self, *numbers: int, topic: str = "t") -> Any:
        return self.write(*({"data": number} for number in numbers), topic=topic)

    def delete(self, topic: str = "t", before_seq: int | None = None, match: object = None, partition: int = 0) -> Any:
        found = None if match is None else parse_match(match)
        return self.step(Delete(topic, partition, before_seq, found)).reply

    def drop(self, topic: str = "t", if_empty: bool = False) -> Any:
        return self.step(Drop(topic, if_empty)).reply

    def stage(self, stage: str, *drafts: Mapping[str, Any], topic: str = "t", partition: int = 0) -> Any:
        return self.step(Stage(stage, topic, Records.of(drafts), partition)).reply

    def abort(self, *stages: str) -> Any:
        return self.step(Abort(stages)).reply

    def forget(self, producer_id: str, topic: str | None = None) -> Any:
        return self.step(ForgetProducer(producer_id, topic)).reply

    def decide(self, *stages: str, producer_id: str = "p", epoch: int = 1) -> Batch:
        found = self.step(Publish(stages, producer_id, epoch)).reply
        assert isinstance(found, Batch)
        return found

    def append_stages(self, batch: Batch) -> list[tuple[Log, int]]:
        facts, begins = batches.append_stages(self.machine, batch, self.now_ms)
        self.store(facts)
        return begins

    def finish(self, batch: Batch) -> Published:
        answer = self.keep(batches.finish(self.machine, batch, self.now_ms)).reply
        assert isinstance(answer, Published)
        return answer

    def publish(self, *stages: str, producer_id: str = "p", epoch: int = 1) -> Published:
        batch = self.decide(*stages, producer_id=producer_id, epoch=epoch)
        if batch.answer is not None:
            return msgspec.structs.replace(batch.answer, deduped=True)
        self.append_stages(batch)
        return self.finish(batch)

    def log(self, topic: str = "t", partition: int = 0) -> Log:
        """The log as it is by now."""
        found = self.machine.topic(topic)
        log = self.machine.log(found, partition)
        log.observe(found.config, self.now_ms)
        return log

    def view(self, topic: str = "t", partition: int = 0) -> View:
        log = self.log(topic, partition)
        return View(log.head_seq, log.earliest_seq(), log.evict_floor, log.count, log.bytes)

    def page(
        self,
        from_seq: int = 0,
        limit: int = 1000,
        byte_budget: int = PLENTY,
        nodes: Sequence[str] = (),
        match: object = None,
        shape: Shape = PLAIN,
        topic: str = "t",
        partition: int = 0,
    ) -> Page:
        log = self.log(topic, partition)
        wanted = None if match is None else parse_match(match)
        plan = plan_read(log, log.head_seq, from_seq, limit, byte_budget, [node.encode() for node in nodes], wanted)
        return Page(
            topic=topic,
            partition=partition,
            body=cut(plan.spans, shape),
            count=sum(span.end - span.start if span.chosen is None else len(span.chosen) for span in plan.spans),
            next_from_seq=plan.next_from_seq,
            head_seq=log.head_seq,
            earliest_seq=log.earliest_seq(),
            tombstone=plan.tombstone,
            scanned=plan.scanned,
        )

    def answer(self, from_seq: int, limit: int, byte_budget: int, **filters: Any) -> Answer:
        page = self.page(from_seq, limit, byte_budget, shape=WITH_TAGS, **filters)
        records = parse_records(page.body)
        assert len(records) == page.count <= page.scanned
        return Answer(records, page.tombstone, page.next_from_seq)

    def seqs(self, from_seq: int = 0, **options: Any) -> list[int]:
        return [record.seq for record in self.page(from_seq, **options).records]

    def walk(self, limit: int = 3, topic: str = "t", from_seq: int = 0) -> Iterator[Page]:
        """All pages from a cursor on, each beginning where the one before ended, to the head."""
        while True:
            page = self.page(from_seq, limit, topic=topic)
            yield page
            if page.caught_up:
                return
            assert page.next_from_seq > from_seq, "a page that is not the last one moves the cursor"
            from_seq = page.next_from_seq

    def scan(self, topic: str = "t", partition: int = 0) -> list[Record]:
        """Every live record, with its tag."""
        return list(self.page(limit=PLENTY, shape=WITH_TAGS, topic=topic, partition=partition).records)

    def replayed(self) -> Rig:
        """A second machine made from the stored facts alone."""
        other = Rig(self.machine.bounds)
        other.now_ms = self.now_ms
        other.store(self.facts)
        for fact in other.facts:
            (body,) = fact.body
            if fact.log_id == META_LOG_ID:
                other.machine.replay_meta(body)
            elif fact.log_id in other.machine.logs:
                other.machine.replay_log(other.machine.logs[fact.log_id], fact.appended, memoryview(body))
        for log in other.machine.logs.values():
            log.recount()
        return other


def frozen(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """All that a value holds, down to the last byte, as nested tuples that can be compared."""
    if value is None or isinstance(value, int | float | str | bytes | Enum):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, np.ndarray | array):
        return type(value).__name__, value.tobytes()
    if id(value) in seen:
        return "cycle"
    seen |= {id(value)}
    if isinstance(value, Mapping):
        return tuple((frozen(key, seen), frozen(item, seen)) for key, item in value.items())
    if isinstance(value, set | frozenset):
        return tuple(sorted(map(repr, value)))
    if isinstance(value, Sequence):
        return tuple(frozen(item, seen) for item in value)
    return type(value).__name__, tuple((name, frozen(getattr(value, name), seen)) for name in _names(value))


def _names(value: Any) -> list[str]:
    if isinstance(value, msgspec.Struct):
        return list(value.__struct_fields__)
    if dataclasses.is_dataclass(value):
        return [one.name for one in dataclasses.fields(value)]
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    if "is_touched" in slots:
        slots.remove("is_touched")  # Of a queue: to look at its leases makes an empty table, which says the same.
    return [*slots, *vars(value)] if hasattr(value, "__dict__") else slots
