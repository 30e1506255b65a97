"""What every handler has at hand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topics.clock import Clock
from topics.core.accounts import Accounts
from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import NotReady, ShuttingDown
from topics.server.audit import Audit
from topics.server.auth import Authenticator
from topics.server.confirmations import Confirmations
from topics.server.cors import Cors
from topics.server.hashing import Hashing
from topics.server.heading import Heading
from topics.server.heaplatency import HeapLatency
from topics.server.intake.held import HeldBytes
from topics.server.intake.turns import Turns
from topics.server.managedkeys import ManagedKeys
from topics.server.message import Response
from topics.server.openstreams import OpenStreams
from topics.server.pageorigins import PageOrigins
from topics.server.quota import Quota
from topics.server.sessions import Sessions
from topics.server.signin import Door
from topics.server.streamtokens import StreamTokens
from topics.server.throttle import Throttle
from topics.server.traffic import Traffic
from topics.server.websessions import WebSessions
from topics.settings import Settings
from topics.sqlengine.runner import Runner

if TYPE_CHECKING:
    from topics.server.observing import Observer


@dataclass(slots=True)
class Context:
    settings: Settings
    record_limits: RecordLimits
    clock: Clock
    started_ms: int
    host: Host | None = None
    """None until recovery has finished."""
    audit: Audit | None = None
    """There as soon as the host is."""
    observer: Observer | None = None
    """There as soon as the host is."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """By setting, where its value comes from; a default is not in it."""
    recovery_progress: float = 0.0
    draining: bool = False
    tasks: set[asyncio.Task[Response]] = field(default_factory=set)
    """Answers on their way that are coroutines."""
    chores: set[asyncio.Task[None]] = field(default_factory=set)
    """What no answer waits for."""
    traffic: Traffic = field(default_factory=Traffic)
    heading: Heading = field(init=False)
    """How answers begin; the connections keep its time."""
    authenticator: Authenticator = field(init=False)
    """Takes the keys out of the settings: making a context fails when they are malformed."""
    pages: PageOrigins = field(init=False)
    """The web pages that may change something."""
    stream_tokens: StreamTokens = field(init=False)
    sessions: Sessions = field(init=False)
    """Of those who watch, between and during their streams."""
    quota: Quota = field(init=False)
    confirmations: Confirmations = field(init=False)
    heap_latency: HeapLatency = field(init=False)
    sql: Runner = field(init=False)
    """Runs statements; closed before the host is."""
    hashing: Hashing = field(default_factory=Hashing)
    """Of passwords and keys; closed with the server."""
    web: WebSessions | None = None
    """Sign-ins: there when the host is, where authentication is on."""
    door: Door = field(init=False)
    open_streams: OpenStreams = field(init=False)
    held: HeldBytes = field(init=False)
    """What connections hold of requests that have not come whole."""
    turns: Turns = field(default_factory=Turns)
    """Who waits for its next turn."""
    throttle: Throttle = field(init=False)
    """Asked by every write that takes back-pressure. It beats between `start` and `stop`."""

    def __post_init__(self) -> None:
        self.heading = Heading(self.clock.now_ms())
        self.authenticator = Authenticator.of(self.settings)
        self.authenticator.managed = ManagedKeys(self.accounts, self.hashing, self.clock)
        self.open_streams = OpenStreams(self.authenticator)
        self.door = Door(self.hashing, self.clock)
        settings = self.settings
        self.held = HeldBytes.of(settings)
        self.pages = PageOrigins(Cors.of(settings.cors_origins), self.authenticator.is_on)
        self.stream_tokens = StreamTokens.of(settings, self.authenticator, self.clock)
        self.quota = Quota(
            settings.max_inflight_per_key, settings.max_sse_connections, settings.max_sse_connections_per_key
        )
        self.confirmations = Confirmations(self.clock)
        self.heap_latency = HeapLatency(self.clock)
        self.sessions = Sessions(self.clock.ticks_ns, settings.watch_session_ttl_ms, settings.max_watch_sessions)
        self.sql = Runner(settings, self.record_limits)
        self.throttle = Throttle(self.clock, self.settings.throttle_lag_ms, self._fullness)

    def ready(self) -> Host:
        """The engine's host; `ShuttingDown` while draining, `NotReady` during recovery."""
        if self.draining:
            raise ShuttingDown("the server is shutting down; ask another one")
        if self.host is None:
            progress = round(min(max(self.recovery_progress, 0.0), 1.0), 3)
            message = f"the write-ahead log is being replayed, {progress:.0%} of it is done; try again soon"
            raise NotReady(message, replay_progress=progress)
        return self.host

    def accounts(self) -> Accounts:
        return self.ready().engine.machine.accounts

    def _fullness(self) -> float:
        return 0.0 if self.host is None else self.host.engine.turn.fullness()
