"""Every record to a hundred watchers: deliveries a second, and the processor time of one.

With one writer, a record is written when the last one was acked; with 16, several come together. How many of them go
out in one piece is up to each server, as long as everybody gets every one of them, in order. Writers wait when some
watcher is too far behind, so that nothing piles up.
"""

from __future__ import annotations

from pathlib import Path

from bench.audience import PUBSUB, PUSH, Audience
from bench.clients.live import LiveClient, Pace
from bench.figure import Figure, Unit
from bench.rig import Step
from bench.sizes import Sizes

WATCHERS = 100
WRITERS = (1, 16)
WINDOW = 64
FACTORS = {PUSH: 1.0, PUBSUB: 0.8}


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    client = LiveClient(directory)
    found: list[Figure] = []
    for writers in WRITERS:
        audience = Audience(client, WATCHERS, Pace(writers=writers, seconds=sizes.load_seconds, window=WINDOW))
        writing = f"{writers} writer{'s' if writers > 1 else ''}"
        audience.compete(sizes.rounds, directory, step, f"{WATCHERS} watchers, {writing}")
        rate = f"deliveries to {WATCHERS} watchers, {writing}"
        found += audience.figures(rate, Unit.RECORDS_PER_S, lambda each: each.deliveries_per_s, FACTORS)
        cost = f"processor time a delivery, {WATCHERS} watchers, {writing}"
        found += audience.figures(cost, Unit.US, lambda each: each.server_us_per_delivery)
    return found
