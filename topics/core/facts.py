"""What happened, as it is stored: every change of state is one of these, in one log.

`Appended` has a layout of its own because it carries the payload (see docs/FORMAT.md); all others are
msgpack structs with a tag. A fact belongs to one partition's log, or to the meta log (topics, stages, batches).

The layout of `Appended`:

    0   ceiling    u64   seqs up to this one may be acked before the next sync (see `docs/GUARANTEES.md`)
    8   flags      u32   1: floors follow
    12  extra_len  u32   bytes of `extra`
    16  floors     4 × u64, if any: low, evict_floor, last seq lost to cap, last seq lost to ttl
    ..  extra      msgpack, padded with zeros to 8: dedupe key, stage, delay, move, waits, keyed
    ..  block      as in `core/block.py`

To change a struct: only add fields at its end with a default. Anything else is a new tag, or a new frame kind.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple, assert_never

import msgspec

from topics.core import block as blocks
from topics.core.accountfacts import AccountFact
from topics.core.block import HEADER as BLOCK_HEADER
from topics.core.block import Buffer
from topics.core.dedupe import DedupeKey, IdempotencyKey, ProducerKey
from topics.core.encoded import EncodedRecords
from topics.core.groupfacts import AnyGroupFact, SeqRange
from topics.core.heapfacts import HeapFact
from topics.core.match import Match
from topics.core.pipelinefacts import CatalogFact
from topics.core.routerfacts import RouteFact, RouterFact
from topics.core.source import Sources
from topics.model import Reason, TopicConfig

_PRELUDE = struct.Struct("<QII")
_FLOORS = struct.Struct("<4Q")
_HAS_FLOORS = 1
_PLAIN = struct.Struct("<QQQQQQIIII")
"""All that stands before the text of an append of one plain record, some fields that are constant taken together."""
_PLAIN_READ = struct.Struct("<QQQQQ20xI")
"""The same without the lengths, of which only that of the data is not known from the body's own."""
_PLAIN_BYTES = _PLAIN.size
_PLAIN_COUNTS = 1
"""Of a plain record: one record, no optional column, no names."""

assert _PLAIN_READ.size == _PLAIN_BYTES == _PRELUDE.size + BLOCK_HEADER.size + 2 * 4


@dataclass(frozen=True, slots=True)
class Floors:
    """Where a log begins, and why."""

    low: int
    evict_floor: int
    lost: dict[Reason, int]


class MoveId(NamedTuple):
    """A move, by the log it leaves and its number there."""

    source_log_id: int
    number: int


class Appended(msgspec.Struct, frozen=True):
    """A struct for the speed with which one is made; it is not stored as one (see above)."""

    records: EncodedRecords
    ceiling: int = 0
    floors: Floors | None = None
    dedupe_key: DedupeKey | None = None
    stage_log_id: int = 0
    not_before_ms: int = 0
    """In a queue: nobody gets these before this time."""
    move: MoveId | None = None
    """The move that brought these."""
    waits: bytes = b""
    """Of each record, how long nobody gets it (`core/waits.py`)."""
    keyed: bool = False
    """In a heap: each record that names a producer and a sequence in its meta is to be written once."""

    def buffers(self) -> list[Buffer]:
        flags = 0
        parts: list[Buffer] = []
        if self.floors is not None:
            flags = _HAS_FLOORS
            lost = self.floors.lost
            parts.append(
                _FLOORS.pack(
                    self.floors.low,
                    self.floors.evict_floor,
                    lost.get(Reason.CAP, 0),
                    lost.get(Reason.TTL, 0),
                )
            )
        extra = b""
        if self._has_extra:
            extra = _encoder.encode(_Extra.of(self))
            extra += bytes(-len(extra) % 8)
            parts.append(extra)
        return [_PRELUDE.pack(self.ceiling, flags, len(extra)), *parts, *self.records.block_buffers()]

    @property
    def _has_extra(self) -> bool:
        rest = self.stage_log_id or self.not_before_ms or self.move or self.waits or self.keyed
        return self.dedupe_key is not None or bool(rest)

    @classmethod
    def parse(cls, body: memoryview) -> Appended:
        ceiling, flags, extra_len = _PRELUDE.unpack_from(body, 0)
        at = _PRELUDE.size
        floors = None
        if flags & _HAS_FLOORS:
            low, evict_floor, cap, ttl = _FLOORS.unpack_from(body, at)
            lost = {reason: last for reason, last in ((Reason.CAP, cap), (Reason.TTL, ttl)) if last}
            floors = Floors(low, evict_floor, lost)
            at += _FLOORS.size
        if not extra_len:
            return cls(EncodedRecords.parse(body[at:]), ceiling, floors)
        extra = _extra_decoder.decode(bytes(body[at : at + extra_len]).rstrip(b"\0"))
        records = EncodedRecords.parse(body[at + extra_len :])
        rest = extra.stage_log_id, extra.not_before_ms, extra.move(), extra.waits, extra.keyed
        return cls(records, ceiling, floors, extra.key(), *rest)


def plain_buffers(ceiling: int, seq: int, ts: int, text: bytes, data_len: int) -> tuple[bytes, bytes]:
    """What `Appended.buffers` would give for one record without tag, node and meta, and nothing to say beside it."""
    text_len = len(text)
    return _PLAIN.pack(ceiling, 0, seq, ts, _PLAIN_COUNTS, 0, text_len, 0, text_len, data_len), text


def parse_plain(body: memoryview) -> tuple[int, int, int, memoryview, int] | None:
    """Ceiling, seq, ts, text (a view) and length of the data, if this is the body of such an append; else None."""
    ceiling, flags, seq, ts, counts, data_len = _PLAIN_READ.unpack_from(body)
    if flags or counts != _PLAIN_COUNTS:
        return None
    return ceiling, seq, ts, body[_PLAIN_BYTES:], data_len


class _Extra(msgspec.Struct, array_like=True):
    idempotency_key: str | None
    producer_id: str | None
    epoch: int
    sequence: int
    stage_log_id: int
    end: str = "."
    not_before_ms: int = 0
    source_log_id: int = 0
    move_number: int = 0
    last: str = "."
    waits: bytes = b""
    very_last: str = "."
    keyed: bool = False
    end_of_all: str = "."
    """Keeps the last byte from being a zero, which padding is made of; `end`, `last`, `very_last` did so before it."""

    @classmethod
    def of(cls, fact: Appended) -> _Extra:
        key = fact.dedupe_key
        source_log_id, move_number = fact.move or (0, 0)
        begin = fact.stage_log_id, ".", fact.not_before_ms
        rest = *begin, source_log_id, move_number, ".", fact.waits, ".", fact.keyed
        match key:
            case IdempotencyKey():
                return cls(key.key, None, 0, 0, *rest)
            case ProducerKey():
                return cls(None, key.producer_id, key.epoch, key.sequence, *rest)
            case None:
                return cls(None, None, 0, 0, *rest)
            case _:
                assert_never(key)

    def key(self) -> DedupeKey | None:
        if self.idempotency_key is not None:
            return IdempotencyKey(self.idempotency_key)
        if self.producer_id is not None:
            return ProducerKey(self.producer_id, self.epoch, self.sequence)
        return None

    def move(self) -> MoveId | None:
        return MoveId(self.source_log_id, self.move_number) if self.move_number else None


class Deleted(msgspec.Struct, frozen=True, tag="deleted", omit_defaults=True):
    """Records below `bound` are gone: all of them, or those whose tag matches."""

    bound: int
    text: bytes | None = None
    prefix: bool = False

    @property
    def match(self) -> Match | None:
        return None if self.text is None else Match(self.text, self.prefix)


class FloorsMoved(msgspec.Struct, frozen=True, tag="floors"):
    """A change of config moved the floors, or froze where they stood."""

    low: int
    evict_floor: int
    lost: dict[Reason, int]

    @classmethod
    def of(cls, floors: Floors) -> FloorsMoved:
        return cls(floors.low, floors.evict_floor, floors.lost)

    def floors(self) -> Floors:
        return Floors(self.low, self.evict_floor, self.lost)


class SeqsSkipped(msgspec.Struct, frozen=True, tag="skipped"):
    """Seqs that may have been acked and were lost in a crash: never to be assigned again."""

    gap_from: int
    gap_to: int
    reason: Reason


class HeadMoved(msgspec.Struct, frozen=True, tag="head"):
    """The log is stored from here on; what an ephemeral log held before is in memory only."""

    next_seq: int


class Hand(msgspec.Struct, frozen=True, array_like=True):
    """What one worker got."""

    node: str
    seqs: list[int]
    due_ms: int
    """From here on they may be claimed again."""
    token: int
    """That of the first job; they go up by one from job to job."""


class Claimed(msgspec.Struct, frozen=True, tag="claimed"):
    """Jobs were leased to workers in one pass, each delivered once more. One fact: `cursor` is behind all of them."""

    hands: list[Hand]
    cursor: int
    """All jobs below were handed out before, or have a time of their own."""


class Released(msgspec.Struct, frozen=True, tag="released", omit_defaults=True):
    """Jobs are nobody's, and may be claimed from `due_ms` on."""

    seqs: list[int]
    due_ms: int
    undelivered: bool = False
    """They never reached their worker: each was delivered once less than it was claimed."""


class Extended(msgspec.Struct, frozen=True, tag="extended"):
    """Jobs stay with their holders until `due_ms`."""

    seqs: list[int]
    due_ms: int


class Acked(msgspec.Struct, frozen=True, tag="acked", omit_defaults=True):
    """Jobs are done, and with that deleted. Those that nobody did were called off."""

    seqs: list[int]
    called_off: bool = False


class MovePart(msgspec.Struct, frozen=True, array_like=True):
    """Records for one partition of another topic."""

    topic: str
    partition: int
    log_id: int
    """0: the topic is made when the records come, if it is not there then."""
    records: bytes
    """A block, with seqs of its own."""
    not_before_ms: int = 0
    config: TopicConfig | None = None
    """Of a topic that is made."""
    waits: bytes = b""
    """Of each record, the time before which nobody gets it (`core/waits.py`)."""
    unstored: int = 0
    """How many records there were for a topic that stores none: `records` is empty in what is stored of them."""

    def count(self) -> int:
        return self.unstored or blocks.parse(self.records).count


class MoveDecided(msgspec.Struct, frozen=True, tag="move_decided"):
    """Records leave this log, and others come into other logs, whatever breaks from here on."""

    number: int
    seqs: list[int]
    parts: list[MovePart]
    dead_letter: bool = False
    group: str = ""
    """Nothing leaves: `ranges` are done for this consumer group when the others have come."""
    ranges: list[SeqRange] = []


class MoveFinished(msgspec.Struct, frozen=True, tag="move_finished"):
    """The others are in their logs; what was to leave is gone."""

    number: int


class Archived(msgspec.Struct, frozen=True, tag="archived"):
    """An archive has all records up to `upto_seq`."""

    archive: str
    upto_seq: int
    location: str
    at_ms: int


class ArchiveDropped(msgspec.Struct, frozen=True, tag="archive_dropped"):
    """Nobody goes on with this archive."""

    archive: str


class ProducerForgotten(msgspec.Struct, frozen=True, tag="producer_forgotten"):
    """What was remembered of a producer is void: of its batches in the meta log, of its writes in a partition's log."""

    producer_id: str
    at_ms: int


class TopicCreated(msgspec.Struct, frozen=True, tag="topic_created"):
    topic: str
    epoch: int
    first_log_id: int
    config: TopicConfig
    created_ms: int


class TopicConfigured(msgspec.Struct, frozen=True, tag="topic_configured"):
    topic: str
    config: TopicConfig
    at_ms: int = 0


class SourcesChanged(msgspec.Struct, frozen=True, tag="sources_changed"):
    """The tables whose changes become records of a topic: these, and no others."""

    topic: str
    sources: Sources


class TopicDropped(msgspec.Struct, frozen=True, tag="topic_dropped"):
    topic: str


class StageOpened(msgspec.Struct, frozen=True, tag="stage_opened"):
    stage: str
    log_id: int
    topic: str
    partition: int
    expires_ms: int
    in_memory: bool = False
    """Its topic was ephemeral when it was opened: no fact holds its records."""


class StageDropped(msgspec.Struct, frozen=True, tag="stage_dropped"):
    stage: str


class BatchDecided(msgspec.Struct, frozen=True, tag="batch_decided"):
    """The decision record of an atomic batch: from here on its stages will be published, come what may."""

    producer_id: str
    epoch: int
    stages: list[str]
    decided_ms: int


class BatchFinished(msgspec.Struct, frozen=True, tag="batch_finished"):
    """Every stage of the batch is in its topic; the stages are gone."""

    producer_id: str
    epoch: int
    parts: list[tuple[str, int, int, int, int]]
    """topic, partition, first_seq, last_seq, count of each stage, in order"""
    finished_ms: int


LeaseFact = Claimed | Released | Extended | Acked
ArchiveFact = Archived | ArchiveDropped
MoveFact = MoveDecided | MoveFinished
FloorFact = Deleted | FloorsMoved | SeqsSkipped | HeadMoved
LogFact = FloorFact | LeaseFact | HeapFact | MoveFact | ArchiveFact | AnyGroupFact | ProducerForgotten
TopicFact = TopicCreated | TopicConfigured | SourcesChanged | TopicDropped
BatchFact = StageOpened | StageDropped | BatchDecided | BatchFinished | ProducerForgotten
MetaFact = TopicFact | BatchFact | RouterFact | CatalogFact | AccountFact

_encoder = msgspec.msgpack.Encoder()
_extra_decoder = msgspec.msgpack.Decoder(_Extra)
_log_decoder: msgspec.msgpack.Decoder[LogFact | RouteFact] = msgspec.msgpack.Decoder(LogFact | RouteFact)
_meta_decoder: msgspec.msgpack.Decoder[MetaFact] = msgspec.msgpack.Decoder(MetaFact)


def encode(fact: LogFact | RouteFact | MetaFact) -> bytes:
    return _encoder.encode(fact)


def parse_log_fact(body: Buffer) -> LogFact | RouteFact:
    return _log_decoder.decode(body)


def parse_meta_fact(body: Buffer) -> MetaFact:
    return _meta_decoder.decode(body)
