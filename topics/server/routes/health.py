"""Probes: does the process live, does it take requests? Each has an alias at the root, for load balancers."""

from __future__ import annotations

from typing import Any

from topics import __version__
from topics.server.answers import success
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import NO_SCOPE
from topics.server.route import Operation, Route


def health(context: Context, request: Request, reply: Reply) -> None:
    uptime_ms = max(0, context.clock.now_ms() - context.started_ms)
    reply(success(context, request, {"status": "ok", "version": __version__, "uptime_ms": uptime_ms}))


def ready(context: Context, request: Request, reply: Reply) -> None:
    topics = len(context.ready().engine.machine.topics)
    reply(success(context, request, {"status": "ready", "wal_replay_complete": True, "topics": topics}))


def _object(description: str, **properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": list(properties), "properties": properties}
    return {"200": {"description": description, "content": {"application/json": {"schema": schema}}}}


_HEALTH = Operation(
    "Liveness",
    "200 as long as the process can serve. Needs no key unless `TOPICS_PROBE_AUTH` is set.",
    "operations",
    responses=_object(
        "The process lives.",
        status={"const": "ok"},
        version={"type": "string"},
        uptime_ms={"type": "integer", "minimum": 0},
    ),
)
_READY = Operation(
    "Readiness",
    "200 when topics are served; 503 `not_ready` while the write-ahead log is replayed, with "
    "`error.detail.replay_progress` from 0 to 1, and 503 `shutting_down` while draining. Needs no key unless "
    "`TOPICS_PROBE_AUTH` is set.",
    "operations",
    responses=_object(
        "Topics are served.",
        status={"const": "ready"},
        wal_replay_complete={"const": True},
        topics={"type": "integer", "minimum": 0},
    ),
)

ROUTES = (
    Route("GET", "/v0/health", NO_SCOPE, health, _HEALTH, probe=True),
    Route("GET", "/healthz", NO_SCOPE, health, _HEALTH, probe=True),
    Route("GET", "/v0/ready", NO_SCOPE, ready, _READY, probe=True),
    Route("GET", "/readyz", NO_SCOPE, ready, _READY, probe=True),
)
