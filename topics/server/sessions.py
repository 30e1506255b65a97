"""Watch sessions: what a stream follows and how far it has come, kept while no stream is open.

A session is made by `POST /v0/watch` and read by one stream at a time. It is found by its `wid`, 128 random bits, and
opened by the key that made it only. One without a stream is let go after `ttl_ms`; whoever makes or opens another one
does the looking, so there is no timer, and those that have waited longest are at the front, so it costs nothing.

Where a stream goes on:

    1. at the session's own positions: what was last written to a stream
    2. at those of `Last-Event-ID`, where they lie before that: what was written may not have been read
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from topics.core.view import View
from topics.errors import InvalidRequest, NotFound, Throttled, Unauthorized
from topics.server.checkpoints import Checkpoints
from topics.server.principal import Principal
from topics.wire.streamcursor import Checkpoint, Positions

WID_BYTES = 16
NAME_BYTES = 9
ENDED_MAX = 1024
"""Deleted topics that a session remembers, in case a client comes back from before it was told."""
NS_PER_MS = 1_000_000


class Position(msgspec.Struct, kw_only=True):
    """One log of a session, and how far the stream has come in it."""

    key: str
    topic: str
    partition: int
    view: View
    cursor: int
    epoch: int
    """The life of the topic that the cursor belongs to; 0 is unknown."""
    start_seq: int
    start_epoch: int
    """Where the session began."""

    def rewind(self, seq: int, epoch: int) -> None:
        """Go back; a seq of an earlier life lies before every one of a later life."""
        if epoch != self.epoch:
            if epoch < self.epoch:
                self.cursor, self.epoch = seq, epoch
        elif seq < self.cursor:
            self.cursor = seq


class Open(Protocol):
    """The stream that reads a session."""

    def supersede(self) -> None:
        """Another stream takes over: end. The session has its positions back when this returns."""

    def settle(self) -> None:
        """Write into the session how far the stream has come."""


class Session:
    def __init__(self, principal: Principal, heartbeat_ms: int) -> None:
        self.wid = f"wid_{secrets.token_urlsafe(WID_BYTES)}"
        self.name = secrets.token_urlsafe(NAME_BYTES)
        """What its checkpoints call it: unlike the wid, it opens nothing."""
        self.principal = principal
        self.heartbeat_ms = heartbeat_ms
        self.positions: dict[str, Position] = {}
        self.ended: dict[str, Position] = {}
        """Those whose topic is deleted, and the client was told."""
        self.patterns: dict[str, View] = {}
        self.first_epochs: dict[str, int] = {}
        """By key: positions without an epoch belong to this life of the topic."""
        self.checkpoints: Checkpoints | None = None
        """There once the session follows too many logs for an id to name them all."""
        self.stream: Open | None = None
        self.idle_since_ms = 0

    def names(self) -> Iterator[str]:
        """The topics it follows, and the beginnings of names."""
        yield from (each.topic for each in self.positions.values())
        yield from self.patterns

    def add(self, position: Position) -> None:
        self.positions[position.key] = position
        self.first_epochs.setdefault(position.key, position.epoch)

    def end(self, key: str) -> None:
        """A topic is deleted, and the client was told."""
        self.ended[key] = self.positions.pop(key)
        if len(self.ended) > ENDED_MAX:
            oldest = next(iter(self.ended))
            del self.ended[oldest], self.first_epochs[oldest]
            if self.checkpoints is not None:
                self.checkpoints.forget(oldest)

    def rewind(self, to: Positions | Checkpoint) -> None:
        """Go back to where an id says that the client is. `InvalidRequest` when it is no id of this session."""
        if isinstance(to, Checkpoint):
            self._rewind_to_checkpoint(to)
            return
        for key, position in [*self.positions.items(), *self.ended.items()]:
            if key in to.seqs:
                self._restore(position, to.seqs[key], to.epochs.get(key, self.first_epochs[key]))
            elif key in self.positions:
                # It joined later than that.
                position.cursor, position.epoch = position.start_seq, position.start_epoch

    def _rewind_to_checkpoint(self, to: Checkpoint) -> None:
        if self.checkpoints is None or to.session != self.name:
            raise InvalidRequest("Last-Event-ID is of another session", field="Last-Event-ID", expected="its own")
        places = self._places_at(self.checkpoints, to.at)
        self.checkpoints.go_back(to.at)
        for key, (seq, epoch) in places.items():
            position = self.positions.get(key) or self.ended.get(key)
            if position is not None:
                self._restore(position, seq, epoch)

    def _places_at(self, checkpoints: Checkpoints, at: int) -> dict[str, tuple[int, int]]:
        places = checkpoints.since(at)
        if places is None:
            # Too long ago to say what came since: all of it comes again, and nothing is missed.
            everything = [*self.positions.values(), *self.ended.values()]
            places = {each.key: (each.start_seq, each.start_epoch) for each in everything}
        return places

    def positions_at(self, checkpoint: Checkpoint) -> Positions:
        """What a checkpoint stands for, for a session that goes on from there."""
        if self.stream is not None:
            self.stream.settle()
        places = {key: (each.cursor, each.epoch) for key, each in self.positions.items()}
        if self.checkpoints is not None:
            places |= self._places_at(self.checkpoints, checkpoint.at)
        return Positions(
            {key: seq for key, (seq, _) in places.items()}, {key: epoch for key, (_, epoch) in places.items()}
        )

    def _restore(self, position: Position, seq: int, epoch: int) -> None:
        position.rewind(seq, epoch)
        if self.ended.pop(position.key, None) is not None:
            self.positions[position.key] = position

    def epochs(self, positions: Iterable[tuple[str, int]]) -> dict[str, int]:
        """Of keys with their epochs, those that are in a later life than the first."""
        first = self.first_epochs
        return {key: epoch for key, epoch in positions if first.setdefault(key, epoch) != epoch}


class Sessions:
    def __init__(self, ticks_ns: Callable[[], int], ttl_ms: int, count_max: int) -> None:
        """`count_max` 0 is no cap."""
        self.ttl_ms = ttl_ms
        self._ticks_ns = ticks_ns
        self._count_max = count_max
        self._by_wid: dict[str, Session] = {}
        self._by_name: dict[str, Session] = {}
        self._idle: dict[str, Session] = {}
        """Those without a stream, the longest idle first."""

    def __len__(self) -> int:
        return len(self._by_wid)

    def check_room(self) -> None:
        """`Throttled` when there are as many as there may be."""
        self._collect()
        if self._count_max and len(self) >= self._count_max:
            raise Throttled(
                f"there are {len(self)} watch sessions, as many as TOPICS_MAX_WATCH_SESSIONS allows; "
                f"one without a stream ends after {self.ttl_ms} ms",
                limit="max_watch_sessions",
                max=self._count_max,
            )

    def add(self, session: Session) -> None:
        self.check_room()
        self._by_wid[session.wid] = self._by_name[session.name] = session
        self._rest(session)

    def find(self, wid: str, principal: Principal) -> Session:
        """The session of a wid, for the key that made it: `NotFound`, or `Unauthorized` for another one."""
        self._collect()
        session = self._by_wid.get(wid)
        if session is None:
            raise NotFound("there is no such watch session, or it has ended: make one with POST /v0/watch")
        if session.principal.key_id != principal.key_id:
            raise Unauthorized("a watch session is opened with the key that made it")
        return session

    def named(self, name: str, principal: Principal) -> Session:
        """The session that a checkpoint is of, for a key that may know it."""
        session = self._by_name.get(name)
        if session is None or session.principal.key_id != principal.key_id:
            expected = "an id of a session that is there, or the position in each topic"
            raise InvalidRequest("cursor is of a watch session that has ended", field="cursor", expected=expected)
        return session

    def take(self, session: Session, stream: Open) -> None:
        """A stream reads the session from now on; one that did before is ended."""
        if session.stream is not None:
            session.stream.supersede()
        session.stream = stream
        self._idle.pop(session.wid, None)

    def leave(self, session: Session, stream: Open) -> None:
        """A stream has ended. Does nothing for one that was superseded."""
        if session.stream is stream:
            session.stream = None
            self._rest(session)

    def _rest(self, session: Session) -> None:
        session.idle_since_ms = self._now_ms()
        self._idle[session.wid] = session

    def _collect(self) -> None:
        """Let go of those that nobody has read for too long."""
        oldest_ms = self._now_ms() - self.ttl_ms
        while self._idle:
            session = next(iter(self._idle.values()))
            if session.idle_since_ms > oldest_ms:
                return
            del self._idle[session.wid], self._by_wid[session.wid], self._by_name[session.name]

    def _now_ms(self) -> int:
        return self._ticks_ns() // NS_PER_MS
