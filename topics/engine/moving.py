"""Moves over turns: decided, landed, finished, each step when the one before is durable. See `core/move.py`.

A move that cannot go on, because the disk of a target failed, stays decided; the next start goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from topics.core import move
from topics.core.facts import MoveDecided
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.outcome import BegunMove, Outcome
from topics.engine.ticket import Ticket
from topics.errors import TopicNotFound
from topics.model import CompletedJobs, Written


class Add(Protocol):
    def __call__(self, outcome: Outcome, born: Sequence[int] = ()) -> Ticket: ...


class Moving:
    def __init__(self, machine: Machine, add: Add, now_ms: Callable[[], int]) -> None:
        self._machine = machine
        self._add = add
        self._now_ms = now_ms
        self._under_way: dict[tuple[int, int], Ticket] = {}
        self.towards: dict[str, dict[tuple[int, int], Ticket]] = {}
        """The moves under way to each topic, each done when the records are there for readers."""

    def begin(self, begun: BegunMove) -> Ticket:
        """Go on with a move that was decided; the ticket's reply is what was written, a tuple of `Written`."""
        ticket = self._track(begun.log, begun.fact)
        decided = self._add(Outcome(None, begun.facts, bool(begun.facts), begun.log))
        decided.on_done(lambda done: self._land(begun.log, begun.fact, done, ticket))
        return ticket

    def carry(self, outcome: Outcome) -> Ticket:
        """Add an outcome, and answer when all that it moves has come to where it goes."""
        if not outcome.moves:
            return self._add(outcome)
        ticket = Ticket()
        waiting = 1 + len(outcome.moves)
        reply = outcome.reply

        def done(part: Ticket) -> None:
            nonlocal waiting, reply
            waiting -= 1
            if part.error is not None:
                ticket.fail(part.error)
            elif isinstance(reply, CompletedJobs) and isinstance(part.reply, tuple):
                reply = msgspec.structs.replace(reply, written=part.reply)
            if not waiting:
                ticket.resolve(reply)

        self._add(msgspec.structs.replace(outcome, moves=())).on_done(done)
        for begun in outcome.moves:
            self.begin(begun).on_done(done)
        return ticket

    def resume(self) -> None:
        """After a recovery: go on with what a crash interrupted."""
        logs = self._machine.logs
        for log in logs.values():
            for source, number in log.transit.received.items() if log.has_moves else ():
                # A source that promises nothing may have forgotten a move that its target knows: its number is taken.
                if source in logs:
                    transit = logs[source].transit
                    transit.next_number = max(transit.next_number, number + 1)
        leaving = [log for log in logs.values() if log.has_moves and log.transit.leaving]
        for log in leaving:
            for _, fact in sorted(log.transit.leaving.items()):
                self._land(log, fact, Ticket(done=True), self._track(log, fact))

    def under_way(self) -> list[Ticket]:
        return list(self._under_way.values())

    def _track(self, log: Log, fact: MoveDecided) -> Ticket:
        key = (log.log_id, fact.number)
        ticket = self._under_way[key] = Ticket()
        names = {part.topic for part in fact.parts}
        for name in names:
            self.towards.setdefault(name, {})[key] = ticket
        ticket.on_done(lambda done: self._forget(key, names))
        return ticket

    def _forget(self, key: tuple[int, int], names: set[str]) -> None:
        del self._under_way[key]
        for name in names:
            del self.towards[name][key]
            if not self.towards[name]:
                del self.towards[name]

    def _land(self, log: Log, fact: MoveDecided, decided: Ticket, ticket: Ticket) -> None:
        if decided.error is not None:
            ticket.fail(decided.error)
            return
        if self._machine.logs.get(log.log_id) is not log:
            ticket.fail(TopicNotFound(f'topic "{log.topic}" was deleted meanwhile', topic=log.topic))
            return
        landings = move.land(self._machine, log, fact, self._now_ms())
        waiting = len(landings)
        written = tuple(landing.outcome.reply for landing in landings if isinstance(landing.outcome.reply, Written))

        def landed(part: Ticket) -> None:
            nonlocal waiting
            waiting -= 1
            if part.error is not None:
                ticket.fail(part.error)
            elif not waiting and not ticket.done:
                self._finish(log, fact, ticket, written)

        for landing in landings:
            self._add(landing.outcome, landing.born).on_done(landed)

    def _finish(self, log: Log, fact: MoveDecided, ticket: Ticket, written: tuple[Written, ...]) -> None:
        if self._machine.logs.get(log.log_id) is log:
            self._add(move.finish(self._machine, log, fact.number))
        ticket.resolve(written)
