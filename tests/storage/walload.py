"""A workload for a WAL of two shards, and the calls at which it can die."""

from __future__ import annotations

import random

from tests.storage.walrig import Rig, entry
from topics.storage.commitlog import Covered
from topics.storage.fs import FileSystem
from topics.storage.wal import WalSettings
from topics.testing import FakeDisk, FaultFs

TWO = WalSettings(shards=2, file_bytes=4096, disk_sync_ms=200)


class Workload:
    """Appends to four logs over two shards with every kind of step in between; keeps what the listener was told."""

    def __init__(self, fs: FileSystem, seed: int) -> None:
        self.rig = Rig(fs, settings=TWO)
        self.rng = random.Random(seed)
        self.groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.covered: dict[int, int] = {}
        self.snapshot_no = 0

    def run(self) -> None:
        wal = self.rig.start()
        for step in range(24):
            shard = step % 2
            entries = []
            tails = {log_id: wal.tail(log_id) for log_id in range(4)}
            for _ in range(self.rng.randint(1, 3)):
                log_id = shard + 2 * self.rng.randrange(2)
                tails[log_id] += 1
                body = b"%d/%d " % (log_id, tails[log_id]) + b"x" * self.rng.choice((0, 9, 700))
                entries.append(entry(log_id, tails[log_id], body))
            group = wal.append(shard, entries, sync=self.rng.random() < 0.5)
            self.groups[shard, group] = [(e.log_id, e.position) for e in entries]
            if self.rng.random() < 0.7:
                wal.work()
            if step in (10, 20):
                # A snapshot is durable by itself; it may hold more than the WAL has synced.
                self.covered = {log_id: max(0, wal.tail(log_id) - step % 3) for log_id in range(4)}
                self.snapshot_no += 1
                wal.trim(Covered(self.covered), self.snapshot_no)
        wal.close()

    def acked(self, event: str) -> dict[int, int]:
        """The last position of each log that was reported, or is in the snapshot."""
        last = dict(self.covered)
        for (shard, group), positions in self.groups.items():
            if self.rig.heard.knows(event, shard, group):
                for log_id, position in positions:
                    last[log_id] = max(last.get(log_id, 0), position)
        return last


def crash_points() -> list[int]:
    fs = FaultFs(FakeDisk())
    Workload(fs, seed=1).run()
    return [call.index for call in fs.calls if call.changes]
