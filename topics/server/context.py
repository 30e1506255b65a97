"""What every handler has at hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from topics.clock import Clock
from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import NotReady, ShuttingDown
from topics.server.auth import Authenticator
from topics.server.heading import Heading
from topics.server.message import Response
from topics.server.quota import Quota
from topics.server.sessions import Sessions
from topics.server.streamtokens import StreamTokens
from topics.server.throttle import Throttle
from topics.server.traffic import Traffic
from topics.settings import Settings
from topics.sqlengine.runner import Runner


@dataclass(slots=True)
class Context:
    settings: Settings
    record_limits: RecordLimits
    clock: Clock
    started_ms: int
    host: Host | None = None
    """None until recovery has finished."""
    recovery_progress: float = 0.0
    draining: bool = False
    tasks: set[asyncio.Task[Response]] = field(default_factory=set)
    """Answers on their way that are coroutines."""
    traffic: Traffic = field(default_factory=Traffic)
    heading: Heading = field(init=False)
    """How answers begin; the connections keep its time."""
    authenticator: Authenticator = field(init=False)
    """Takes the keys out of the settings: making a context fails when they are malformed."""
    stream_tokens: StreamTokens = field(init=False)
    sessions: Sessions = field(init=False)
    """Of those who watch, between and during their streams."""
    quota: Quota = field(init=False)
    sql: Runner = field(init=False)
    """Runs statements; closed before the host is."""
    throttle: Throttle = field(init=False)
    """Asked by every write that takes back-pressure. It beats between `start` and `stop`."""

    def __post_init__(self) -> None:
        self.heading = Heading(self.clock.now_ms())
        self.authenticator = Authenticator.of(self.settings)
        settings = self.settings
        self.stream_tokens = StreamTokens.of(settings, self.authenticator, self.clock)
        self.quota = Quota(
            settings.max_inflight_per_key, settings.max_sse_connections, settings.max_sse_connections_per_key
        )
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

    def _fullness(self) -> float:
        return 0.0 if self.host is None else self.host.engine.turn.fullness()
