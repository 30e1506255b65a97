"""What an engine promised, and whether a recovery kept it.

A `History` stands beside an engine that a test drives. It is told of every command when it is asked and when it is
answered, and looks at each log after the commands on it are done. So a log's past is a chain of `Seen`: everything a
reader could see after each change. A crash may undo changes only from the end of the chain, and only as far as the
class allows:

    promised   the last `Seen` that must be there: for `fsync` what was acked; for `disk` what was acked long enough
               ago, or before a checkpoint; when only the process died, all that was acked
    after it   a recovered log equals one link of the chain, from the promised one to the last command that was asked

Everything else follows from that: acked is present, a batch is whole, a delete does not come back, a prefix has no
hole, nothing is made up. What a link does not say is checked beside it: seqs are never used twice, floors never go
back, and what was lost is told to a reader as one gap.

A mark of deletion may reach a segment before the delete itself is safe. So where a class allows the end of the chain
to be undone, records that a later link has deleted may be missing from the link that was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from topics.core import config as configs
from topics.core.accountcommands import AccountCommand
from topics.core.commands import (
    Abort,
    Append,
    Command,
    Configure,
    Delete,
    Drop,
    ForgetProducer,
    Publish,
    RouterCommand,
    Stage,
)
from topics.core.cut import Shape, cut
from topics.core.pipelinecommands import CatalogCommand
from topics.core.read import Span
from topics.core.records import Records
from topics.engine.engine import Engine
from topics.model import Durability, Published, TopicConfig, Written

PAGES_MAX = 10_000
TAGGED = Shape(tags=True)


class Row(NamedTuple):
    seq: int
    ts: int
    tag: str
    size_bytes: int
    text: bytes


class _Parsed(msgspec.Struct, rename={"seq": "$seq", "ts": "$ts", "tag": "$tag"}):
    seq: int
    ts: int
    data: msgspec.Raw
    tag: str = ""
    meta: msgspec.Raw = msgspec.Raw(b"")


def rows_of(body: bytes) -> list[Row]:
    array = b"[" + body + b"]"
    texts = msgspec.json.decode(array, type=list[msgspec.Raw])
    parsed = msgspec.json.decode(array, type=list[_Parsed])
    return [
        Row(one.seq, one.ts, one.tag, len(bytes(one.data)) + len(bytes(one.meta)), bytes(text))
        for one, text in zip(parsed, texts, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """One log as its readers see it."""

    rows: tuple[Row, ...] = ()
    head_seq: int = 0
    evict_floor: int = 1
    earliest_seq: int = 1
    told: frozenset[int] = frozenset()
    """The seqs that a reader from the start is told are lost."""
    config: TopicConfig = field(default_factory=TopicConfig)
    ticks_ns: int = 0

    def fresh(self, now_ms: int) -> tuple[Row, ...]:
        """What is left when time has passed: also a config that came later does not bring back what expired."""
        ttl_ms = self.config.ttl_ms
        return self.rows if not ttl_ms else tuple(row for row in self.rows if row.ts >= now_ms - ttl_ms)


@dataclass(slots=True)
class Asked:
    """A command that was given to the engine, and its answer once there is one."""

    command: Command
    now_ms: int
    reply: object = None
    acked: bool = False


@dataclass(slots=True)
class Line:
    """One partition of one topic, from its creation to its end."""

    topic: str
    partition: int
    epoch: int
    seen: list[Seen]
    promised: int = 0
    """Index of the last `Seen` that a power loss must leave."""
    last_ts: int = 0
    head_kept: int = 0
    """What the head was at the last checkpoint."""
    waiting: list[Asked] = field(default_factory=list)
    """Writes, deletes and changes of its config that are on their way."""
    keyed: list[tuple[int, Asked]] = field(default_factory=list)
    """Writes with a dedupe key, with the index of the first `Seen` that holds them."""
    acked_texts: dict[int, bytes] = field(default_factory=dict)

    def copy(self) -> Line:
        return replace(
            self,
            seen=list(self.seen),
            waiting=[replace(asked) for asked in self.waiting],
            keyed=list(self.keyed),
            acked_texts=dict(self.acked_texts),
        )

    @property
    def name(self) -> str:
        return f"{self.topic}/{self.partition} (epoch {self.epoch})"

    def see(self, seen: Seen) -> None:
        """What the log holds after a change. A seq that was acked never shows another record."""
        if seen.config.durability in (Durability.FSYNC, Durability.DISK):
            for row in seen.rows:
                before = self.acked_texts.setdefault(row.seq, row.text)
                assert before == row.text, f"{self.name}: seq {row.seq} was {before!r} and is {row.text!r}"
        self.last_ts = max([self.last_ts, *(row.ts for row in seen.rows)])
        self.seen.append(seen)

    def links(self) -> Iterator[tuple[Seen, bool]]:
        """The chain from the promised link on, with what is still on its way, and whether each is acked."""
        for seen in self.seen[self.promised :]:
            yield seen, True
        seen, last_ts = self.seen[-1], self.last_ts
        for asked in self.waiting:
            last_ts = max(last_ts, asked.now_ms)
            seen = _after(seen, asked, last_ts, self)
            yield seen, asked.acked


def _after(seen: Seen, asked: Asked, ts: int, line: Line) -> Seen:
    """What a log will hold once a command has been applied, caps included."""
    rows, config, head = list(seen.fresh(asked.now_ms)), seen.config, seen.head_seq
    match asked.command:
        case Append(records=records):
            rows += predict(records, head + 1, ts)
            head += records.count
        case Delete(before_seq=before_seq, match=match):
            bound = head + 1 if before_seq is None else before_seq
            rows = [row for row in rows if row.seq >= bound or not (match is None or match.matches(row.tag.encode()))]
        case Configure(fields=fields, merge=merge):
            config = (configs.merge if merge else configs.replace)(line.topic, config, fields)
    while _exceeds(rows, config):
        rows.pop(0)
    return replace(seen, rows=tuple(rows), config=config, head_seq=head)


def _exceeds(rows: Sequence[Row], config: TopicConfig) -> bool:
    size = sum(row.size_bytes for row in rows)
    return 0 < config.cap_records < len(rows) or 0 < config.cap_bytes < size


def predict(records: Records, first_seq: int, ts: int) -> list[Row]:
    """The rows a write becomes, byte by byte."""
    block = records.encode(first_seq, ts).as_block()
    return rows_of(cut([Span(block, 0, block.count)], TAGGED))


@dataclass(slots=True)
class Known:
    """A topic that exists as far as anybody was told."""

    epoch: int
    config: TopicConfig
    waiting: list[Asked] = field(default_factory=list)
    """What was asked of the topic itself and is not settled."""

    def copy(self) -> Known:
        return replace(self, waiting=[replace(asked) for asked in self.waiting])


def look(engine: Engine, topic: str, partition: int, ticks_ns: int, limit: int = 7) -> Seen:
    """Read a log from its start, page by page, as a reader would."""
    rows: list[Row] = []
    told: set[int] = set()
    cursor = 0
    for _ in range(PAGES_MAX):
        page = engine.read(topic, cursor, partition=partition, limit=limit, shape=TAGGED, touch=False)
        if page.tombstone is not None:
            gap = range(page.tombstone.gap_from, page.tombstone.gap_to + 1)
            assert gap.start == cursor + 1, f"{topic}/{partition}: a gap at {gap} is told to a cursor at {cursor}"
            assert told.isdisjoint(gap), f"{topic}/{partition}: the gap {gap} is told twice"
            told.update(gap)
        rows += rows_of(page.body)
        assert page.next_from_seq > cursor or page.caught_up, f"{topic}/{partition}: stuck at {cursor}"
        cursor = page.next_from_seq
        if page.caught_up:
            break
    state = engine.state(topic, partition, touch=False)
    seqs = [row.seq for row in rows]
    assert seqs == sorted(set(seqs)), f"{topic}/{partition}: seqs do not ascend: {seqs}"
    assert told.isdisjoint(seqs), f"{topic}/{partition}: told as lost and delivered: {told & set(seqs)}"
    assert state.count == len(rows), f"{topic}/{partition}: state counts {state.count} records, {len(rows)} were read"
    assert state.bytes == sum(row.size_bytes for row in rows), f"{topic}/{partition}: state counts {state.bytes} bytes"
    assert state.earliest_seq == (seqs[0] if seqs else state.head_seq + 1), f"{topic}/{partition}: {state}"
    return Seen(
        tuple(rows), state.head_seq, state.evict_floor, state.earliest_seq, frozenset(told), state.config, ticks_ns
    )


@dataclass(slots=True)
class History:
    disk_sync_ms: int
    topics: dict[str, Known] = field(default_factory=dict)
    lines: dict[tuple[str, int], Line] = field(default_factory=dict)
    newborn: dict[str, Asked] = field(default_factory=dict)
    """Topics whose creation is on its way."""
    stages: dict[str, list[Asked]] = field(default_factory=dict)
    """Stages that were acked, or are on their way, and neither published nor aborted."""
    gone_stages: set[str] = field(default_factory=set)
    published: list[tuple[Publish, Published]] = field(default_factory=list)
    publishing: Asked | None = None
    aborting: Asked | None = None
    power_was_lost: bool = False

    def copy(self) -> History:
        return replace(
            self,
            topics={name: known.copy() for name, known in self.topics.items()},
            lines={key: line.copy() for key, line in self.lines.items()},
            newborn={name: replace(asked) for name, asked in self.newborn.items()},
            stages={name: [replace(asked) for asked in parts] for name, parts in self.stages.items()},
            gone_stages=set(self.gone_stages),
            published=list(self.published),
            publishing=None if self.publishing is None else replace(self.publishing),
            aborting=None if self.aborting is None else replace(self.aborting),
        )

    # ---- what happens

    def ask(self, command: Command, now_ms: int) -> list[Asked]:
        """A command is on its way; every note of it, to be marked when it is answered."""
        notes: list[Asked] = []

        def note() -> Asked:
            notes.append(Asked(command, now_ms))
            return notes[-1]

        match command:
            case Append() | Delete():
                if command.topic in self.topics:
                    self.lines[command.topic, command.partition].waiting.append(note())
                else:
                    self.newborn[command.topic] = note()
            case Configure():
                if command.topic in self.topics:
                    self.topics[command.topic].waiting.append(note())
                    for line in self._lines_of(command.topic):
                        line.waiting.append(note())
                else:
                    self.newborn[command.topic] = note()
            case Drop():
                self.topics[command.topic].waiting.append(note())
            case Stage():
                self.stages.setdefault(command.stage, []).append(note())
            case Publish():
                self.publishing = note()
            case Abort():
                self.aborting = note()
        return notes

    def _lines_of(self, topic: str) -> list[Line]:
        return [line for line in self.lines.values() if line.topic == topic]

    def settle(self, engine: Engine, commands: Sequence[Command], ticks_ns: int) -> None:
        """All these commands have been answered: look at what they changed."""
        unnamed = Stage | Publish | Abort | ForgetProducer | RouterCommand | CatalogCommand | AccountCommand
        topics = {command.topic for command in commands if not isinstance(command, unnamed)}
        for command in commands:
            if isinstance(command, Publish):
                assert self.publishing is not None and isinstance(self.publishing.reply, Published)
                self._settle_publish(command, self.publishing.reply)
                topics.update(part.topic for part in self.publishing.reply.written)
                self.publishing = None
            elif isinstance(command, Abort):
                for stage in command.stages:
                    self.stages.pop(stage, None)
                self.gone_stages.update(command.stages)
                self.aborting = None
        published = any(isinstance(command, Publish) for command in commands)
        for topic in topics:
            self._settle_topic(engine, topic, ticks_ns, published)

    def _settle_publish(self, command: Publish, reply: Published) -> None:
        for stage in command.stages:
            self.stages.pop(stage, None)
        self.gone_stages.update(command.stages)
        known = {(publish.producer_id, publish.epoch): answer for publish, answer in self.published}
        first = known.get((command.producer_id, command.epoch))
        if first is None:
            self.published.append((command, reply))
        else:
            assert reply.written == first.written, f"{command} was answered {first} and then {reply}"

    def _settle_topic(self, engine: Engine, topic: str, ticks_ns: int, published: bool) -> None:
        self.newborn.pop(topic, None)
        found = engine.machine.topics.get(topic)
        known = self.topics.get(topic)
        if found is None or (known is not None and known.epoch != found.epoch):
            self.topics.pop(topic, None)
            self.lines = {key: line for key, line in self.lines.items() if line.topic != topic}
        if found is None:
            return
        self.topics[topic] = Known(found.epoch, found.config)
        for partition in range(found.config.partitions):
            line = self.lines.setdefault((topic, partition), Line(topic, partition, found.epoch, [Seen()]))
            self._settle_line(engine, line, ticks_ns, published)

    def _settle_line(self, engine: Engine, line: Line, ticks_ns: int, published: bool) -> None:
        line.see(look(engine, line.topic, line.partition, ticks_ns))
        at = len(line.seen) - 1
        synced = published
        for asked in line.waiting:
            if isinstance(asked.command, Append) and asked.command.dedupe_key is not None:
                line.keyed.append((at, asked))
            synced |= isinstance(asked.command, Append | Delete) and line.seen[-1].config.durability is Durability.FSYNC
        line.waiting = []
        if synced:
            line.promised = at

    def time_passed(self, ticks_ns: int) -> None:
        """The engine has had the chance to sync what was due by now."""
        for line in self.lines.values():
            for at, seen in enumerate(line.seen):
                if seen.ticks_ns + self.disk_sync_ms * 1_000_000 <= ticks_ns and not _is_best_effort(seen.config):
                    line.promised = max(line.promised, at)

    def checkpointed(self) -> None:
        """A checkpoint that began when nothing was on its way has succeeded, or the engine was stopped cleanly."""
        for line in self.lines.values():
            line.head_kept = line.seen[-1].head_seq
            if line.seen[-1].config.durability is not Durability.EPHEMERAL:
                line.promised = len(line.seen) - 1


def _is_best_effort(config: TopicConfig) -> bool:
    return config.durability in (Durability.MEMORY, Durability.EPHEMERAL)


def written(asked: Asked) -> Written:
    assert isinstance(asked.reply, Written), f"{asked.command} was answered {asked.reply!r}"
    return asked.reply
