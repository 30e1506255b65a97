"""All state of an engine, and the decision of every command. Pure: no clock, no disk, no chance.

    step(command, now_ms) -> Outcome     decide and change state; or raise, and change nothing
    replay(log_id, …)                    the same change again, from a stored fact

A command is checked completely before the first change, so that a refused one leaves the state as it was. Each
fact names one log. Facts of the meta log say which topics, stages and batches there are; facts of a partition's
log say what is in it, and carry what was decided (seqs, time, floors), so that a replay decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, assert_never

from topics import model
from topics.core import (
    accountverbs,
    batch,
    ceiling,
    configure,
    deadletter,
    declaring,
    forget,
    live,
    room,
    routing,
    sources,
    verbs,
    volatile,
)
from topics.core import config as configs
from topics.core.accountcommands import OfAccounts
from topics.core.accountfacts import AccountFact
from topics.core.accounts import Accounts
from topics.core.block import Buffer
from topics.core.catalog import Catalog
from topics.core.commands import (
    Abort,
    Append,
    ChangeSources,
    Command,
    Configure,
    Delete,
    Drop,
    DropRouter,
    ForgetProducer,
    Publish,
    PutRouter,
    Stage,
)
from topics.core.delay import NO_DELAY, Delay, check_delay, delay_of
from topics.core.encoded import EncodedRecords
from topics.core.facts import (
    Appended,
    BatchDecided,
    BatchFinished,
    Deleted,
    FloorsMoved,
    HeadMoved,
    MetaFact,
    ProducerForgotten,
    SourcesChanged,
    StageDropped,
    StageOpened,
    TopicConfigured,
    TopicCreated,
    TopicDropped,
    encode,
    parse_log_fact,
    parse_meta_fact,
    parse_plain,
    plain_buffers,
)
from topics.core.heap import queue_for
from topics.core.log import Log
from topics.core.names import check_topic
from topics.core.outcome import Outcome, StoredFact
from topics.core.pipelinecommands import (
    DropPipeline,
    DropTable,
    PausePipeline,
    PutPipeline,
    PutTable,
    ReportPipeline,
)
from topics.core.pipelinefacts import CatalogFact
from topics.core.records import Records
from topics.core.registry import META_LOG_ID, Registry, Topic
from topics.core.router import Routers
from topics.core.routerfacts import RouteFact, RouterGone, RouterPut
from topics.core.totals import Totals
from topics.errors import (
    InvalidRequest,
    Throttled,
    TopicNotEmpty,
    TopicNotFound,
)
from topics.limits import (
    CLAIM_MAX_DEFAULT,
    GROUP_VISIBILITY_MS_DEFAULT,
    HEAP_IN_FLIGHT_DEFAULT,
    HEAP_LEASES_DEFAULT,
    NODE_BYTES_DEFAULT,
)
from topics.model import Dropped, Durability, TopicConfig, Written

# Looking a member up in its enum takes several times as long as comparing it: named once for the paths of every write.
_EPHEMERAL: Final = Durability.EPHEMERAL
_DISK: Final = Durability.DISK
_FSYNC: Final = Durability.FSYNC

TOKEN_COUNTER_BITS: Final = 40
"""Of the 64 bits of a token: which it is of its process. The others say which process that is."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The configurable limits that commands are checked against; 0 is off."""

    topics_max: int = 100_000
    routers_max: int = 10_000
    total_bytes_max: int = 0
    stage_ttl_ms: int = 3_600_000
    staged_bytes_max: int = 256 * 1024 * 1024
    claim_max: int = CLAIM_MAX_DEFAULT
    heap_in_flight_max: int = HEAP_IN_FLIGHT_DEFAULT
    heap_leases_max: int = HEAP_LEASES_DEFAULT
    group_visibility_ms: int = GROUP_VISIBILITY_MS_DEFAULT
    node_bytes_max: int = NODE_BYTES_DEFAULT


class Machine:
    def __init__(self, bounds: Bounds | None = None) -> None:
        self.bounds = bounds or Bounds()
        self.topics = Registry()
        self.routers = Routers()
        self.catalog = Catalog()
        self.accounts = Accounts()
        self.totals = Totals()
        self.logs: dict[int, Log] = {}
        self.unborn: set[int] = set()
        """Logs that a crash may still leave without their creation, as whoever stores the facts knows."""
        self.batches = batch.Batches()
        self.next_log_id = META_LOG_ID + 1
        self.next_epoch = 1
        self.incarnation = 0
        """Differs from process to process, so that no lease is taken for one of an earlier process."""
        self._token_count = 0
        self.changed: set[str] = set()
        """Topics whose own state (not their logs') changed since a checkpoint last looked."""
        self.dropped_logs: list[Log] = []
        """Logs that are gone, for the owner of their files to take."""

    # ---- commands

    def step(self, command: Command, now_ms: int) -> Outcome:
        match command:
            case Append():
                return self.append(command, now_ms)
            case Configure():
                return configure.configure(self, command, now_ms)
            case ChangeSources():
                return sources.change(self, command, now_ms)
            case Drop():
                return self._drop(command, now_ms)
            case Delete():
                return self._delete(command, now_ms)
            case Stage():
                return self._stage(command, now_ms)
            case Publish():
                return batch.decide(self, command, now_ms)
            case Abort():
                return self._abort(command)
            case ForgetProducer():
                return forget.forget(self, command, now_ms)
            case PutRouter():
                return routing.put(self, command, now_ms)
            case DropRouter():
                return routing.drop(self, command)
            case PutTable() | DropTable() | PutPipeline() | DropPipeline() | PausePipeline() | ReportPipeline():
                return declaring.decide(self, command, now_ms)
            case OfAccounts():
                return accountverbs.decide(self, command, now_ms)
            case _:
                return verbs.decide(self, command, now_ms)

    def topic(self, name: str) -> Topic:
        found = self.topics.get(name)
        if found is None:
            raise TopicNotFound(f'topic "{check_topic(name)}" does not exist', topic=name)
        return found

    def log(self, topic: Topic, partition: int = 0) -> Log:
        self.check_partition(topic.name, topic.config, partition)
        return self.logs[topic.first_log_id + partition]

    def next_token(self, count: int) -> int:
        """The first of so many tokens in a row that no lease or claim of any topic had before, in any process."""
        self._token_count += count
        return (self.incarnation << TOKEN_COUNTER_BITS) + self._token_count - count + 1

    def check_partition(self, name: str, config: TopicConfig, partition: int) -> None:
        if not 0 <= partition < config.partitions:
            raise InvalidRequest(
                f'topic "{name}" has partitions 0 to {config.partitions - 1}, not {partition}',
                field="partition",
                expected=f"0..{config.partitions - 1}",
            )

    def append(self, command: Append, now_ms: int) -> Outcome:
        topic = self.topics.get(command.topic)
        if topic is None:
            return self._append_creating(command, now_ms)
        if command.config:
            # A wrong one is refused, though only a new topic takes it.
            configs.build(command.topic, {"type": topic.config.type.value, **command.config})
        log = self.log(topic, command.partition)
        log.observe(topic.config, now_ms)
        if command.dedupe_key is not None and log.remembers:
            hit = log.dedupe.lookup(command.dedupe_key, now_ms, topic.config.idempotency_window_ms)
            if hit is not None:
                last_seq = hit.first_seq + hit.count - 1
                reply = Written(
                    topic=topic.name,
                    partition=command.partition,
                    first_seq=hit.first_seq,
                    last_seq=last_seq,
                    head_seq=log.head_seq,
                    deduped=True,
                )
                return Outcome(reply, log=log, seq=last_seq, durability=topic.config.durability)
        self.check_room(topic.name, topic.config, log, command.records)
        if command.delay_ms or command.not_before_ms or command.waits:
            check_delay(topic.name, topic.config, any(delay_of(command, now_ms)))
        if command.dedupe_key is not None:
            log.dedupe.admit(command.dedupe_key, now_ms, topic.config.idempotency_window_ms)
        return self._append_to(topic, log, command, now_ms, created=False)

    def _append_creating(self, command: Append, now_ms: int) -> Outcome:
        fields = command.config or {}
        config = configs.build(command.topic, fields)
        may_create = config.auto_create if command.create is None else command.create
        check_topic(command.topic)
        if not may_create:
            raise TopicNotFound(
                f'topic "{command.topic}" does not exist and this write may not create it; '
                "create it first, or write with create: true",
                topic=command.topic,
            )
        self.check_partition(command.topic, config, command.partition)
        check_delay(command.topic, config, any(delay_of(command, now_ms)))
        self.check_room(command.topic, config, None, command.records)
        topic, facts = self.create_whole(command.topic, config, now_ms)
        outcome = self._append_to(topic, self.log(topic, command.partition), command, now_ms, created=True)
        outcome.facts[:0] = facts
        outcome.must_sync = True
        return outcome

    def _append_to(self, topic: Topic, log: Log, command: Append, now_ms: int, created: bool) -> Outcome:
        durability = topic.config.durability
        first_seq, ts = log.next_seq, now_ms if now_ms > log.last_ts else log.last_ts
        delay = NO_DELAY
        if command.delay_ms or command.not_before_ms or command.waits:
            delay = delay_of(command, now_ms)
        if command.dedupe_key is None and command.records.is_plain and delay is NO_DELAY:
            facts = self._take_plain(topic.config, log, command.records, ts)
        else:
            facts = self._take(topic.config, log, command, ts, delay)
        last_seq = log.next_seq - 1
        reply = Written(
            topic=topic.name,
            partition=command.partition,
            first_seq=first_seq,
            last_seq=last_seq,
            head_seq=last_seq,
            created=created,
        )
        return Outcome(reply, facts, durability is _FSYNC, log, last_seq, durability)

    def _take(self, config: TopicConfig, log: Log, command: Append, ts: int, delay: Delay) -> list[StoredFact]:
        """Put records into a log; the fact that says so, or none when they are kept in memory only."""
        encoded = command.records.encode(log.next_seq, ts)
        floors = log.append(encoded, config)
        ceiling_seq = ceiling.grant(log, encoded.last_seq) if config.durability is _DISK else 0
        fact = Appended(
            encoded, ceiling_seq, floors, command.dedupe_key, not_before_ms=delay.not_before_ms, waits=delay.waits
        )
        log.remember(fact)
        return [] if config.durability is _EPHEMERAL else [StoredFact(log.log_id, True, fact.buffers())]

    def _take_plain(self, config: TopicConfig, log: Log, records: Records, ts: int) -> list[StoredFact]:
        """The same for one plain record without a key, for which no column is ever made."""
        seq, data_len = log.next_seq, records.payload_bytes
        text = records.plain_text(seq, ts)
        floors = log.append_plain(ts, text, data_len, config)
        if config.durability is _EPHEMERAL:
            return []
        ceiling_seq = ceiling.grant(log, seq) if config.durability is _DISK else 0
        if floors is None:
            return [StoredFact(log.log_id, True, plain_buffers(ceiling_seq, seq, ts, text, data_len))]
        fact = Appended(EncodedRecords.plain(seq, ts, text, data_len), ceiling_seq, floors)
        return [StoredFact(log.log_id, True, fact.buffers())]

    def check_room(self, name: str, config: TopicConfig, log: Log | None, load: room.Load) -> None:
        room.check_total(self.bounds.total_bytes_max, self.totals.bytes, load)
        room.check_caps(name, config, log, load)

    # ---- topics

    def check_topic_count(self, count: int = 1) -> None:
        """Refuse so many topics more when there is no room for them."""
        if self.bounds.topics_max and len(self.topics) + count > self.bounds.topics_max:
            raise Throttled(
                f"there are {len(self.topics)} topics, as many as TOPICS_MAX_TOPICS allows"
                if count == 1
                else f"there are {len(self.topics)} topics, {count} more are needed (one for dead letters), and "
                f"TOPICS_MAX_TOPICS is {self.bounds.topics_max}",
                limit="max_topics",
                max=self.bounds.topics_max,
            )

    def create_whole(self, name: str, config: TopicConfig, now_ms: int) -> tuple[Topic, list[StoredFact]]:
        """Make a topic and the one for its dead letters, if that is not there."""
        letters = deadletter.missing(self, config)
        self.check_topic_count(1 if letters is None else 2)
        topic, fact = self.create(name, config, now_ms)
        return topic, [fact, *self.create_letters(config, letters, now_ms)]

    def create_letters(self, config: TopicConfig, letters: str | None, now_ms: int) -> list[StoredFact]:
        """Make the topic of this name, if there is one, for the dead letters of a topic with this config."""
        return [] if letters is None else [self.create(letters, deadletter.letters_config(config), now_ms)[1]]

    def create(self, name: str, config: TopicConfig, now_ms: int) -> tuple[Topic, StoredFact]:
        self.topics.check_alias(name, config)
        fact = TopicCreated(name, self.next_epoch, self.next_log_id, config, now_ms)
        topic = self._apply_created(fact)
        if config.durability is _EPHEMERAL:
            for log_id in topic.log_ids():
                volatile.change(self.logs[log_id], stored=False)
        return topic, meta_fact(fact)

    def _apply_created(self, fact: TopicCreated) -> Topic:
        topic = Topic(fact.topic, fact.config, fact.epoch, fact.first_log_id, fact.created_ms)
        self.topics.add(topic)
        self.changed.add(topic.name)
        for partition, log_id in enumerate(topic.log_ids()):
            log = self.logs[log_id] = Log(log_id, topic.name, partition, topic.epoch, self.totals)
            log.queue = queue_for(topic.config)
        self.next_epoch = max(self.next_epoch, fact.epoch + 1)
        self.next_log_id = max(self.next_log_id, topic.log_ids().stop)
        return topic

    def _drop(self, command: Drop, now_ms: int) -> Outcome:
        topic = self.topics.get(command.topic)
        if topic is None:
            return Outcome(Dropped(topic=command.topic, deleted=False))
        logs = [self.logs[log_id] for log_id in topic.log_ids()]
        if command.if_empty:
            for log in logs:
                log.observe(topic.config, now_ms)
            count = sum(log.count for log in logs)
            if count:
                raise TopicNotEmpty(f'topic "{topic.name}" holds {count} records', topic=topic.name, count=count)
        routers = tuple(self.routers.touching(topic.name))
        self._apply_dropped(topic.name)
        reply = Dropped(topic=topic.name, deleted=True, routers=routers)
        return Outcome(reply, [meta_fact(TopicDropped(topic.name))], must_sync=True)

    def _apply_dropped(self, name: str) -> None:
        topic = self.topics.remove(name)
        self.changed.add(name)
        for router in self.routers.touching(name):
            self.routers.remove(router)
        for log_id in topic.log_ids():
            self.forget(log_id)

    def forget(self, log_id: int) -> None:
        """A log is gone, with its topic or as a stage."""
        log = self.logs.pop(log_id)
        log.leave()
        self.dropped_logs.append(log)

    # ---- deletes

    def _delete(self, command: Delete, now_ms: int) -> Outcome:
        if command.before_seq is None and command.match is None:
            raise InvalidRequest("a delete names before_seq, match, or both", expected="before_seq or match")
        topic = self.topic(command.topic)
        log = self.log(topic, command.partition)
        log.observe(topic.config, now_ms)
        bound = log.next_seq if command.before_seq is None else min(command.before_seq, log.next_seq)
        match = command.match
        if command.dry_run:
            return Outcome(_deleted(topic, log, live.count_named(log, bound, match), dry_run=True))
        stored = topic.config.durability is not Durability.EPHEMERAL
        facts = []
        if stored and log.floors_unstored:
            # What has expired is lost, not deleted: a replay must know before it meets the delete.
            facts.append(log_fact(log, FloorsMoved.of(log.take_floors())))
        fact = Deleted(bound) if match is None else Deleted(bound, match.text, match.prefix)
        deleted, touched = log.apply_deleted(fact)
        reply = _deleted(topic, log, deleted)
        if stored and (deleted or touched):
            facts.append(log_fact(log, fact))
        must_sync = bool(facts) and topic.config.durability is Durability.FSYNC
        return Outcome(reply, facts, must_sync, log=log, durability=topic.config.durability)

    # ---- stages

    def _stage(self, command: Stage, now_ms: int) -> Outcome:
        return batch.stage(self, command, now_ms)

    def _abort(self, command: Abort) -> Outcome:
        return batch.abort(self, command.stages)

    # ---- replay

    def replay_meta(self, body: Buffer) -> None:
        self.apply_meta(parse_meta_fact(body))

    def apply_meta(self, fact: MetaFact) -> None:
        if isinstance(fact, CatalogFact):
            declaring.apply(self, fact)
            return
        if isinstance(fact, AccountFact):
            self.accounts.apply(fact)
            return
        match fact:
            case TopicCreated():
                self._apply_created(fact)
            case TopicConfigured():
                topic = self.topics.get(fact.topic)
                assert topic is not None
                self.topics.configure(topic, fact.config)
                topic.updated_ms = fact.at_ms
                self.changed.add(fact.topic)
            case SourcesChanged():
                sources.apply(self, fact)
            case TopicDropped():
                self._apply_dropped(fact.topic)
            case StageOpened() | StageDropped() | BatchDecided() | BatchFinished() | ProducerForgotten():
                self.batches.apply(self, fact)
            case RouterPut() | RouterGone():
                routing.apply(self, fact)
            case _:
                assert_never(fact)

    def replay_log(self, log: Log, appended: bool, body: memoryview) -> None:
        if not appended:
            fact = parse_log_fact(body)
            assert not isinstance(fact, RouteFact), "what only another log makes whole is replayed by `core/derive.py`"
            log.apply(fact)
        elif (plain := parse_plain(body)) is not None and plain[1] == log.next_seq:
            # Nearly all there is to replay after one-record writes.
            ceiling_seq, _, ts, text, data_len = plain
            log.apply_plain(ceiling_seq, ts, text, data_len)
        else:
            log.apply_appended(Appended.parse(body))


def meta_fact(fact: MetaFact) -> StoredFact:
    return StoredFact(META_LOG_ID, False, [encode(fact)])


def _deleted(topic: Topic, log: Log, count: int, dry_run: bool = False) -> model.Deleted:
    return model.Deleted(
        topic=topic.name,
        partition=log.partition,
        deleted=count,
        earliest_seq=log.earliest_seq(),
        head_seq=log.head_seq,
        count=log.count,
        bytes=log.bytes,
        dry_run=dry_run,
    )


def log_fact(log: Log, fact: Deleted | FloorsMoved | HeadMoved) -> StoredFact:
    return StoredFact(log.log_id, False, [encode(fact)])
