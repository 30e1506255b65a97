"""A quiet client beside a flood, and the memory that bodies without a key take."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import sleep

from bench.clients.floods import FLOODS, KEY, KEYS, Beside, beside, bodies
from bench.figure import Figure, Unit
from bench.peers.topics import Topics
from bench.rig import Step
from bench.sizes import Sizes
from topics.limits import MIB

QUIET_P99_MS = 50.0
BODIES = 60
BODY_BYTES = 64 * MIB
UNKNOWN_BAR_BYTES = 64 * MIB
KNOWN_BAR_BYTES = 640 * MIB
"""The pool of unfinished bodies, twice for a moment while one of them is joined, and what the allocator adds."""
SETTLED_S = 3.0
"""Within this time freed memory has gone back."""


def _beside(place: Path, name: str) -> Beside:
    with Topics(place, "--api-keys", KEYS) as server:
        return asyncio.run(beside(server.port, name))


def _memory(place: Path, key: str) -> tuple[int, int, dict[int, int]]:
    """How much the server grew at its peak and in the end, and how the bodies were answered."""
    with Topics(place, "--api-keys", KEYS) as server:
        before_bytes = server.process.resident_bytes()[0]
        statuses = asyncio.run(bodies(server.port, BODIES, BODY_BYTES, key))
        sleep(SETTLED_S)
        return (
            _peak_bytes(server.process.pid) - before_bytes,
            server.process.resident_bytes()[0] - before_bytes,
            statuses,
        )


def _peak_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    found = []
    for number, name in enumerate(FLOODS):
        step(f"a quiet client beside {name}")
        seen = _beside(directory / f"flood{number}", name)
        note = f"p50 {seen.p50_ms:.1f} ms, longest {seen.max_ms:.0f} ms, the flood took {seen.flood_s:.1f} s"
        found.append(Figure(name=f"p99 beside {name}", value=seen.p99_ms, unit=Unit.MS, bar=QUIET_P99_MS, note=note))
    for who, key, bar in (("without a key", "", UNKNOWN_BAR_BYTES), ("with a key", KEY, KNOWN_BAR_BYTES)):
        step(f"{BODIES} bodies of 64 MiB {who}")
        peak_bytes, left_bytes, statuses = _memory(directory / f"bodies{bar}", key)
        note = f"{left_bytes / MIB:.0f} MiB of them {SETTLED_S:.0f} s later; answers by status: {statuses}"
        name = f"peak memory of {BODIES} bodies of 64 MiB {who}"
        found.append(Figure(name=name, value=peak_bytes, unit=Unit.BYTES, bar=bar, note=note))
    return found
