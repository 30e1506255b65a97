"""Forwarding: every router brought up to what readers see of its source, a little at a time.

How it works. When readers can see more of a log that routers lead from, the log is put in a line, which costs one
lookup on the way of a write. `pump` works through the line: a step for each router of a log, then the next log, and to
the end of the line again while there is more. A step takes what there is, and costs about the same however much
that is: a router that is behind takes more at once, so that being behind makes it faster.

The host runs the pump on its loop, a slice of time at once, as long as there is credit for it (`credit.py`): who writes
as fast as it can is not held up by the routers that follow.

A step that is refused (a full destination, a disk that is behind or broken) stalls its router alone, which tries again
by itself, later and later. No step is made while a checkpoint captures its logs: see docs/ROUTERS.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from topics.clock import Clock
from topics.core import forward, routing
from topics.core.commands import Ack, Acks, Command, Complete, Configure, Delete, Drop, DropRouter, PutRouter
from topics.core.evidence import Evidence
from topics.core.forward import Lane
from topics.core.heapcommands import AckMessages, CancelMessage, MoveToDlq, NackMessages, PurgeHeap
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.outcome import Outcome
from topics.core.router import Router
from topics.core.stretch import Cuts
from topics.engine.credit import Credit
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.model import Dropped

Captured = TypeVar("Captured")

RETRY_MS_MIN: Final = 10
RETRY_MS_MAX: Final = 1000
COPIES_FACTOR: Final = 4
"""So many bytes of copies, which share their memory, count as one towards the next checkpoint."""
BEHIND_FACTOR: Final = 2
"""At so many times what makes a checkpoint due, copies wait for it."""


@dataclass(eq=False, slots=True)
class Way:
    """A lane, and how it fares."""

    lane: Lane
    ring_version: int
    evidence: Evidence | None = None
    retry_ms: int = 0
    """When it is tried again; 0 while it is not stalled."""
    pause_ms: int = RETRY_MS_MIN
    stalled: str | None = None
    last_error: str | None = None
    last_error_ms: int | None = None
    copied_seq: int = 0
    """The last copy in the destination that this process made."""


@dataclass(eq=False, slots=True)
class _Source:
    log: Log
    ways: list[Way] = field(default_factory=list)
    marked: bool = False
    at: int = 0
    """The way whose turn it is."""
    again: bool = False
    """Whether a way has more to do after this round."""
    dests: set[str] = field(default_factory=set)
    told: bool = False
    """Whether all of them are known to be behind."""


class Forwarding:
    def __init__(
        self,
        machine: Machine,
        add: Callable[[Outcome], Ticket],
        check: Callable[[int], None],
        mark_dirty: Callable[[int], None],
        now_ms: Callable[[], int],
        clock: Clock,
        dirty_bytes_max: int,
    ) -> None:
        self.wanted: Callable[[float], None] = lambda after_s: None
        """Called when there is something to pump and there was not, with how long that may wait."""
        self.progressed: Callable[[], None] = lambda: None
        """Called when readers can see more, and when routers have worked."""
        self.into: dict[str, list[Way]] = {}
        """What leads to each destination."""
        self.behind: set[str] = set()
        """Destinations that may not show yet what their sources do; all others do."""
        self.copied_bytes = 0
        """Payload of copies since the last checkpoint: the next one has to write them."""
        self._captured_bytes = 0
        self.forwarded_count = 0
        """Copies made by this process."""
        self._machine = machine
        self._add = add
        self._check = check
        self._mark_dirty = mark_dirty
        self._now_ms = now_ms
        self._clock = clock
        self._dirty_bytes_max = dirty_bytes_max
        self._sources: dict[int, _Source] = {}
        self._by_router: dict[str, list[Way]] = {}
        self._line: deque[_Source] = deque()
        self._stalled: set[Way] = set()
        self._next_retry_ms = 0
        self._asked = False
        self._held = False
        self._stopped = False
        self._credit = Credit(clock)
        self._caught_up = True
        self._cuts: Cuts = {}

    # ---- which routers there are

    def resume(self) -> None:
        """After a recovery: all routers go on."""
        for router in list(self._machine.routers):
            self._begin(router)

    def follow(self, command: Command, reply: object) -> None:
        """A command was decided that may be about routers, or let one go on that is stalled."""
        match command:
            case PutRouter():
                self._end(command.router)
                self._begin(routing.find(self._machine, command.router))
            case DropRouter():
                self._end(command.router)
            case Drop():
                assert isinstance(reply, Dropped)
                for name in reply.routers:
                    self._end(name)
            case Configure() | Delete() | Ack() | Acks() | Complete() if self._stalled:
                self._wake(command.topic)
            case AckMessages() | NackMessages() | CancelMessage() | MoveToDlq() | PurgeHeap() if self._stalled:
                self._wake(command.topic)

    def _end(self, name: str) -> None:
        for way in self._by_router.pop(name, ()):
            source = self._sources[way.lane.source.log_id]
            source.ways.remove(way)
            source.dests = {way.lane.dest.topic for way in source.ways}
            self._forget_way(way)
            # Places have changed: the round begins anew.
            source.at = 0
            self._stalled.discard(way)
            if not source.ways:
                del self._sources[source.log.log_id]

    def _forget_way(self, way: Way) -> None:
        name = way.lane.dest.topic
        self.into[name].remove(way)
        if not self.into[name]:
            del self.into[name]
            self.behind.discard(name)

    def ways(self, name: str) -> list[Way]:
        """How each partition of a router fares."""
        return self._by_router.get(name, [])

    @property
    def dirty_bytes(self) -> int:
        """What copies count towards the next checkpoint."""
        return self.copied_bytes // COPIES_FACTOR

    @property
    def stalled_count(self) -> int:
        return len({way.lane.router.name for way in self._stalled})

    def _begin(self, router: Router) -> None:
        ways = self._by_router[router.name] = []
        for source_log, dest in routing.ends(self._machine, router):
            lane = Lane.of(self._machine, router, source_log, dest)
            way = Way(lane, self._machine.routers.version)
            if lane.shape.stamp and dest.count and lane.cursor < source_log.head_seq:
                way.evidence = Evidence(dest, lane.shape.stamp)
            ways.append(way)
            source = self._sources.setdefault(source_log.log_id, _Source(source_log))
            source.ways.append(way)
            source.dests.add(dest.topic)
            source.told = False
            self.into.setdefault(dest.topic, []).append(way)
            self._mark(source)

    # ---- news

    def note(self, log: Log) -> None:
        """Readers can see more of a log. On the way of every write."""
        source = self._sources.get(log.log_id)
        if source is not None:
            self._mark(source)
        self.progressed()

    def _mark(self, source: _Source) -> None:
        source.again = True
        if not source.told:
            source.told = True
            self.behind |= source.dests
        if not source.marked:
            source.marked = True
            source.at = 0
            self._line.append(source)
            self.ask()

    def ask(self) -> None:
        """Have the pump run if there is something to do."""
        if not self._asked and self._line and not self._held and not self._stopped:
            self._asked = True
            self.wanted(self._credit.pause_s(self._caught_up))

    def held_during(self, capture: Iterator[Captured]) -> Iterator[Captured]:
        """Make no copies while a checkpoint captures its logs, which takes several turns of the loop."""
        self._held = True
        self._captured_bytes, self.copied_bytes = self.copied_bytes, 0
        return self._held_during(capture)

    def _held_during(self, capture: Iterator[Captured]) -> Iterator[Captured]:
        try:
            yield from capture
        finally:
            self._held = False
            self.ask()

    def unsettle(self) -> None:
        """The checkpoint failed: what it had captured is still to be written."""
        self.copied_bytes += self._captured_bytes

    def stop(self) -> None:
        """The engine is closing: what is not forwarded yet is by the next process."""
        self._stopped = True

    def _wake(self, topic: str) -> None:
        """There may be room in a topic: what waits for it tries again."""
        found = self._machine.topics.get(topic)
        for way in [way for way in self._stalled if found is not None and way.lane.dest.topic == found.name]:
            self._retry(way)

    def tick(self) -> None:
        now_ms = self._now_ms()
        for way in [way for way in self._stalled if way.retry_ms <= now_ms]:
            self._retry(way)
        self._next_retry_ms = min((way.retry_ms for way in self._stalled), default=0)

    def next_deadline_ms(self) -> int | None:
        """Asked in every turn, so it is kept; it may be earlier than anybody still waits for."""
        return None if self._stopped or not self._stalled else self._next_retry_ms

    def _retry(self, way: Way) -> None:
        self._stalled.discard(way)
        way.retry_ms = 0
        self._mark(self._sources[way.lane.source.log_id])

    # ---- the work

    def pump(self) -> bool:
        """Go on for a slice of time; whether anything was done, or is left to do."""
        self._asked = False
        if self._held or self._stopped or not self._line:
            return False
        until_ns = self._credit.begin(self._caught_up)
        moved = False
        while until_ns is not None and self._line:
            moved = self._turn(self._line[0]) or moved
            if self._clock.ticks_ns() >= until_ns:
                break
        self._caught_up = not self._line
        if self._caught_up:
            self._cuts.clear()
        self._credit.end()
        self.ask()
        if moved:
            self.progressed()
        return moved or bool(self._line)

    def bring(self, way: Way, upto_seq: int, until_ns: int) -> None:
        """Go on with one way at once, because somebody reads its destination."""
        while way.lane.cursor < min(upto_seq, way.lane.source.visible_seq) and not way.retry_ms:
            if self._held or self._stopped or not self._step(way) or self._clock.ticks_ns() >= until_ns:
                return

    def forget_if_done(self, name: str) -> None:
        """A destination was brought up to its sources: it is not behind, unless one of them shows more by now."""
        ways = self.into.get(name, ())
        if all(
            way.lane.cursor >= way.lane.source.visible_seq and way.lane.dest.visible_seq >= way.copied_seq
            for way in ways
        ):
            self.behind.discard(name)
            for way in ways:
                self._sources[way.lane.source.log_id].told = False

    def _turn(self, source: _Source) -> bool:
        """One step of the way whose turn it is."""
        if source.at == 0:
            source.again = False
        moved = False
        if source.at < len(source.ways):
            way = source.ways[source.at]
            source.at += 1
            moved = self._step(way) if not way.retry_ms else False
            source.again = source.again or (moved and way.lane.cursor < source.log.visible_seq)
        if source.at >= len(source.ways):
            self._line.popleft()
            source.at = 0
            if source.again and source.ways:
                self._line.append(source)
            else:
                source.marked = False
        return moved

    def _step(self, way: Way) -> bool:
        lane = way.lane
        if way.evidence is not None:
            self._look(way, way.evidence)
            return True
        if way.ring_version != self._machine.routers.version:
            way.ring_version = self._machine.routers.version
            lane.ring_topics = self._machine.routers.ring_of(lane.router)
        now_ms = self._now_ms()
        if lane.cursor >= lane.source.visible_seq:
            return False
        if self.dirty_bytes > BEHIND_FACTOR * self._dirty_bytes_max:
            self._stall(way, "copies are ahead of the checkpoint that writes them", now_ms)
            return False
        try:
            self._check(lane.dest.log_id)
            step = forward.step(self._machine, lane, now_ms, self._cuts)
        except TopicsError as error:
            self._stall(way, error.message, now_ms)
            return False
        assert step is not None, "there is more than the cursor, and only a step moves that"
        way.stalled, way.pause_ms = None, RETRY_MS_MIN
        if step.outcome is None:
            self._mark_dirty(lane.dest.log_id)
        else:
            way.copied_seq = step.outcome.seq
            self.copied_bytes += step.payload_bytes
            self.forwarded_count += step.count
            self._add(step.outcome)
        if lane.present and step.cursor >= max(lane.present):
            lane.present.clear()
        if lane.ring_topics:
            self._forget_hops(lane.source)
        return True

    def _look(self, way: Way, evidence: Evidence) -> None:
        """Before the first step of `exactly_once`: what is there already is not forwarded again."""
        if not evidence.look():
            way.evidence = None
            way.lane.present = {seq for seq in evidence.found if seq > way.lane.cursor}

    def _forget_hops(self, log: Log) -> None:
        if log.inflow is not None and log.inflow.hops:
            lanes = [way.lane for way in self._sources[log.log_id].ways]
            log.inflow.forget_hops(min(lane.cursor for lane in lanes if lane.ring_topics))

    def _stall(self, way: Way, reason: str, now_ms: int) -> None:
        way.stalled = way.last_error = reason
        way.last_error_ms = now_ms
        way.retry_ms = now_ms + way.pause_ms
        way.pause_ms = min(2 * way.pause_ms, RETRY_MS_MAX)
        self._next_retry_ms = min(self._next_retry_ms, way.retry_ms) if self._stalled else way.retry_ms
        self._stalled.add(way)
