"""From a write to the one who watches: nothing else under way, the next write when the last has arrived."""

from __future__ import annotations

from pathlib import Path

from bench.audience import XREAD, Audience
from bench.clients.live import LiveClient, Pace
from bench.figure import Figure, Unit
from bench.rig import Step
from bench.sizes import Sizes

REDIS_FACTOR = 1.5
P99_US_BAR = 5000


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    audience = Audience(LiveClient(directory), 1, Pace(writes=sizes.live_writes))
    audience.compete(sizes.rounds, directory, step, "a write to one watcher")
    return [
        *audience.figures("a write to one watcher, median", Unit.US, lambda each: each.p50_us, {XREAD: REDIS_FACTOR}),
        *audience.figures(
            "a write to one watcher, p99", Unit.US, lambda each: each.p99_us, bar=P99_US_BAR, peers=(XREAD,)
        ),
    ]
