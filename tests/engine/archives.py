"""What the tests of backups share: an archive on a disk of its own, and an engine restored from it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from tests.engine.rig import SMALL, Rig
from topics.engine.recovery import Options
from topics.engine.unpacking import Restored, restore_archive
from topics.storage.fs import FileSystem
from topics.testing import FakeDisk, SimClock

ARCHIVE = "/backups/a.tar"


def put(archive: bytes | Iterable[bytes], disk: FakeDisk | None = None) -> FakeDisk:
    """A disk with an archive on it, durably."""
    disk = disk or FakeDisk()
    disk.make_dir("/backups")
    file = disk.open(ARCHIVE, "create")
    file.write_at(0, [archive] if isinstance(archive, bytes) else list(archive))
    file.sync()
    disk.sync_dir("/backups")
    return disk


def unpack(disk: FileSystem, clock: SimClock | None = None, options: Options = SMALL) -> Restored:
    return restore_archive(disk, ARCHIVE, "/data", clock or SimClock(), _salts(), options)


def _salts() -> Callable[[], int]:
    chance = random.Random(1)
    return lambda: chance.getrandbits(64)


def restored(rig: Rig, archive: bytes | Iterable[bytes]) -> Rig:
    """Another machine, started on what an archive holds."""
    disk = put(archive)
    unpack(disk, rig.clock, rig.options)
    return Rig(rig.options, disk.crash("lost"), rig.clock)
