"""One step of a router: the next records of its source into its destination, and how far it has come with that.

A step takes a stretch that lies in one block of the source. What is no longer there because the source lost it becomes
a gap in the destination; what was deleted, is filtered out or has gone around its ring is passed over. Copies, gap and
cursor are one fact, `Forwarded`, in the destination's log. When there is neither copy nor gap nothing is stored: the
cursor moves in memory, and who comes back to an older one after a crash passes over the same records again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from topics.core import ceiling, routing
from topics.core.block import Block
from topics.core.facts import Floors, encode
from topics.core.inflow import Inflow, Route, RouteKey
from topics.core.log import Log
from topics.core.match import Match
from topics.core.outcome import Outcome, StoredFact
from topics.core.payload import I64, CopiedRun, Selection, Shape, slice_block
from topics.core.registry import META_LOG_ID
from topics.core.router import Router
from topics.core.routerfacts import Forwarded, RouterPut
from topics.core.run import DEAD, Marks, MemoryRun, index_tags
from topics.core.tail import Tail
from topics.limits import BLOCK_RECORDS
from topics.model import Discard, Durability, Reason, TopicConfig
from topics.routermodel import Guarantee

if TYPE_CHECKING:
    from topics.core.machine import Machine

_EPHEMERAL: Final = Durability.EPHEMERAL


class Stretch:
    """Records of one block of a source, in memory, and what routers choose of them."""

    def __init__(self, block: Block, marks: Marks | None) -> None:
        self.block = block
        self.first_seq = block.first_seq
        self.last_seq = block.last_seq
        self._live = None if marks is None else np.flatnonzero(np.frombuffer(marks, np.uint8) != DEAD)
        self._selections: dict[tuple[Match | None, Shape], tuple[I64 | None, Selection]] = {}

    @cached_property
    def _tag_index(self) -> dict[bytes, list[int]]:
        return index_tags(self.block)

    def select(
        self, match: Match | None, shape: Shape, present: Collection[int] = ()
    ) -> tuple[I64 | None, Selection | None]:
        """The positions of what matches and is not `present` already, None for all; and the records, None for none."""
        key = match, shape
        if present or key not in self._selections:
            positions = self._positions(match)
            if present:
                every = range(self.block.count) if positions is None else positions.tolist()
                positions = np.array([at for at in every if self.first_seq + at not in present], np.int64)
            if positions is not None and len(positions) == self.block.count:
                positions = None
            if positions is not None and not len(positions):
                return positions, None
            made = positions, Selection(self.block, positions, shape)
            if present:
                return made
            self._selections[key] = made
        return self._selections[key]

    def _positions(self, match: Match | None) -> I64 | None:
        if match is None:
            return self._live
        found = np.array(sorted(match.positions(self._tag_index)), np.int64)
        return found if self._live is None else np.intersect1d(found, self._live, assume_unique=True)


Cuts = dict[tuple[int, int, int], Stretch]
"""Stretches by log, first and last seq: of several routers that stand at the same place, the first one cuts."""


@dataclass(slots=True)
class Step:
    cursor: int
    """The last seq of the source that is done with."""
    outcome: Outcome | None = None
    """What is to be stored; None when nothing is."""
    count: int = 0
    """How many copies that made, and their payload."""
    payload_bytes: int = 0


@dataclass(slots=True)
class Lane:
    """One router between one partition of its source and the one of its destination."""

    router: Router
    source: Log
    dest: Log
    ring_topics: int
    """How many topics are in the ring that the router is part of; 0 for none."""
    shape: Shape
    present: set[int] = field(default_factory=set)
    """Seqs of the source whose copies are in the destination already, by their stamps."""

    @classmethod
    def of(cls, machine: Machine, router: Router, source: Log, dest: Log) -> Lane:
        config = router.config
        stamp = ""
        if config.guarantee is Guarantee.EXACTLY_ONCE:
            stamp = f"{router.name}/{source.topic}/{source.epoch}/{source.partition}/"
        shape = Shape(not config.preserve_node, not config.preserve_tag, stamp)
        return cls(router, source, dest, machine.routers.ring_of(router), shape)

    @property
    def cursor(self) -> int:
        return routing.cursor(self.router, self.source, self.dest)

    @property
    def key(self) -> RouteKey:
        return RouteKey(self.router.number, self.source.log_id)


def step(machine: Machine, lane: Lane, now_ms: int, cuts: Cuts) -> Step | None:
    """Go on by one stretch; None when there is nothing to go to. Raises, and changes nothing, what the destination says
    to a write that it does not take, and `Damaged` when the source cannot be read."""
    source, dest = lane.source, lane.dest
    source.observe(machine.topic(source.topic).config, now_ms)
    cursor, upto = lane.cursor, source.visible_seq
    if cursor >= upto:
        return None
    hops = 0
    if lane.ring_topics:
        made, upto = (0, upto) if source.inflow is None else source.inflow.hops_at(cursor + 1, upto)
        hops = made + 1
        if hops >= lane.ring_topics:
            return _advance(machine, lane, now_ms, upto)
    trimmed, start, upto = _passed(source, cursor + 1, upto)
    stretch = _cut(source, start, upto, cuts) if start <= upto else None
    if stretch is None:
        return _advance(machine, lane, now_ms, upto, trimmed, hops)
    positions, selection = stretch.select(lane.router.match, lane.shape, lane.present)
    if selection is None:
        return _advance(machine, lane, now_ms, stretch.last_seq, trimmed, hops)
    config = machine.topic(dest.topic).config
    dest.observe(config, now_ms)
    if config.discard is Discard.REJECT:
        fitting = _fitting(config, dest, selection)
        if 0 < fitting < selection.count:
            last = fitting - 1 if positions is None else int(positions[fitting - 1])
            stretch = Stretch(slice_block(stretch.block, 0, last + 1, False), None)
            positions = None if positions is None else positions[:fitting]
            selection = Selection(stretch.block, positions, lane.shape)
    machine.check_room(dest.topic, config, dest, selection)
    return _take(machine, lane, config, now_ms, trimmed, hops, stretch, positions, selection)


def _passed(source: Log, start: int, upto: int) -> tuple[int, int, int]:
    """How many seqs from `start` on were lost, where those begin that were not, and where the next loss is."""
    trimmed = 0
    if start < source.evict_floor:
        behind = min(source.evict_floor, upto + 1)
        trimmed, start = behind - start, behind
    at = bisect_left(source.holes, start, key=lambda hole: hole.gap_to)
    if at < len(source.holes) and source.holes[at].gap_from <= start <= upto:
        behind = min(source.holes[at].gap_to, upto) + 1
        trimmed, start = trimmed + behind - start, behind
        at += 1
    if at < len(source.holes):
        upto = min(upto, source.holes[at].gap_from - 1)
    return trimmed, start, max(upto, start - 1)


def _cut(source: Log, start: int, upto: int, cuts: Cuts) -> Stretch | None:
    """The next records that are there, up to the end of their block; None when there are none up to `upto`."""
    key = source.log_id, start, upto
    if key in cuts:
        return cuts[key]
    for run in source.parts_from(max(start, source.low)):
        first = max(start, source.low, run.first_seq)
        if first > upto:
            return None
        if isinstance(run, Tail):
            stretch = Stretch(*run.block_of(first, min(BLOCK_RECORDS, upto - first + 1)))
        else:
            block, marks = run.block_at(first)
            begin, end = first - block.first_seq, min(block.last_seq, upto) - block.first_seq + 1
            # What lies in a mapped file goes with the file, and a copy may stay for longer.
            cut = slice_block(block, begin, end, copied=not isinstance(run, MemoryRun))
            stretch = Stretch(cut, None if marks is None else bytearray(marks[begin:end]))
        cuts[key] = stretch
        return stretch
    return None


def _fitting(config: TopicConfig, dest: Log, selection: Selection) -> int:
    """How many of the first records a destination that refuses when it is full has room for."""
    count = selection.count
    if config.cap_records:
        count = min(count, config.cap_records - dest.count)
    if config.cap_bytes:
        sizes = selection.data_lens if selection.meta_lens is None else selection.data_lens + selection.meta_lens
        totals = np.cumsum(sizes, dtype=np.uint64)
        room = max(config.cap_bytes - dest.bytes, 0)
        count = min(count, int(np.searchsorted(totals, np.uint64(room), side="right")))
    return count


def _advance(machine: Machine, lane: Lane, now_ms: int, cursor: int, trimmed: int = 0, hops: int = 0) -> Step:
    """Go on without copies."""
    dest = lane.dest
    if trimmed:
        config = machine.topic(dest.topic).config
        return _take(machine, lane, config, now_ms, trimmed, hops, None, None, None, cursor)
    if dest.inflow is None:
        dest.inflow = Inflow()
    route = dest.inflow.routes.setdefault(lane.key, Route(cursor))
    route.cursor = cursor
    return Step(cursor)


def _take(
    machine: Machine,
    lane: Lane,
    config: TopicConfig,
    now_ms: int,
    trimmed: int,
    hops: int,
    stretch: Stretch | None,
    positions: I64 | None,
    selection: Selection | None,
    cursor: int = 0,
) -> Step:
    source, dest = lane.source, lane.dest
    first_seq, ts = dest.next_seq + trimmed, max(now_ms, dest.last_ts)
    stored = config.durability is not _EPHEMERAL
    put_gap(dest, first_seq, trimmed)
    floors: Floors | None = None
    from_seq = count = 0
    chosen = records = b""
    if stretch is not None and selection is not None:
        from_seq, cursor, count = stretch.first_seq, stretch.last_seq, selection.count
        if positions is not None:
            chosen = pack(positions, stretch.block.count)
        if stored and not _is_stored(machine, source, from_seq):
            records = b"".join(selection.encoded(first_seq, ts).block_buffers())
        floors = put_copies(dest, selection, first_seq, ts, config)
    last_seq = first_seq + count - 1
    ceiling_seq = ceiling.grant(dest, last_seq) if config.durability is Durability.DISK else 0
    fact = Forwarded(
        lane.router.number,
        source.log_id,
        cursor,
        from_seq,
        chosen,
        first_seq,
        count,
        ts,
        trimmed,
        lane.shape.drops_node,
        lane.shape.drops_tag,
        lane.shape.stamp,
        hops,
        ceiling_seq,
        None if floors is None else (floors.low, floors.evict_floor, floors.lost),
        records,
    )
    remember(dest, fact)
    outcome = Outcome(
        None,
        [StoredFact(dest.log_id, False, [encode(fact)])] if stored else [],
        config.durability is Durability.FSYNC,
        dest,
        last_seq,
        config.durability,
    )
    if stored and count and not records:
        outcome.source, outcome.source_seq, outcome.first_seq = source, cursor, first_seq - trimmed
    return Step(cursor, outcome, count, 0 if selection is None else selection.payload_bytes)


def _is_stored(machine: Machine, source: Log, seq: int) -> bool:
    """Whether the source's own facts hold its records from here on."""
    return machine.topic(source.topic).config.durability is not _EPHEMERAL and seq > source.volatile_seq


def pack(positions: I64, count: int) -> bytes:
    """Positions as bits."""
    bits = np.zeros(count, np.bool_)
    bits[positions] = True
    return np.packbits(bits).tobytes()


def unpack(chosen: bytes, count: int) -> I64:
    return np.flatnonzero(np.unpackbits(np.frombuffer(chosen, np.uint8), count=count)).astype(np.int64)


def rewind(lane: Lane) -> tuple[Router, Outcome] | None:
    """After a crash: a source of class `memory` may have lost its end, and gives out the same seqs again.

    Then a router that has come further begins behind what is left of it.
    """
    head, source, dest = lane.source.head_seq, lane.source, lane.dest
    if lane.cursor <= head:
        return None
    starts = tuple(min(at, head) if index == source.partition else at for index, at in enumerate(lane.router.starts))
    router = replace(lane.router, starts=starts)
    put = RouterPut(router.name, router.number, router.config, router.created_ms, starts)
    facts = [StoredFact(META_LOG_ID, False, [encode(put)])]
    if dest.inflow is not None and lane.key in dest.inflow.routes:
        fact = Forwarded(router.number, source.log_id, head, first_seq=dest.next_seq)
        remember(dest, fact)
        facts.append(StoredFact(dest.log_id, False, [encode(fact)]))
    return router, Outcome(None, facts, must_sync=True)


# ---- what a fact does, when it is made and when it is replayed


def put_gap(dest: Log, first_seq: int, trimmed: int) -> None:
    if trimmed:
        dest.add_hole(first_seq - trimmed, first_seq - 1, Reason.SOURCE_TRIM)


def put_copies(dest: Log, selection: Selection, first_seq: int, ts: int, config: TopicConfig) -> Floors | None:
    """The copies behind what is there; the floors if they moved and are stored."""
    if selection.is_small:
        return dest.append(selection.encoded(first_seq, ts), config)
    dest.freeze_tail()
    dest.runs.append(CopiedRun(selection, first_seq, ts))
    dest.next_seq = first_seq + selection.count
    return dest.grown(selection.count, selection.payload_bytes, ts, config)


def remember(dest: Log, fact: Forwarded) -> None:
    if dest.inflow is None:
        dest.inflow = Inflow()
    dest.inflow.apply(fact)
