"""Reads of what other topics bring: a destination of routers shows what its sources showed when the read arrived, and
a topic of dead letters shows what was decided to go there by then.

How it works. `of` says whether a read has to wait. A topic that nothing leads to costs one lookup. A destination costs
one more lookup while its routers have nothing to do. Otherwise the read notes how far each source is visible, and the
routers go there at once, those that are further up first: the copies of one router are the records of the next. Copies
are visible when they are written, or synced, as any record of the topic; the read waits for that, and goes on.

A read waits for `FRESH_READ_MS` at most and then gets what is there. It does not wait for a router that is stalled, nor
while as many reads wait as may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from topics.core.machine import Machine
from topics.engine.forwarding import Forwarding
from topics.engine.moving import Moving
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.limits import FRESH_READ_MS, FRESH_READS_MAX

SLICE_NS: Final = 2_000_000
"""How long routers may work at once because somebody reads; the pump does the rest beside everything else."""
NS_PER_MS: Final = 1_000_000


class _Read:
    """A read that waits."""

    __slots__ = ("goals", "moves", "places", "settled", "ticket", "until_ns")

    def __init__(self, names: Iterable[str], until_ns: int) -> None:
        self.places = {name: place for place, name in enumerate(names)}
        """The topics to look at, those that lead to others before those."""
        self.until_ns = until_ns
        self.ticket = Ticket()
        self.goals: dict[int, int] = {}
        """How far each source has to be forwarded."""
        self.settled: set[str] = set()
        """Topics to which all has come that was on its way when the read arrived."""
        self.moves: list[Ticket] = []


class Freshness:
    def __init__(
        self,
        machine: Machine,
        forwarding: Forwarding,
        moving: Moving,
        stopped: Callable[[int], TopicsError | None],
        now_ms: Callable[[], int],
        ticks_ns: Callable[[], int],
    ) -> None:
        self.wanted: Callable[[], None] = lambda: None
        """Called when there is something to look at and there was not."""
        self._machine = machine
        self._forwarding = forwarding
        self._moves = moving
        self._stopped = stopped
        self._now_ms = now_ms
        self._ticks_ns = ticks_ns
        forwarding.progressed = self.note
        self._waiting: list[_Read] = []
        self._asked = False
        self._closed = False
        self._version = -1
        self._orders: dict[str, tuple[str, ...]] = {}
        """For each destination that was read: the destinations that lead to it, in their order, and itself."""

    def of(self, topic_names: Iterable[str]) -> Ticket | None:
        """What a read of these topics waits for; None when it may look at once."""
        behind, towards = self._forwarding.behind, self._moves.towards
        if not behind and not towards:
            return None
        topics = [topic for name in topic_names if (topic := self._machine.topics.get(name)) is not None]
        names: dict[str, None] = {}
        moves: list[Ticket] = []
        for topic in topics:
            moves += towards.get(topic.name, {}).values()
            order = self._order_of(topic.name)
            if not behind.isdisjoint(order):
                names.update(dict.fromkeys(order))
        if not names and not moves:
            return None
        read = _Read(names, self._ticks_ns() + FRESH_READ_MS * NS_PER_MS)
        read.moves = moves
        for name in names:
            for way in self._forwarding.into.get(name, ()):
                read.goals[way.lane.source.log_id] = way.lane.source.visible_seq
        if self._advance(read, self._ticks_ns() + SLICE_NS) or self._closed or len(self._waiting) >= FRESH_READS_MAX:
            return None
        self._waiting.append(read)
        for move in moves:
            move.on_done(lambda done: self.note())
        return read.ticket

    def _order_of(self, name: str) -> tuple[str, ...]:
        """A topic behind all destinations that lead to it; nothing for one that is no destination."""
        if self._version != self._machine.routers.version:
            self._version = self._machine.routers.version
            self._orders.clear()
        order = self._orders.get(name)
        if order is None:
            order = self._orders[name] = self._find_order(name) if name in self._forwarding.into else ()
        return order

    def _find_order(self, name: str) -> tuple[str, ...]:
        into = self._forwarding.into
        found: dict[str, None] = {}
        met = {name}
        path = [(name, iter([way.lane.source.topic for way in into[name]]))]
        while path:
            at, sources = path[-1]
            source = next((each for each in sources if each in into and each not in met), None)
            if source is None:
                found[at] = None
                path.pop()
            else:
                met.add(source)
                path.append((source, iter([way.lane.source.topic for way in into[source]])))
        return tuple(found)

    # ---- going on

    def note(self) -> None:
        """Readers can see more, or routers have worked."""
        if self._waiting and not self._asked:
            self._asked = True
            self.wanted()

    def look(self) -> None:
        """Answer those that need not wait any more."""
        self._asked = False
        if not self._waiting:
            return
        now_ns = self._ticks_ns()
        waiting, self._waiting = self._waiting, []
        ready: list[_Read] = []
        for read in waiting:
            done = self._advance(read, now_ns + SLICE_NS) or read.until_ns <= now_ns
            (ready if done else self._waiting).append(read)
        for read in ready:
            read.ticket.resolve(None)

    def tick(self) -> None:
        if self._waiting and self._waiting[0].until_ns <= self._ticks_ns():
            self.look()

    def next_deadline_ms(self) -> int | None:
        """When the wait of the first one is over."""
        if not self._waiting:
            return None
        left_ns = max(0, self._waiting[0].until_ns - self._ticks_ns())
        return self._now_ms() + -(-left_ns // NS_PER_MS)

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed = True
        waiting, self._waiting = self._waiting, []
        for read in waiting:
            read.ticket.resolve(None)

    def _advance(self, read: _Read, until_ns: int) -> bool:
        """Forward what a read waits for; whether it waits for nothing any more."""
        forwarding = self._forwarding
        read.moves = [move for move in read.moves if not move.done]
        whole = not read.moves
        for name in read.places:
            if name in read.settled:
                continue
            arrived = True
            for way in forwarding.into.get(name, ()):
                lane = way.lane
                goal = read.goals.get(lane.source.log_id, 0)
                if lane.cursor < goal:
                    forwarding.bring(way, goal, until_ns)
                # What cannot go on is told by the state of the router and of the topic, and is not waited for.
                to_copy = lane.cursor < goal and not way.retry_ms
                to_show = lane.dest.visible_seq < way.copied_seq and self._stopped(lane.dest.log_id) is None
                arrived = arrived and not to_copy and not to_show
            # Where a source of this one is on its way, more comes.
            if arrived and self._sources_settled(read, name):
                read.settled.add(name)
                self._settle(read, name)
            else:
                whole = False
        return whole

    def _sources_settled(self, read: _Read, name: str) -> bool:
        """In a ring, a source that comes later in the order is not waited for."""
        place = read.places[name]
        sources = {way.lane.source.topic for way in self._forwarding.into.get(name, ())}
        return all(source in read.settled or read.places.get(source, place) >= place for source in sources)

    def _settle(self, read: _Read, name: str) -> None:
        """All has come to a topic: what it shows now goes on to those that it leads to."""
        topic = self._machine.topics.get(name)
        for log in [] if topic is None else [self._machine.logs[log_id] for log_id in topic.log_ids()]:
            if log.log_id in read.goals:
                read.goals[log.log_id] = log.visible_seq
        self._forwarding.forget_if_done(name)
