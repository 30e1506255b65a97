"""One step of a router: the next records of its source into its destination, and how far it has come with that.

A step takes what there is, up to some tens of thousands of records. What is not there any more because the source lost
it becomes a gap in the destination; what was deleted, is filtered out or has gone around its ring is passed over.
Copies, gap and cursor are one fact, `Forwarded`, in the destination's log. When there is neither copy nor gap nothing
is stored: the cursor moves in memory, and who comes back to an older one after a crash passes over the same again.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from topics.core import ceiling, routing
from topics.core.facts import Floors, encode
from topics.core.inflow import Inflow, Route, RouteKey
from topics.core.log import Log
from topics.core.outcome import Outcome, StoredFact
from topics.core.payload import I64, CopiedRun, Selection, Shape
from topics.core.router import Router
from topics.core.routerfacts import Forwarded
from topics.core.stretch import Cuts, Load, stretches
from topics.limits import STEP_RECORDS_MAX
from topics.model import Discard, Durability, Reason, TopicConfig
from topics.routermodel import Guarantee

if TYPE_CHECKING:
    from topics.core.machine import Machine

_EPHEMERAL: Final = Durability.EPHEMERAL


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
        if config.guarantee == Guarantee.EXACTLY_ONCE:
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
            return _pass(lane, upto)
    trimmed, start, upto = _passed(source, cursor + 1, upto)
    config = machine.topic(dest.topic).config
    dest.observe(config, now_ms)
    takes_part, stored = config.discard is Discard.REJECT, _is_stored(machine, source, start)
    load = Load(start)
    # What is cut to fit, or goes into the fact, is in one piece.
    records_max = 1 if takes_part or not stored else STEP_RECORDS_MAX
    for stretch in stretches(source, start, upto, cuts):
        positions, selection = stretch.select(lane.router.match, lane.shape, lane.present)
        load.add(stretch, positions, selection)
        if load.scanned >= records_max or (selection is not None and selection.is_costly):
            break
    else:
        load.next_seq = upto + 1
    if load.count and takes_part:
        # Where nothing fits, one record is what is refused, for what it is: not for the size of a batch it came in.
        load = load.fitted(max(1, _fitting(config, dest, load.selections[0])), lane.shape)
    if load.count:
        machine.check_room(dest.topic, config, dest, load)
    return _take(machine, lane, config, now_ms, trimmed, hops, load, stored)


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


def _take(
    machine: Machine, lane: Lane, config: TopicConfig, now_ms: int, trimmed: int, hops: int, load: Load, is_stored: bool
) -> Step:
    source, dest, cursor = lane.source, lane.dest, load.next_seq - 1
    if not trimmed and not load.count:
        return _pass(lane, cursor)
    first_seq, ts = dest.next_seq + trimmed, max(now_ms, dest.last_ts)
    stored = config.durability is not _EPHEMERAL
    put_gap(dest, first_seq, trimmed)
    floors: Floors | None = None
    records = b""
    if load.count and stored and not is_stored:
        records = b"".join(load.selections[0].encoded(first_seq, ts).block_buffers())
    for selection in load.selections:
        floors = put_copies(dest, selection, dest.next_seq, ts, config) or floors
    last_seq = first_seq + load.count - 1
    ceiling_seq = ceiling.grant(dest, last_seq) if config.durability is Durability.DISK else 0
    fact = Forwarded(
        lane.router.number,
        source.log_id,
        cursor,
        load.from_seq,
        load.chosen(),
        first_seq,
        load.count,
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
    facts = [StoredFact(dest.log_id, False, [encode(fact)])] if stored else []
    outcome = Outcome(None, facts, config.durability is Durability.FSYNC, dest, last_seq, config.durability)
    if stored and load.count and not records:
        outcome.source, outcome.source_seq, outcome.first_seq = source, cursor, first_seq - trimmed
    return Step(cursor, outcome, load.count, load.payload_bytes)


def _pass(lane: Lane, cursor: int) -> Step:
    """Go on without anything to store."""
    dest = lane.dest
    if dest.inflow is None:
        dest.inflow = Inflow()
    dest.inflow.routes.setdefault(lane.key, Route(cursor)).cursor = cursor
    return Step(cursor)


def _is_stored(machine: Machine, source: Log, seq: int) -> bool:
    """Whether the source's own facts hold its records from here on."""
    if machine.topic(source.topic).config.durability is _EPHEMERAL:
        return False
    return source.volatile is None or seq > source.volatile.last_seq()


def unpack(chosen: bytes, count: int) -> I64:
    """The positions that `Forwarded.chosen` names, of so many."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(chosen, np.uint8), count=count)).astype(np.int64)


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
