"""How a server is, as one sees it from outside: is it there, is it ready, does it take the key, does it keep up?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from topics import __version__
from topics.cli import checkup
from topics.cli.checkup import Finding, bad, good, warning
from topics.cli.probe import Probe
from topics.cli.screen import counted
from topics.clock import SystemClock
from topics.errors import TopicsError


def server_health(url: str, key: str | None) -> Iterator[Finding]:
    """Ask until an answer leaves nothing more to ask."""
    probe = Probe(url, key)
    try:
        health = probe.get("/v0/health")
    except TopicsError as error:
        yield bad("reachable", error.message, "start it with `topics serve`, or name another with --url or TOPICS_URL")
        return
    if "version" not in health.fields:
        yield bad(
            "reachable", f"{probe.url} answers {health.status}, but is no topics server", "name another with --url"
        )
        return
    yield checkup.latency(health.elapsed_ms)
    yield checkup.server_version(__version__, health.fields["version"])
    if health.server_now_ms is not None:
        yield checkup.skew(SystemClock().now_ms(), health.server_now_ms)
    yield checkup.transport(probe.is_tls, probe.host, key is not None)
    ready = probe.get("/v0/ready")
    if ready.status != 200:
        message = ready.error.get("message", f"answers {ready.status}")
        yield warning("ready", str(message), "wait: it says in its log how far it is")
    else:
        yield good("ready", f"serves {counted(ready.fields.get('topics', 0), 'topic')}")
    metrics = probe.get("/v0/metrics")
    if metrics.status != 200:
        message = metrics.error.get("message", f"answers {metrics.status}")
        yield bad("key", str(message), "name a key that may read with --key or TOPICS_API_KEY")
        return
    yield good("key", "may read" if key is not None else "none needed")
    yield from _metrics(metrics.fields)


def _metrics(values: dict[str, Any]) -> Iterator[Finding]:
    yield checkup.loop_lag(float(values.get("topics_loop_lag_ms", 0)), float(values.get("topics_throttle_share", 1)))
    yield checkup.log_health(bool(values.get("topics_wal_read_only")), bool(values.get("topics_checkpoint_failed")))
    yield checkup.routers(int(values.get("topics_routers", 0)), int(values.get("topics_routers_stalled", 0)))
