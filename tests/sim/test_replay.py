"""Snapshot and tail are the same as a replay from the beginning."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.crashing import everything, reopen
from topics.core.commands import Delete
from topics.model import Durability
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.history import Seen
from topics.testing.workload import Rig, run_workload


class ReplayingRig(Rig):
    """Takes no checkpoint, and is killed where others are stopped."""

    def checkpoint(self) -> None:
        pass

    def checkpoint_around(self, commands: Callable[[], None]) -> None:
        commands()

    def erase(self, command: Delete) -> None:
        self.do(command)

    def reopen(self) -> None:
        assert isinstance(self.fs, FakeDisk)
        self.fs = self.fs.kill()
        self.start()


def _outcome(rig: Rig, disk: FakeDisk) -> dict[tuple[str, int], Seen]:
    """What the next process finds of all that is stored."""
    found = everything(reopen(disk.kill(), rig.clock))
    return {key: seen for key, seen in found.items() if seen.config.durability is not Durability.EPHEMERAL}


def test_a_snapshot_with_its_tail_is_the_same_as_a_replay_from_the_beginning() -> None:
    disk = FakeDisk()
    with_snapshots = Rig(disk, SimClock())
    run_workload(with_snapshots)
    assert with_snapshots.driver.engine.store.snapshots.number > 5
    from_zero = ReplayingRig(FakeDisk(), SimClock())
    run_workload(from_zero)
    assert from_zero.driver.engine.store.snapshots.number == 0
    assert isinstance(from_zero.fs, FakeDisk)
    assert _outcome(with_snapshots, disk) == _outcome(from_zero, from_zero.fs)
