"""Pulses to a thousand watchers, the next when everybody has the last: none may lose one, or get it twice."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.audience import Audience
from bench.clients.live import LiveClient, Pace
from bench.figure import Figure, Unit
from bench.rig import Step
from bench.sizes import Sizes


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    watchers, pulses = sizes.live_crowd, sizes.live_pulses
    audience = Audience(LiveClient(directory), watchers, Pace(writes=pulses))
    what = f"{pulses} pulses to {watchers:,} watchers"
    audience.compete(sizes.rounds, directory, step, what)
    found = audience.figures(what, Unit.RECORDS_PER_S, lambda each: each.deliveries_per_s)
    told = f"none of {watchers * pulses:,} deliveries lost, repeated or out of order"
    return [msgspec.structs.replace(each, note="; ".join(filter(None, (told, each.note)))) for each in found]
