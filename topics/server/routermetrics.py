"""What a scrape tells of routers: how many there are, and of each how far behind it is and whether it goes on.

As with topics, the block by router is bounded, and shows only those that the one who asks may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from topics.engine.engine import Engine
from topics.server.exposition import Family, counter, gauge
from topics.server.principal import Principal
from topics.server.routes.routers import may_see

ROUTERS_SHOWN_MAX = 1000
"""Routers in the block by router; those of the first names, when there are more."""


def of_routers(engine: Engine, principal: Principal) -> Iterator[Family]:
    yield gauge("topics_routers", "Routers.", len(engine.machine.routers))
    yield gauge("topics_routers_stalled", "Routers that something holds up.", engine.forwarding.stalled_count)
    lag_records = gauge("topics_router_lag_records", "Seqs of the source that a router has not come to yet.")
    lag_ms = gauge("topics_router_lag_ms", "How long the oldest of them has been waiting.")
    stalled = gauge("topics_router_stalled", "Whether something holds a router up.")
    forwarded = counter("topics_router_forwarded_total", "Records that a router has forwarded.")
    trimmed = counter("topics_router_trimmed_total", "Records that the source lost before they could be forwarded.")
    shown = list(islice(_visible(engine, principal), ROUTERS_SHOWN_MAX + 1))
    for name in shown[:ROUTERS_SHOWN_MAX]:
        state = engine.routing.state(name)
        labels = (("router", name), ("source", state.config.source), ("dest", state.config.dest))
        lag_records.add(state.lag_records, *labels)
        lag_ms.add(state.lag_ms, *labels)
        stalled.add(int(state.stalled is not None), *labels)
        forwarded.add(state.forwarded_total, *labels)
        trimmed.add(state.trimmed_total, *labels)
    yield from (lag_records, lag_ms, stalled, forwarded, trimmed)
    doc = "Whether there are more routers than the families by router show."
    yield gauge("topics_router_metrics_truncated", doc, int(len(shown) > ROUTERS_SHOWN_MAX))


def _visible(engine: Engine, principal: Principal) -> Iterator[str]:
    routers = engine.machine.routers
    for router in routers.page("", "", len(routers)):
        if may_see(principal, router.name, router.config):
            yield router.name
