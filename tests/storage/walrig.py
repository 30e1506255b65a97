"""What the WAL tests share: a listener that remembers, and a WAL that can be stopped and opened again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from topics.clock import Clock
from topics.errors import TopicsError
from topics.storage.commitlog import Covered, Entry
from topics.storage.committer import Post
from topics.storage.frame import Kind
from topics.storage.fs import FileSystem
from topics.storage.wal import Wal, WalSettings
from topics.storage.walrecovery import WalRecovery
from topics.testing import SimClock

DIRECTORY = "/data/wal"
SMALL = WalSettings(shards=1, file_bytes=8192, disk_sync_ms=200)


class Heard:
    """A listener that keeps what it was told, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, int]] = []
        self.errors: list[OSError | TopicsError] = []

    def written(self, shard: int, group: int) -> None:
        self.events.append(("written", shard, group))

    def synced(self, shard: int, group: int) -> None:
        self.events.append(("synced", shard, group))

    def failed(self, shard: int, error: OSError | TopicsError) -> None:
        self.events.append(("failed", shard, 0))
        self.errors.append(error)

    def knows(self, event: str, shard: int, group: int) -> bool:
        return any(heard[:2] == (event, shard) and heard[2] >= group for heard in self.events)

    def upto(self, event: str, shard: int = 0) -> int:
        return max((group for name, where, group in self.events if (name, where) == (event, shard)), default=0)


def salts(start: int = 1) -> Callable[[], int]:
    """Distinct salts, the same in every run."""
    numbers = count(start)
    return lambda: next(numbers) * 0x9E3779B97F4A7C15 % 2**64


def entry(log_id: int, position: int, body: bytes | None = None) -> Entry:
    text = b"log %d position %d" % (log_id, position) if body is None else body
    return Entry(log_id, position, Kind.FACT, [text])


def flat(entries: list[Entry]) -> list[tuple[int, int, bytes]]:
    return [(e.log_id, e.position, b"".join(bytes(part) for part in e.body)) for e in entries]


class Rig:
    """One WAL directory, and the process that has it open."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str = DIRECTORY,
        settings: WalSettings = SMALL,
        clock: Clock | None = None,
        post: Post | None = None,
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.settings = settings
        self.clock = clock or SimClock()
        self.post = post
        self.salt_source = salts()
        self.make_listener: Callable[[], Heard] = Heard
        self.heard = Heard()

    def recover(self, covered: Covered | None = None, snapshot_no: int = 0, salvage: bool = False) -> WalRecovery:
        """Read everything back; `self.replayed` is what was found."""
        covered = covered or Covered()
        recovery = WalRecovery(
            self.fs, self.directory, self.settings, self.clock, self.salt_source, covered, snapshot_no, salvage
        )
        self.replayed = [(log_id, position, bytes(body)) for log_id, position, _kind, body in recovery.replay()]
        return recovery

    def start(self, covered: Covered | None = None, snapshot_no: int = 0) -> Wal:
        self.heard = self.make_listener()
        self.recovery = self.recover(covered, snapshot_no)
        self.wal = self.recovery.start(self.heard, covered or Covered(), snapshot_no, self.post)
        return self.wal

    def add(self, log_id: int, body: bytes | None = None, sync: bool = True) -> int:
        """Append the log's next entry."""
        wal = self.wal
        return wal.append(wal.shard_of(log_id), [entry(log_id, wal.tail(log_id) + 1, body)], sync)

    def files(self) -> list[str]:
        return [f"{self.directory}/{name}" for name in self.fs.list(self.directory) if name.endswith(".wal")]
