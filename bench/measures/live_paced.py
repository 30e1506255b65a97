"""A server that has time: a hundred watchers, 50 writes a second, each counted from when it was due."""

from __future__ import annotations

from pathlib import Path

from bench.audience import Audience
from bench.clients.live import LiveClient, Pace
from bench.figure import Figure, Unit
from bench.rig import Step
from bench.sizes import Sizes

WATCHERS = 100
WRITES_PER_S = 50
WINDOW = 1000
P99_US_BAR = 10_000


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    pace = Pace(per_s=WRITES_PER_S, seconds=sizes.load_seconds, window=WINDOW)
    audience = Audience(LiveClient(directory), WATCHERS, pace)
    what = f"{WRITES_PER_S} writes/s to {WATCHERS} watchers"
    audience.compete(sizes.rounds, directory, step, what)
    return audience.figures(f"{what}, p99", Unit.US, lambda each: each.p99_us, bar=P99_US_BAR)
