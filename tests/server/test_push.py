"""What a pushing connection does by itself, whatever is pushed: beginning, heartbeats, a slow client, every end."""

from __future__ import annotations

from typing import Any, cast

from topics.errors import TopicNotFound
from topics.server.push import NS_PER_MS, Delivery, Push
from topics.testing import SimClock

HEARTBEAT_MS, SLOW_MS = 1000, 300


class Wire:
    """A connection's stream, as an outlet sees it."""

    def __init__(self) -> None:
        self.full = False
        self.sent: list[bytes] = []
        self.wakes: list[int] = []
        self.is_over = False

    def send(self, frames: bytes) -> None:
        self.sent.append(frames)

    def wake_at(self, ticks_ns: int) -> None:
        self.wakes.append(ticks_ns)

    def end(self, *, close: bool) -> None:
        self.is_over = close


class Handed:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def close(self) -> None:
        self.calls.append("close")


class Bare(Push):
    def __init__(self, clock: SimClock, *, is_there: bool = True) -> None:
        super().__init__(HEARTBEAT_MS, clock, SLOW_MS)
        self.handed = Handed()
        self._is_there = is_there

    def open(self) -> Delivery:
        if not self._is_there:
            raise TopicNotFound("gone", topic="t")
        return self.handed


def begun(clock: SimClock, *, full: bool = False, is_there: bool = True) -> tuple[Bare, Wire]:
    push, wire = Bare(clock, is_there=is_there), Wire()
    wire.full = full
    push.opened(cast("Any", wire))
    return push, wire


def test_it_begins_with_retry_and_a_heartbeat_and_beats_when_nothing_else_was_sent() -> None:
    clock = SimClock()
    push, wire = begun(clock)
    assert wire.sent == [b"retry: 2000\n\n: hb %d\n\n" % clock.now_ms()]
    assert wire.wakes == [clock.ticks_ns() + HEARTBEAT_MS * NS_PER_MS]
    clock.advance(HEARTBEAT_MS - 1)
    push.send(b"news")
    push.expired()
    assert wire.sent[1:] == [b"news"], "what was sent puts the heartbeat off"
    assert wire.wakes[-1] == clock.ticks_ns() + HEARTBEAT_MS * NS_PER_MS
    clock.advance(HEARTBEAT_MS)
    push.expired()
    assert wire.sent[2:] == [b": hb %d\n\n" % clock.now_ms()]


def test_a_slow_client_gets_nothing_more_and_then_has_to_go() -> None:
    clock = SimClock()
    push, wire = begun(clock, full=True)
    assert push.handed.calls == ["pause"] and wire.wakes == [clock.ticks_ns() + SLOW_MS * NS_PER_MS]
    wire.full = False
    push.drained()
    assert push.handed.calls == ["pause", "resume"]
    wire.full = True
    push.filled()
    clock.advance(SLOW_MS)
    push.expired()
    assert b"event: error" in wire.sent[-1] and b"300 ms" in wire.sent[-1] and wire.is_over


def test_what_it_holds_is_given_back_once_however_it_ends() -> None:
    push, wire = begun(SimClock())
    push.stopping()
    assert b"shutting down" in wire.sent[-1] and wire.is_over
    push.closed()
    push.closed()
    push.filled()
    push.drained()
    assert push.handed.calls == ["close"]


def test_what_is_not_there_any_more_is_said() -> None:
    push, wire = begun(SimClock(), is_there=False)
    assert b'"code":404' in wire.sent[-1] and b"gone" in wire.sent[-1] and wire.is_over
    push.closed()
    assert push.handed.calls == []
