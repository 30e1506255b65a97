"""What every handler has at hand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from topics.clock import Clock
from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import NotReady, ShuttingDown
from topics.server.throttle import Throttle
from topics.settings import Settings


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
    throttle: Throttle | None = None
    """None admits every write."""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    """Answers that need more than one turn of the loop."""
    waiting: set[asyncio.Task[None]] = field(default_factory=set)
    """Those of them that wait for records: cancelled, they answer at once with what is there."""

    def ready(self) -> Host:
        """The host of the engine, or why there is none to ask."""
        if self.draining:
            raise ShuttingDown("the server is shutting down; try another one, or again when it is back")
        if self.host is None:
            raise NotReady(
                "the logs are still being read back; try again shortly",
                replay_progress=round(self.recovery_progress, 3),
            )
        return self.host
