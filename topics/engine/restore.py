"""From the images of a snapshot to the state of an engine, before the WAL's facts come on top.

Who restores decides which runs a log gets: opening takes those the image names and refuses when one is not as it was,
a repair takes what is left of them. An image that is whole and says nothing to us is refused by both: to do without it
would lose what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from topics.core.batch import OpenStage
from topics.core.fence import Fence
from topics.core.heap import queue_for
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.registry import META_LOG_ID, Topic
from topics.core.run import Run
from topics.engine import accountimages, catalogimages, heapimages, images, routerimages
from topics.engine.checkpoint import CHUNK_HEAD_BYTES, Checkpointer
from topics.engine.images import LogImage, MetaImage, RunImage, StageImage, TopicImage
from topics.errors import Damaged, InvalidRequest, NotUnderstood
from topics.storage.frame import OTHER_VERSION, UNREADABLE
from topics.storage.segmentrun import SegmentRun
from topics.storage.store import Store

R = TypeVar("R")
TakeRuns = Callable[[Log, LogImage], list[Run]]

MEANINGLESS = (*UNREADABLE, LookupError, OverflowError, InvalidRequest)
"""What comes of an image that is not what this version writes: names and numbers in it lead nowhere."""


class _Understood:
    """What cannot be read inside it is an entry of a snapshot that this version does not understand.

    A class, because there is one for each log: what `contextmanager` makes costs as much as the rest of restoring it.
    """

    __slots__ = ("_key", "_store")

    def __init__(self, store: Store, key: bytes) -> None:
        self._store = store
        self._key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MEANINGLESS):
            raise _not_understood(self._store, self._key, error) from error


class Restorer:
    def __init__(
        self, store: Store, machine: Machine, checkpointer: Checkpointer, positions: dict[int, int], take_runs: TakeRuns
    ) -> None:
        self.now_ms = store.clock.now_ms()
        """The time, never before that of the snapshot."""
        self._store = store
        self._machine = machine
        self._checkpointer = checkpointer
        self._positions = positions
        self._take_runs = take_runs
        self._state: dict[bytes, bytes] = {}
        self._fences: dict[int, list[tuple[str, Fence]]] = {}
        self.named: dict[tuple[int, int], int] = {}
        """Each segment and section that a log's image names, with the floor of that log."""

    def load(self, state: dict[bytes, bytes], consume: bool = False) -> None:
        """Restore all that a snapshot holds. With `consume`, the images of topics and their logs are taken out of
        `state` on the way, so that all of them are never in memory beside all that is made of them."""
        self._state = state
        if images.META_KEY in state:
            self._restore_meta(self._read(images.META_KEY, images.decode_meta))
        for key, value in state.items():
            if key.startswith(images.FENCE_KEY):
                with self._understood(key):
                    log_id, producer_id = images.fence_place(key)
                    self._fences.setdefault(log_id, []).append((producer_id, images.decode_fence(value)))
            elif key.startswith(heapimages.KEY):
                with self._understood(key):
                    heapimages.check_run(value)
        # In order of their names, so that each is the last one in the registry.
        for key in sorted(key for key in state if key.startswith(b"t/")):
            image = self._read(key, images.decode_topic)
            self._restore_topic(image)
            if consume:
                del state[key]
                for log_id in range(image.first_log_id, image.first_log_id + image.config.partitions):
                    state.pop(images.log_key(log_id), None)
        for key, value in state.items():
            if key.startswith(b"s/"):
                self._restore_stage(self._read(key, images.decode_stage))
            elif not key.startswith((b"t/", b"b/", heapimages.KEY)):
                self._restore_other(key, value)
        batches = self._machine.batches
        for key in sorted(state):
            if key.startswith(b"b/"):
                batches.restore(images.restore_batch(self._read(key, images.decode_batch)))
        self._machine.changed = set()
        self._machine.routers.changed = set()
        batches.changed_stages = set()
        batches.changed_batches = set()

    def _restore_other(self, key: bytes, value: bytes) -> None:
        with self._understood(key):
            if key.startswith(b"r/"):
                self._machine.routers.put(routerimages.restore_router(routerimages.decode_router(value)))
            elif key.startswith(b"l/"):
                if int(key[2:]) not in self._machine.logs:
                    # Of no topic: it has to be understood all the same, and its sections are named.
                    self._note_named(images.decode_log(value))
            else:
                catalogimages.restore(self._machine.catalog, key, value)
                accountimages.restore(self._machine.accounts, key, value)

    def _note_named(self, image: LogImage) -> None:
        for run in image.runs:
            self.named[run.segment, run.section] = image.low

    def _read(self, key: bytes, decode: Callable[[bytes], R]) -> R:
        try:
            return decode(self._state[key])
        except MEANINGLESS as error:
            raise _not_understood(self._store, key, error) from error

    def _understood(self, key: bytes) -> _Understood:
        return _Understood(self._store, key)

    def _restore_meta(self, meta: MetaImage) -> None:
        self._machine.next_log_id = meta.next_log_id
        self._machine.next_epoch = meta.next_epoch
        self._store.next_segment = max(self._store.next_segment, meta.next_segment)
        self.now_ms = max(self.now_ms, meta.now_ms)
        self._positions[META_LOG_ID] = self._checkpointer.covered[META_LOG_ID] = meta.position

    def _restore_topic(self, image: TopicImage) -> None:
        topic = Topic(
            image.name,
            image.config,
            image.epoch,
            image.first_log_id,
            image.created_ms,
            sources=image.sources,
            updated_ms=image.updated_ms,
        )
        self._machine.topics.add(topic)
        for partition, log_id in enumerate(topic.log_ids()):
            log = Log(log_id, topic.name, partition, topic.epoch, self._machine.totals)
            log.queue = queue_for(topic.config)
            self._restore_log(log, topic.config.idempotency_window_ms)

    def _restore_stage(self, image: StageImage) -> None:
        log = Log(image.log_id, image.topic, image.partition, 0, self._machine.totals)
        self._restore_log(log, 0)
        self._machine.batches.stages[image.stage] = OpenStage(
            image.stage, log, image.topic, image.partition, image.expires_ms, image.decided, image.in_memory
        )

    def _restore_log(self, log: Log, window_ms: int) -> None:
        self._machine.logs[log.log_id] = log
        key = images.log_key(log.log_id)
        image = self._read(key, images.decode_log) if key in self._state else None
        self._checkpointer.covered[log.log_id] = image.position if image is not None else 0
        if image is None:
            return
        self._positions[log.log_id] = image.position
        self._note_named(image)
        with self._understood(key):
            heapimages.restore(log, image, self._state)
            images.restore_log(log, image)
        log.runs = self._take_runs(log, image)
        for producer_id, fence in self._fences.get(log.log_id, ()):
            log.dedupe.load_fence(producer_id, fence)
        if not image.chunks:
            return
        heads = {}
        for number in image.chunks:
            chunk = self._state.get(images.chunk_key(log.log_id, number))
            if chunk is not None:
                heads[number] = chunk[:CHUNK_HEAD_BYTES]
                with self._understood(images.chunk_key(log.log_id, number)):
                    log.dedupe.load_chunk(chunk, self.now_ms, window_ms)
        self._checkpointer.restore_chunks(log.log_id, heads)


def _not_understood(store: Store, key: bytes, error: Exception) -> NotUnderstood:
    place, name = f"{store.directory}/snapshots", key.decode(errors="replace")
    return NotUnderstood(
        f"{place}: the entry {name} of snapshot {store.snapshots.number} is whole, but cannot be read: {error}; "
        f"{OTHER_VERSION}",
        file=place,
        key=name,
    )


def stored_runs(store: Store, log: Log, image: LogImage) -> list[Run]:
    """The runs an image names; raises `Damaged` when one is not as the image says."""
    runs: list[Run] = []
    for place in image.runs:
        check_place(store, log, place)
        run = store.run(place.segment, place.section, place.live_count, place.live_bytes)
        if check_flags(store, log, run, place) < place.live_count:
            # A process died after writing these flags and before its snapshot, perhaps before they were synced.
            run.doubt_flags()
            run.recount()
        runs.append(run)
    return runs


def check_place(store: Store, log: Log, place: RunImage) -> None:
    """A segment must hold what its image names: a file of another directory is whole, and does not."""
    # To ask where a file is costs a call of the system: done for those that are complained of.
    segment = store.segment(place.segment)
    section = segment.sections[place.section] if place.section < len(segment.sections) else None
    if section is None or section.log_id != log.log_id:
        raise _misplaced(segment.path(), log, place, "nothing of it")
    if (section.first_seq, section.last_seq) != (place.first_seq, place.last_seq):
        raise _misplaced(segment.path(), log, place, f"seqs {section.first_seq}..{section.last_seq}")
    if place.salt != segment.salt:
        check_salt(segment.path(), segment.salt, log, place)


def check_pieces(path: str, log: Log, place: RunImage, pieces: Sequence[Run]) -> None:
    """The same of a segment that is read without its index, but for `check_salt`."""
    if not pieces:
        raise _misplaced(path, log, place, "nothing of it")
    if (pieces[0].first_seq, pieces[-1].last_seq) != (place.first_seq, place.last_seq):
        raise _misplaced(path, log, place, f"seqs {pieces[0].first_seq}..{pieces[-1].last_seq}")


def check_salt(path: str, salt: int, log: Log, place: RunImage) -> None:
    """Directories with the same past have the same topics, logs and seqs: the salt alone tells their files apart."""
    if place.salt not in (0, salt):
        raise _misplaced(path, log, place, "those of another directory")


def _misplaced(path: str, log: Log, place: RunImage, found: str) -> Damaged:
    return Damaged(
        f"{path} offset 0: section {place.section} should hold seqs {place.first_seq}..{place.last_seq} of log "
        f"{log.log_id} (topic {log.topic}) and holds {found}: the file is another than the snapshot is about",
        file=path,
        offset=0,
        topic=log.topic,
        first_seq=place.first_seq,
        last_seq=place.last_seq,
    )


def check_flags(store: Store, log: Log, run: SegmentRun, place: RunImage) -> int:
    """A run must have at least the deletions that were in its file when its image was made.

    Answers how many records the flags leave alive, without looking at a block: one that is damaged fails the reads that
    need it, not the start.

    Marks may have reached the file after the snapshot, so there may be fewer live records; more would be deleted ones
    that come back.
    """
    live = run.flagged_live(place.low)
    if live > place.live_count:
        path = store.segment(place.segment).path()
        raise Damaged(
            f"{path} offset {run.flags_offset()}: of seqs {run.first_seq}..{run.last_seq} of topic {log.topic}, {live} "
            f"are live by their flags, but {place.live_count} by the snapshot: deleted records would come back",
            file=path,
            offset=run.flags_offset(),
            topic=log.topic,
            first_seq=run.first_seq,
            last_seq=run.last_seq,
        )
    return live
