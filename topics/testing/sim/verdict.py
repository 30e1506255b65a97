"""What became of a life: which promises its history shows to be broken, and all that is counted of it."""

from __future__ import annotations

import gc
import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from topics.testing.checkers import check
from topics.testing.checkers.events import History, Violation
from topics.testing.fakedisk import FakeDisk
from topics.testing.sim.repaired import check_repaired
from topics.testing.sim.restored import check_restored
from topics.testing.sim.world import LIFE_MS, World, furnished


@dataclass(slots=True)
class Result:
    """What became of one seed."""

    seed: int
    violations: list[str] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    events: int = 0
    simulated_ms: int = 0
    histories: int = 1
    """How many were checked."""
    digest: str = ""
    """Of the whole history, and of where what lies on the disk that is copied: the same seed always has the same."""


def live(seed: int, life_ms: int = LIFE_MS) -> Result:
    """One life, from its beginning to the verdict. The last backup of it is restored and looked at, too, and a copy of
    its disk is damaged and repaired."""
    world = World(seed, life_ms, now_ms=furnished().now_ms)
    with _without_collections():
        world.run()
    notes = world.notes
    violations = check(notes.history)
    seen = digest(notes.history, None if world.copied is None else world.copied.disk)
    violations += [Violation("server.problem", text) for text in (*notes.problems, *world.machine.problems)]
    if world.archives:
        violations += check_restored(notes.history, *world.archives[-1], seed=seed)
    if world.copied is not None:
        repair = check_repaired(notes.history, world.copied, seed)
        violations += repair.violations
        notes.faults.update(f"damage: {told}" for told in repair.kinds)
    return Result(
        seed=seed,
        violations=[str(violation) for violation in violations],
        operations=notes.counts,
        faults=notes.faults,
        events=world.timeline.happened,
        simulated_ms=notes.now_ms,
        histories=1 + bool(world.archives) + (world.copied is not None),
        digest=seen,
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    """A life leaves much behind that is collected at its end; looking for it every few milliseconds is in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.collect(0)
        if was_enabled:
            gc.enable()


def digest(history: History, copied: FakeDisk | None = None) -> str:
    """Tells histories apart, byte for byte, and disks whose damage would hit something else."""
    hashed = hashlib.sha256()
    for part in (history.calls, history.faults, history.heard):
        for one in part:
            hashed.update(repr(one).encode())
    for path, content in copied.contents().items() if copied is not None else ():
        # Secrets that the server draws are others each time, of the same length.
        hashed.update(repr((path, content if "/snapshots/" in path else len(content))).encode())
    return hashed.hexdigest()[:32]
