"""Atomic batches over several topics: stage, publish, abort, expire.

A *stage* is a hidden log of its own: records put aside for one partition of one topic, stored like any others,
seen by nobody. Publishing goes in three steps, each a fact:

    decided    in the meta log, naming the stages: from here on the batch happens, whatever breaks
    appended   in each target log, the staged records with their final seqs, naming the stage
    finished   in the meta log, with the seqs: the answer for everybody who asks again; the stages are gone

A crash before `decided` leaves stages that expire. A crash after it is made good by recovery, which appends what is
missing (`published` in a log says what is there already). Readers see nothing of a batch before all of it is durable,
and then all of it at one moment (`engine/visibility.py`).
A job may wait (`core/waits.py`): the stage keeps what was said of it, and the times that follow from that and from the
moment of the decision are stored with the jobs, the same whatever crashes in between.

The answer is kept for `(producer, epoch)`, so publishing twice gives the first answer. The answer to the newest epoch
of a producer, and with it the fence against older ones, is kept until the producer is forgotten by command: a program
that was away for months may repeat its last batch. Answers to older epochs, and those of producers with a one-off id
(`core/fence.py`), are kept for a day, and fewer when there are many.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, assert_never

import numpy as np

from topics.core import volatile
from topics.core.block import Block
from topics.core.commands import Publish, Stage
from topics.core.delay import check_delay
from topics.core.facts import (
    Appended,
    BatchDecided,
    BatchFact,
    BatchFinished,
    ProducerForgotten,
    StageDropped,
    StageOpened,
    encode,
)
from topics.core.fence import is_one_off, no_room
from topics.core.log import SEQ_BASE, Log
from topics.core.outcome import Outcome, StoredFact
from topics.core.records import Records
from topics.core.registry import META_LOG_ID, Topic
from topics.core.transaction import staged_key
from topics.core.waits import times_of
from topics.errors import (
    InvalidRequest,
    ProducerFenced,
    RecordTooLarge,
    StageConflict,
    StageNotFound,
    Throttled,
    TopicFull,
)
from topics.limits import (
    PRODUCER_ID_BYTES_MAX,
    PRODUCERS_MAX,
    PUBLISHED_ANSWERS_MAX,
    PUBLISHED_KEPT_MS,
    STAGE_ID_BYTES_MAX,
    STAGES_MAX,
    STAGES_PER_BATCH_MAX,
)
from topics.model import Aborted, Discard, Durability, Published, StageState, TopicConfig, Written

if TYPE_CHECKING:
    from topics.core.machine import Machine

STAGE_CONFIG = TopicConfig(durability=Durability.FSYNC)


@dataclass(slots=True)
class OpenStage:
    stage: str
    log: Log
    topic: str
    partition: int
    expires_ms: int
    decided: bool = False
    in_memory: bool = False
    """Its topic was ephemeral when it was opened, so no fact and no segment holds its records."""


@dataclass(slots=True)
class Batch:
    producer_id: str
    epoch: int
    stages: list[str]
    decided_ms: int
    answer: Published | None = None


@dataclass(slots=True)
class Batches:
    stages: dict[str, OpenStage] = field(default_factory=dict)
    by_producer: OrderedDict[tuple[str, int], Batch] = field(default_factory=OrderedDict)
    newest_epoch: dict[str, int] = field(default_factory=dict)
    passing: OrderedDict[tuple[str, int], None] = field(default_factory=OrderedDict)
    """Batches that are forgotten after a day, roughly oldest first: of older epochs, and of one-off producers."""
    kept_count: int = 0
    """Producers in `newest_epoch` that are not one-off."""
    changed_stages: set[str] = field(default_factory=set)
    changed_batches: set[tuple[str, int]] = field(default_factory=set)
    """Stages and batches that a checkpoint has to write anew."""

    def staged_bytes(self) -> int:
        return sum(stage.log.bytes for stage in self.stages.values())

    def unfinished(self) -> list[Batch]:
        return [batch for batch in self.by_producer.values() if batch.answer is None]

    def lost(self) -> list[str]:
        """After a recovery: the stages whose records were in the memory of the process before."""
        return [stage.stage for stage in self.stages.values() if stage.in_memory and not stage.decided]

    def due(self, now_ms: int) -> list[str]:
        """Stages nobody published in time."""
        return [s.stage for s in self.stages.values() if not s.decided and s.expires_ms <= now_ms]

    def apply(self, machine: Machine, fact: BatchFact) -> None:
        match fact:
            case StageOpened():
                log = machine.logs.get(fact.log_id) or Log(fact.log_id, fact.topic, fact.partition, 0, machine.totals)
                machine.logs[fact.log_id] = log
                machine.next_log_id = max(machine.next_log_id, fact.log_id + 1)
                self.stages[fact.stage] = OpenStage(
                    fact.stage, log, fact.topic, fact.partition, fact.expires_ms, in_memory=fact.in_memory
                )
                self.changed_stages.add(fact.stage)
            case StageDropped():
                self.drop_stage(machine, fact.stage)
            case BatchDecided():
                self._put(Batch(fact.producer_id, fact.epoch, fact.stages, fact.decided_ms))
                for stage in fact.stages:
                    self.stages[stage].decided = True
                    self.changed_stages.add(stage)
            case BatchFinished():
                self._finish(machine, fact)
            case ProducerForgotten():
                self.forget_producer(fact.producer_id)
            case _:
                assert_never(fact)

    def _put(self, batch: Batch) -> None:
        key = (batch.producer_id, batch.epoch)
        newest = self.newest_epoch.get(batch.producer_id)
        if newest is None:
            self.kept_count += not is_one_off(batch.producer_id)
        self.by_producer[key] = batch
        self.newest_epoch[batch.producer_id] = batch.epoch if newest is None else max(newest, batch.epoch)
        self.changed_batches.add(key)
        if is_one_off(batch.producer_id) or self.newest_epoch[batch.producer_id] != batch.epoch:
            self.passing[key] = None
        if newest is not None and newest < batch.epoch:
            self._supersede((batch.producer_id, newest), batch.decided_ms)
        while len(self.passing) > PUBLISHED_ANSWERS_MAX and self._forget_oldest():
            pass

    def _supersede(self, key: tuple[str, int], now_ms: int) -> None:
        """A newer epoch of the same producer came: the answer is kept for what is left of its day."""
        before = self.by_producer[key]
        if before.answer is not None and before.decided_ms + PUBLISHED_KEPT_MS <= now_ms:
            self._forget(key)
        else:
            self.passing[key] = None

    def restore(self, batch: Batch) -> None:
        """A batch as a checkpoint kept it."""
        self._put(batch)

    def forget_before(self, now_ms: int) -> None:
        """Drop answers that are old enough that nobody repeats the question."""
        while self.passing:
            oldest = self.by_producer[next(iter(self.passing))]
            if oldest.decided_ms + PUBLISHED_KEPT_MS > now_ms or not self._forget_oldest():
                return

    def forget_producer(self, producer_id: str) -> None:
        """Drop all answers of a producer and its fence, as if it had never published."""
        for key in [key for key in self.by_producer if key[0] == producer_id]:
            self._forget(key)

    def _forget_oldest(self) -> bool:
        """Forget the oldest answer that may go; not one that is still to be given."""
        key = next(iter(self.passing))
        if self.by_producer[key].answer is None:
            return False
        self._forget(key)
        return True

    def _forget(self, key: tuple[str, int]) -> None:
        producer_id, epoch = key
        del self.by_producer[key]
        self.passing.pop(key, None)
        self.changed_batches.add(key)
        if self.newest_epoch.get(producer_id) == epoch:
            del self.newest_epoch[producer_id]
            self.kept_count -= not is_one_off(producer_id)

    def _finish(self, machine: Machine, fact: BatchFinished) -> None:
        batch = self.by_producer[(fact.producer_id, fact.epoch)]
        batch.answer = Published(written=tuple(_written(*part) for part in fact.parts))
        self.changed_batches.add((fact.producer_id, fact.epoch))
        for stage in batch.stages:
            found = self.stages.get(stage)
            if found is not None:
                target = _target(machine, found)
                if target is not None:
                    kept = {log_id: part for log_id, part in target.published.items() if log_id != found.log.log_id}
                    target.published = kept
            self.drop_stage(machine, stage)
        batch.stages = []

    def drop_stage(self, machine: Machine, stage: str) -> None:
        found = self.stages.pop(stage, None)
        if found is not None:
            machine.forget(found.log.log_id)
            self.changed_stages.add(stage)


def _written(topic: str, partition: int, first_seq: int, last_seq: int, head_seq: int) -> Written:
    return Written(topic=topic, partition=partition, first_seq=first_seq, last_seq=last_seq, head_seq=head_seq)


def stage(machine: Machine, command: Stage, now_ms: int) -> Outcome:
    """Add records to a stage, opening it at its first."""
    if not 1 <= len(command.stage.encode()) <= STAGE_ID_BYTES_MAX:
        raise InvalidRequest(f"a stage id has 1 to {STAGE_ID_BYTES_MAX} bytes", field="stage")
    batches = machine.batches
    topic = machine.topic(command.topic)
    machine.log(topic, command.partition)
    check_delay(topic.name, topic.config, bool(command.waits))
    found = batches.stages.get(command.stage)
    in_memory = topic.config.durability is Durability.EPHEMERAL
    if found is not None and (found.topic, found.partition) != (topic.name, command.partition):
        raise StageConflict(
            f'stage "{command.stage}" holds records for partition {found.partition} of topic "{found.topic}"',
            topic=found.topic,
            partition=found.partition,
        )
    if found is not None and found.decided:
        raise StageConflict(f'stage "{command.stage}" is being published already', stage=command.stage)
    if found is not None and found.in_memory is not in_memory:
        raise _other_class(found)
    if command.at is not None and (repeated := _repeated(command, topic, found)) is not None:
        return repeated
    staged = batches.staged_bytes() + command.records.payload_bytes
    if staged > machine.bounds.staged_bytes_max or (found is None and len(batches.stages) >= STAGES_MAX):
        raise Throttled(
            "too much is staged; publish or abort some stages, or raise TOPICS_MAX_STAGED_BYTES",
            limit="max_staged_bytes",
            max=machine.bounds.staged_bytes_max,
        )
    facts = []
    if found is None:
        opened = StageOpened(
            command.stage,
            machine.next_log_id,
            topic.name,
            command.partition,
            now_ms + machine.bounds.stage_ttl_ms,
            in_memory,
        )
        batches.apply(machine, opened)
        found = batches.stages[command.stage]
        if in_memory:
            volatile.change(found.log, stored=False)
        facts.append(StoredFact(META_LOG_ID, False, [encode(opened)]))
    log = found.log
    encoded = command.records.encode(log.next_seq, max(now_ms, log.last_ts))
    log.append(encoded, STAGE_CONFIG)
    appended = Appended(encoded, waits=command.waits)
    log.remember(appended)
    if not in_memory:
        facts.append(StoredFact(log.log_id, True, appended.buffers()))
    return _staged(topic, found, facts)


def _other_class(found: OpenStage) -> StageConflict:
    before = "ephemeral" if found.in_memory else "not ephemeral"
    return StageConflict(
        f'stage "{found.stage}" was opened while topic "{found.topic}" was {before}, which has changed; '
        "abort the stage and stage its records again",
        stage=found.stage,
        topic=found.topic,
    )


def _staged(topic: Topic, found: OpenStage, facts: list[StoredFact]) -> Outcome:
    """What a stage holds, answered when all of it is safe."""
    log = found.log
    reply = StageState(
        stage=found.stage,
        topic=found.topic,
        type=topic.config.type,
        partition=found.partition,
        partitions=topic.config.partitions,
        count=log.count,
        bytes=log.bytes,
        expires_ts=found.expires_ms,
    )
    durability = Durability.EPHEMERAL if found.in_memory else Durability.FSYNC
    return Outcome(reply, facts, must_sync=True, log=log, seq=log.head_seq, durability=durability)


def _repeated(command: Stage, topic: Topic, found: OpenStage | None) -> Outcome | None:
    """The answer to records that are in their stage already; None when they are the next ones."""
    count = 0 if found is None else found.log.count
    if command.at == count:
        return None
    if found is not None and command.at is not None and command.at + command.records.count == count:
        return _staged(topic, found, [])
    if found is None:
        raise StageNotFound(
            f'there is no stage "{command.stage}": it expired, was aborted, or never was', stage=command.stage
        )
    raise StageConflict(
        f'stage "{command.stage}" holds {count} records, so the next ones are at {count}, not at {command.at}',
        stage=command.stage,
        count=count,
    )


def abort(machine: Machine, stages: tuple[str, ...]) -> Outcome:
    """Forget stages; one that is not there is no error, one that is being published is."""
    open_stages = machine.batches.stages
    for name in stages:
        if name in open_stages and open_stages[name].decided:
            raise StageConflict(f'stage "{name}" is being published already', stage=name)
    present = [name for name in dict.fromkeys(stages) if name in open_stages]
    facts = []
    for name in present:
        machine.batches.drop_stage(machine, name)
        facts.append(StoredFact(META_LOG_ID, False, [encode(StageDropped(name))]))
    return Outcome(Aborted(stages=tuple(present)), facts, must_sync=True)


def decide(machine: Machine, command: Publish, now_ms: int) -> Outcome:
    """The first step of publishing. The reply is a `Batch`; it has an answer already if it was published before."""
    _check_publish(command)
    batches = machine.batches
    key = (command.producer_id, command.epoch)
    known = batches.by_producer.get(key)
    if known is not None:
        return Outcome(known)
    newest = batches.newest_epoch.get(command.producer_id)
    if newest is not None and command.epoch < newest:
        raise ProducerFenced(
            f'producer "{command.producer_id}" has published epoch {newest} already; {command.epoch} is older',
            newest_epoch=newest,
        )
    if newest is None and not is_one_off(command.producer_id) and batches.kept_count >= PRODUCERS_MAX:
        raise no_room(command.producer_id, "the server", PRODUCERS_MAX, "topics producer forget ID")
    for name in command.stages:
        found = batches.stages.get(name)
        if found is None:
            raise StageNotFound(f'there is no stage "{name}": it expired, was aborted, or never was', stage=name)
        if found.decided:
            raise StageConflict(f'stage "{name}" is being published by another batch', stage=name)
        topic = machine.topic(found.topic)
        machine.log(topic, found.partition)
        if found.in_memory and topic.config.durability is not Durability.EPHEMERAL:
            # A crash between the decision and the append would take these records and leave the rest of the batch.
            raise _other_class(found)
    _check_room(machine, [batches.stages[name] for name in command.stages], now_ms)
    fact = BatchDecided(command.producer_id, command.epoch, list(command.stages), now_ms)
    batches.apply(machine, fact)
    return Outcome(batches.by_producer[key], [StoredFact(META_LOG_ID, False, [encode(fact)])], must_sync=True)


def _check_publish(command: Publish) -> None:
    if not 1 <= len(command.stages) <= STAGES_PER_BATCH_MAX:
        raise InvalidRequest(f"publish 1 to {STAGES_PER_BATCH_MAX} stages", field="stages")
    if len(set(command.stages)) != len(command.stages):
        raise InvalidRequest("each stage may be published once", field="stages")
    if not 1 <= len(command.producer_id.encode()) <= PRODUCER_ID_BYTES_MAX:
        raise InvalidRequest(f"a producer id has 1 to {PRODUCER_ID_BYTES_MAX} bytes", field="producer_id")
    if not 0 <= command.epoch < 2**64:
        raise InvalidRequest("an epoch is a whole number from 0", field="epoch")


def _check_room(machine: Machine, stages: list[OpenStage], now_ms: int) -> None:
    """A topic that refuses when full refuses the whole batch before anything is decided."""
    wanted: dict[tuple[str, int], tuple[int, int]] = {}
    for part in stages:
        count, size = wanted.get((part.topic, part.partition), (0, 0))
        wanted[(part.topic, part.partition)] = (count + part.log.count, size + part.log.bytes)
    for (name, partition), (count, size) in wanted.items():
        topic = machine.topic(name)
        log = machine.log(topic, partition)
        log.observe(topic.config, now_ms)
        config = topic.config
        if config.discard is not Discard.REJECT:
            continue
        if 0 < config.cap_records < count or 0 < config.cap_bytes < size:
            raise RecordTooLarge(f'the batch is larger than all that topic "{name}" may hold', topic=name)
        if 0 < config.cap_records < log.count + count or 0 < config.cap_bytes < log.bytes + size:
            raise TopicFull(f'topic "{name}" is full; delete records, or raise its cap', topic=name)


def append_stages(machine: Machine, batch: Batch, now_ms: int) -> tuple[list[StoredFact], list[tuple[Log, int]]]:
    """The second step: the staged records into their topics, as far as they are not there yet.

    Answers the facts, and the logs with the seq at which the batch begins in each.
    """
    facts: list[StoredFact] = []
    targets: dict[int, tuple[Log, int]] = {}
    for name in batch.stages:
        found = machine.batches.stages[name]
        target = _target(machine, found)
        if target is None:
            continue
        config = machine.topic(found.topic).config
        first, done = target.published.get(found.log.log_id, (target.next_seq, 0))
        targets.setdefault(target.log_id, (target, first))
        for run in found.log.parts_from(1 + done):
            seq = max(run.first_seq, 1 + done)
            while seq <= run.last_seq:
                block, _ = run.block_at(seq)
                records = records_of(block, seq - block.first_seq)
                encoded = records.encode(target.next_seq, max(now_ms, target.last_ts))
                floors = target.append(encoded, config)
                waits = b""
                # A topic that was made anew since may be another type.
                if found.log.waits is not None and target.queue is not None:
                    waits = times_of(found.log.waits, seq - SEQ_BASE, encoded.count, batch.decided_ms)
                keyed = target.queue is not None and target.queue.keeps_times
                key = staged_key(name, seq - SEQ_BASE) if keyed else None
                fact = Appended(
                    encoded, target.granted_ceiling, floors, key, found.log.log_id, waits=waits, keyed=keyed
                )
                target.remember(fact)
                if config.durability is not Durability.EPHEMERAL:
                    facts.append(StoredFact(target.log_id, True, fact.buffers()))
                seq = block.last_seq + 1
    return facts, list(targets.values())


def last_seq_in(machine: Machine, batch: Batch, log: Log) -> int:
    """The last seq that an appended batch has in one of its logs; 0 when its stages were empty."""
    stage_logs = [machine.batches.stages[name].log.log_id for name in batch.stages]
    parts = [log.published[log_id] for log_id in stage_logs if log_id in log.published]
    return max((first_seq + count - 1 for first_seq, count in parts), default=0)


def finish(machine: Machine, batch: Batch, now_ms: int) -> Outcome:
    """The last step: keep the answer, drop the stages."""
    parts = []
    for name in batch.stages:
        found = machine.batches.stages[name]
        target = _target(machine, found)
        first, count = target.published.get(found.log.log_id, (0, 0)) if target is not None else (0, 0)
        head_seq = target.head_seq if target is not None else 0
        parts.append((found.topic, found.partition, first, first + count - 1, head_seq))
    fact = BatchFinished(batch.producer_id, batch.epoch, parts, now_ms)
    machine.batches.apply(machine, fact)
    answer = machine.batches.by_producer[(batch.producer_id, batch.epoch)].answer
    return Outcome(answer, [StoredFact(META_LOG_ID, False, [encode(fact)])], must_sync=True)


def _target(machine: Machine, found: OpenStage) -> Log | None:
    """The log a stage is meant for; None when its topic has been deleted since."""
    topic = machine.topics.get(found.topic)
    return None if topic is None else machine.logs.get(topic.first_log_id + found.partition)


def records_of(block: Block, start: int) -> Records:
    """The records of a block from a position on, as they came in."""
    text = bytes(block.text)
    ends = block.ends[start:].astype(np.int64) - 1
    starts = (ends - block.data_lens[start:]).tolist()
    records = Records([text[begin:end] for begin, end in zip(starts, ends.tolist(), strict=True)])
    records.payload_bytes = int(block.sizes[start:].sum(dtype=np.uint64))
    if block.meta_lens is not None:
        records.meta_lens = array("I", block.meta_lens[start:].tolist())
    if block.tag_ends is not None:
        tags = block.tag_list()[start:]
        records.tags = b"".join(tags)
        records.tag_ends = array("I", accumulate(map(len, tags)))
    if block.node_ids is not None:
        records.node_ids = array("H", block.node_ids[start:].tolist())
        records.node_names = block.node_names
    if block.meta_lens is not None or block.node_ids is not None:
        records.heads = [_head(block, index) for index in range(start, block.count)]
    return records


def _head(block: Block, index: int) -> bytes:
    """What stands between `$ts` and `data` in a record's text."""
    before = len(b'{"$seq":%d,"$ts":%d,' % (block.first_seq + index, block.ts(index)))
    data_at = int(block.ends[index]) - 1 - int(block.data_lens[index]) - len('"data":')
    return bytes(block.text[block.start(index) + before : data_at])
