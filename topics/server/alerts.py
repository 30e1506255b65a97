"""Alerts: what somebody should look at, why, and what to do about it. Pure: signs in, alerts out.

An alert has an id that stays the same while it lasts. `Alerts` remembers since when each has been there, and notes in
its events when one comes and when it goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import msgspec

from topics.limits import CLOCK_DOUBT_MS, CLOCK_STEP_MS, GIB, SECOND_MS

FREE_BYTES_LOW: Final = 5 * GIB
FREE_BYTES_CRITICAL: Final = 1 * GIB
FULL_SOON_S: Final = 24 * 3600
LAG_MIN: Final = 1000
"""A smaller lag is no news, however fast it grows."""
EVENTS_MAX: Final = 200


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    severity: str
    """`warning` or `critical`."""
    title: str
    text: str
    todo: str
    """What to do."""
    link: str
    """Where the dashboard shows more of it."""
    topic: str = ""
    """Which topic it is about; empty when it is about the server."""
    since_ts: int = 0


class Event(msgspec.Struct, frozen=True, kw_only=True):
    at: int
    kind: str
    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a group or a router is behind, now and some minutes ago."""

    kind: str
    name: str
    topic: str
    now: int
    before: int


@dataclass(frozen=True, slots=True)
class Dead:
    """What a queue has given up, in all and in the last minutes."""

    queue: str
    total: int
    new: int
    is_heap: bool = False


@dataclass(frozen=True, slots=True)
class Signs:
    free_bytes: int = 0
    """0 when nobody has looked yet."""
    storage_error: str = ""
    """Why the files of the data directory cannot be listed."""
    bytes_per_s: float = 0.0
    """How fast the data directory grows."""
    stopped_shards: tuple[int, ...] = ()
    stop_reason: str = ""
    checkpoint_error: str = ""
    admitted_share: float = 1.0
    overrun_count: int = 0
    """Records that were evicted although somebody needed them, in the last minutes."""
    overrun_topic: str = ""
    stalled_routers: int = 0
    clock_jumps: int = 0
    """How often the wall clock jumped, in the last minutes."""
    clock_ahead_ms: int = 0
    """How far the wall clock is ahead of the server's time now; negative when it is behind."""
    lags: tuple[Lag, ...] = ()
    dead: tuple[Dead, ...] = ()


def judge(signs: Signs) -> Iterator[Alert]:
    yield from _disk(signs)
    if signs.stopped_shards:
        yield Alert(
            id="sync_failing",
            severity="critical",
            title="The disk refused writes",
            text=f"Write-ahead log {', '.join(map(str, signs.stopped_shards))} has stopped: {signs.stop_reason}",
            todo="Mend the disk, then restart the server. What was acked is kept; reads go on.",
            link="/settings",
        )
    if signs.storage_error:
        yield Alert(
            id="storage_unreadable",
            severity="critical",
            title="The data directory cannot be read",
            text=f"The server cannot list its files: {signs.storage_error}",
            todo="Check that the disk is mounted and healthy, then restart the server.",
            link="/settings",
        )
    if signs.checkpoint_error:
        yield Alert(
            id="checkpoint_failing",
            severity="warning",
            title="Checkpoints fail",
            text=f"The last checkpoint failed: {signs.checkpoint_error}",
            todo="See to the data directory. Nothing is lost; the write-ahead log grows until one succeeds.",
            link="/settings",
        )
    if signs.admitted_share < 1.0:
        yield Alert(
            id="throttled",
            severity="warning",
            title="Writes are throttled",
            text=f"{signs.admitted_share:.0%} of the writes are admitted: the server or its disk is behind.",
            todo="Write less at once, or give it a faster disk. Clients that retry lose nothing.",
            link="/topics",
        )
    if signs.overrun_count:
        yield Alert(
            id="overrun",
            severity="critical",
            title="Records were evicted that somebody needed",
            text=f"{signs.overrun_count} records were evicted before a group or an archive had got them.",
            todo="Let the consumer catch up, or raise the topic's caps and protect_max_bytes.",
            link=_place("topics", signs.overrun_topic),
            topic=signs.overrun_topic,
        )
    if signs.stalled_routers:
        yield Alert(
            id="routers_stalled",
            severity="warning",
            title="Routers are held up",
            text=f"{signs.stalled_routers} routers cannot go on.",
            todo="`topics router ls` says which and why: most often the destination is full.",
            link="/routers",
        )
    if signs.clock_jumps or abs(signs.clock_ahead_ms) > CLOCK_STEP_MS:
        yield _astray(signs)
    yield from (_lagging(lag) for lag in signs.lags if lag.now >= LAG_MIN and lag.now > lag.before)
    yield from (_dying(dead) for dead in signs.dead if dead.new)


def _astray(signs: Signs) -> Alert:
    ahead_s = signs.clock_ahead_ms / SECOND_MS
    now = "agrees with the server's time again"
    if abs(signs.clock_ahead_ms) > CLOCK_STEP_MS:
        now = f"is {abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'} the server's time"
    return Alert(
        id="clock_jumped",
        severity="warning",
        title="The wall clock jumped",
        text=f"The wall clock of the machine jumped {signs.clock_jumps} times in the last five minutes and {now}.",
        todo="See whether the machine's clock is right and kept by NTP. Leases, delays and TTLs follow a steady clock; "
        f"a new time is believed when it has lasted {CLOCK_DOUBT_MS // (60 * SECOND_MS)} minutes.",
        link="/settings",
    )


def _lagging(lag: Lag) -> Alert:
    is_group = lag.kind == "group"
    return Alert(
        id=f"lag:{lag.kind}:{lag.topic}:{lag.name}",
        severity="warning",
        title=f"The lag of {lag.kind} {lag.name} grows",
        text=f"It is {lag.now:,} records behind in {lag.topic}, and was {lag.before:,} within the last five minutes.",
        todo="Start more consumers, or see why those there are slow."
        if is_group
        else f"`topics router show {lag.name}` says whether something holds it up; if not, its source gets too much.",
        link=_place("groups", lag.topic, lag.name) if is_group else "/routers",
        topic=lag.topic,
    )


def _dying(dead: Dead) -> Alert:
    what, command = ("Messages", "topics dlq ls") if dead.is_heap else ("Jobs", "topics queue dead")
    return Alert(
        id=f"dead:{dead.queue}",
        severity="warning",
        title=f"Dead letters of {dead.queue}",
        text=f"{what} given up in the last ten minutes: {dead.new:,}; in all: {dead.total:,}.",
        todo=f"`{command} {dead.queue}` shows them and why; take them back when the cause is gone.",
        link=_place("dead", dead.queue),
        topic=dead.queue,
    )


def _place(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts if part)


def _disk(signs: Signs) -> Iterator[Alert]:
    free = signs.free_bytes
    if not free:
        return
    seconds = free / signs.bytes_per_s if signs.bytes_per_s > 0 else float("inf")
    if free < FREE_BYTES_LOW or seconds < FULL_SOON_S:
        soon = f", and full in {seconds / 3600:.1f} h at this rate" if seconds < FULL_SOON_S else ""
        yield Alert(
            id="disk_filling",
            severity="critical" if free < FREE_BYTES_CRITICAL else "warning",
            title="The disk fills up",
            text=f"{free / GIB:.1f} GiB are left{soon}.",
            todo="Lower caps or TTLs, delete what nobody needs, or move older segments with TOPICS_COLD_DIR.",
            link="/topics",
        )


@dataclass(slots=True)
class Alerts:
    current: dict[str, Alert] = field(default_factory=dict)
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    def update(self, signs: Signs, now_ms: int) -> None:
        found = {alert.id: alert for alert in judge(signs)}
        for alert_id, alert in found.items():
            known = self.current.get(alert_id)
            if known is None:
                self.note(now_ms, "alert", alert.title, alert.topic)
            since_ts = now_ms if known is None else known.since_ts
            found[alert_id] = msgspec.structs.replace(alert, since_ts=since_ts)
        for alert_id, alert in self.current.items():
            if alert_id not in found:
                self.note(now_ms, "over", alert.title, alert.topic)
        self.current = found

    def note(self, at_ms: int, kind: str, text: str, topic: str = "") -> None:
        self.events.append(Event(at=at_ms, kind=kind, text=text, topic=topic))
