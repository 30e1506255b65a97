"""What a snapshot holds: images of the state, keyed so that only what changed is written again.

    m            the meta log: its position, and the next free numbers
    t/<name>     a topic
    l/<log id>   a log: its numbers, and the segments that hold its records
    d/<log id>/<n>   dedupe entries recorded between two checkpoints
    f/<log id>/<producer>   the fence of a producer that was silent for a day
    s/<stage>    an open stage
    r/<name>     a router
    b/<epoch>/<producer>   a batch that is being published, or the answer of one that was

An image names the position of its log that it covers; recovery replays what comes after. Images hold no cycles and
there may be many, so the garbage collector does not look at them. To change an image: only add fields with a default
at the end.
"""

from __future__ import annotations

import msgspec

from topics.core.batch import Batch, OpenStage
from topics.core.facts import Archived, LogFact, MoveDecided
from topics.core.fence import Fence
from topics.core.heap import Heap
from topics.core.hole import Hole
from topics.core.leasecolumns import NO_LEASES, LeaseColumns
from topics.core.leases import LeaseTable
from topics.core.log import SEQ_BASE, Log
from topics.core.queue import Queue
from topics.core.registry import Topic
from topics.core.source import Sources
from topics.engine.groupimages import GroupImage, group_images, restore_groups
from topics.engine.heapimages import HeapImage, heap_image
from topics.engine.routerimages import InflowImage, inflow_image, restore_inflow
from topics.model import Published, Reason, TopicConfig

META_KEY = b"m"


class MetaImage(msgspec.Struct, frozen=True, gc=False):
    position: int
    next_log_id: int
    next_epoch: int
    next_segment: int
    now_ms: int
    """The time as this process last saw it; a later one never goes below."""


class TopicImage(msgspec.Struct, frozen=True, gc=False):
    name: str
    epoch: int
    first_log_id: int
    created_ms: int
    config: TopicConfig
    sources: Sources = ()
    updated_ms: int = 0


class RunImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    segment: int
    section: int
    live_count: int
    live_bytes: int
    first_seq: int
    last_seq: int
    salt: int = 0
    """Of the segment's file: no other file is taken for it. 0 in an image that is older than this field."""
    low: int = 0
    """The floor, if it stands within the run: `live_count` counts from here on. Flags below it follow the snapshot."""


class HoleImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    gap_from: int
    gap_to: int
    reason: Reason


class QueueImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a queue knows beside its log; the leases as columns, see `core/leases.py`."""

    cursor: int
    dead_lettered: int
    leases: LeaseColumns


class LogImage(msgspec.Struct, frozen=True, gc=False):
    position: int
    next_seq: int
    low: int
    evict_floor: int
    lost: dict[Reason, int]
    holes: tuple[HoleImage, ...]
    last_ts: int
    last_write_ts: int | None
    granted_ceiling: int
    runs: tuple[RunImage, ...]
    published: dict[int, tuple[int, int]]
    stored_upto: int
    """Seqs above this were in memory only (an ephemeral log)."""
    chunks: tuple[int, ...]
    """Numbers of the dedupe chunks that count."""
    queue: QueueImage | None = None
    leaving: tuple[MoveDecided, ...] = ()
    """Moves out of this log that are not finished."""
    received: dict[int, int] = {}
    next_move: int = 1
    archives: tuple[Archived, ...] = ()
    groups: tuple[GroupImage, ...] = ()
    inflow: InflowImage | None = None
    waits: bytes = b""
    heap: HeapImage | None = None


class StageImage(msgspec.Struct, frozen=True, gc=False):
    stage: str
    log_id: int
    topic: str
    partition: int
    expires_ms: int
    decided: bool
    in_memory: bool = False


class BatchImage(msgspec.Struct, frozen=True, gc=False):
    producer_id: str
    epoch: int
    stages: list[str]
    decided_ms: int
    answer: Published | None


def topic_key(name: str) -> bytes:
    return b"t/" + name.encode()


def log_key(log_id: int) -> bytes:
    return b"l/%d" % log_id


def chunk_key(log_id: int, number: int) -> bytes:
    return b"d/%d/%d" % (log_id, number)


FENCE_KEY = b"f/"


def fence_key(log_id: int, producer_id: str) -> bytes:
    return b"%b%d/%b" % (FENCE_KEY, log_id, producer_id.encode())


def fence_place(key: bytes) -> tuple[int, str]:
    """The log and the producer that a key of a fence is about."""
    log_id, _, producer_id = key.removeprefix(FENCE_KEY).partition(b"/")
    return int(log_id), producer_id.decode()


def stage_key(stage: str) -> bytes:
    return b"s/" + stage.encode()


def batch_key(producer_id: str, epoch: int) -> bytes:
    return b"b/%d/%b" % (epoch, producer_id.encode())


def topic_image(topic: Topic) -> TopicImage:
    return TopicImage(
        topic.name, topic.epoch, topic.first_log_id, topic.created_ms, topic.config, topic.sources, topic.updated_ms
    )


def log_image(
    log: Log, position: int, stored_upto: int, chunks: tuple[int, ...], leaving: tuple[MoveDecided, ...] = ()
) -> LogImage:
    """The image without its runs, which get their places later. `leaving` is what is stored of unfinished moves."""
    holes = log.holes if log.volatile is None else log.volatile.with_holes(log.holes, log.low, stored_upto)
    return LogImage(
        position,
        log.next_seq,
        log.low,
        log.evict_floor,
        dict(log.lost),
        tuple(HoleImage(hole.gap_from, hole.gap_to, hole.reason) for hole in holes),
        log.last_ts,
        log.last_write_ts,
        log.granted_ceiling,
        (),
        dict(log.published),
        stored_upto,
        chunks,
        _queue_image(log) if log.queue is not None else None,
        leaving,
        dict(log.transit.received) if log.has_moves else {},
        log.transit.next_number if log.has_moves else 1,
        _archives(log) if log.has_holders else (),
        group_images(log),
        inflow_image(log.inflow) if log.inflow is not None else None,
        bytes(log.waits or b""),
        heap_image(log.queue, log.volatile) if isinstance(log.queue, Heap) else None,
    )


def _archives(log: Log) -> tuple[Archived, ...]:
    known = log.holds.archives.items()
    return tuple(Archived(name, archive.upto_seq, archive.location, archive.at_ms) for name, archive in known)


def _queue_image(log: Log) -> QueueImage:
    queue = log.queue
    assert queue is not None
    # The order of a heap with messages in memory is not kept: all records are put in order again.
    from_start = log.volatile is not None and isinstance(queue, Heap)
    leases = queue.leases.columns() if queue.is_touched else NO_LEASES
    return QueueImage(SEQ_BASE if from_start else queue.cursor, queue.dead_lettered, leases)


def with_runs(image: LogImage, runs: tuple[RunImage, ...]) -> LogImage:
    return msgspec.structs.replace(image, runs=runs)


def restore_log(log: Log, image: LogImage) -> None:
    """Put an image's numbers into a fresh log; the runs are the caller's."""
    log.next_seq = image.next_seq
    log.low = image.low
    log.evict_floor = image.evict_floor
    if image.lost:
        log.lost = dict(image.lost)
    if image.holes:
        log.holes = [Hole(hole.gap_from, hole.gap_to, hole.reason) for hole in image.holes]
    log.last_ts = image.last_ts
    # Mostly the same number: then the same object.
    log.last_write_ts = log.last_ts if image.last_write_ts == log.last_ts else image.last_write_ts
    log.granted_ceiling = image.granted_ceiling
    if image.published:
        log.published = dict(image.published)
    log.waits = bytearray(image.waits) or None
    if image.queue is not None and not isinstance(log.queue, Heap):
        leases = LeaseTable.of(image.queue.leases) if image.queue.leases.seqs else None
        log.queue = Queue(image.queue.cursor, image.queue.dead_lettered, leases)
    restore_groups(log, image.groups)
    log.inflow = restore_inflow(image.inflow) if image.inflow is not None else None
    if image.next_move > 1 or image.received:
        log.transit.received = dict(image.received)
        log.transit.next_number = image.next_move
    facts: list[LogFact] = [*image.leaving, *image.archives]
    for fact in facts:
        log.apply(fact)
    gap_from = max(image.stored_upto + 1, log.low)
    if gap_from <= log.head_seq:
        log.add_hole(gap_from, log.head_seq, Reason.RESTART)


def stage_image(stage: OpenStage) -> StageImage:
    log_id = stage.log.log_id
    return StageImage(
        stage.stage, log_id, stage.topic, stage.partition, stage.expires_ms, stage.decided, stage.in_memory
    )


def batch_image(batch: Batch) -> BatchImage:
    return BatchImage(batch.producer_id, batch.epoch, batch.stages, batch.decided_ms, batch.answer)


def restore_batch(image: BatchImage) -> Batch:
    return Batch(image.producer_id, image.epoch, image.stages, image.decided_ms, image.answer)


encode = msgspec.msgpack.Encoder().encode
decode_meta = msgspec.msgpack.Decoder(MetaImage).decode
decode_topic = msgspec.msgpack.Decoder(TopicImage).decode
decode_log = msgspec.msgpack.Decoder(LogImage).decode
decode_fence = msgspec.msgpack.Decoder(Fence).decode
decode_stage = msgspec.msgpack.Decoder(StageImage).decode
decode_batch = msgspec.msgpack.Decoder(BatchImage).decode
