"""The commit log as a protocol: where facts become durable, partition by partition.

A commit log holds many logs. Every log has positions 1, 2, 3 … without a hole, and one owner that appends to it;
the owner says which position it expects to write, and an append that finds another tail is refused (`Deposed`)
and leaves nothing behind. So a deposed owner can never write over its successor, whatever the clocks say.

Logs are spread over shards; a shard is what is written and synced together and what fails together. An append is a
*group*: it gets the shard's next group number at once, and the listener is told how far the shard has got: later, or
within `append` itself when a small group could be written at once.

- A log's entries are stored in order: if an entry is readable, so is every earlier one that was not trimmed.
- An entry is stored whole or not at all. A group is not: after a power loss a group that was never reported as synced
  may be cut anywhere between two of its entries.
- `written` groups survive the death of the process, `synced` groups survive a power loss.
- A failed shard never acks again. What it reported before stays true.

`append`, `trim` and `close` are called on one thread, the engine's; the listener is called there as well.
`tests/contract/test_commit_log.py` states all of this as tests that every implementation must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from topics.errors import TopicsError
from topics.storage.fs import Buffer
from topics.storage.walmetrics import ShardMetrics

ALL_POSITIONS = 2**64 - 1


class Entry(msgspec.Struct, gc=False):
    """One fact of one log. The commit log keeps `body` until it is written: do not change it after an append."""

    log_id: int
    position: int
    kind: int
    body: Sequence[Buffer]


@dataclass(frozen=True, slots=True)
class Covered:
    """What a snapshot holds, so that the commit log need not: each log's entries up to a position.

    Log ids are handed out in ascending order and never twice. A log with an id below `next_log_id` that is not in
    `positions` existed once and was removed: all of it is covered.
    """

    positions: Mapping[int, int] = field(default_factory=dict)
    next_log_id: int = 0

    def upto(self, log_id: int) -> int:
        position = self.positions.get(log_id)
        if position is not None:
            return position
        return ALL_POSITIONS if log_id < self.next_log_id else 0


@dataclass(frozen=True, slots=True)
class FilePart:
    """The beginning of a file that never changes there, and what has to stand behind it to make it a whole one."""

    name: str
    path: str
    length_bytes: int
    ending: bytes = b""


@dataclass(frozen=True, slots=True)
class Cut:
    """All that was appended up to one moment, as files; and the position of each log's last entry then."""

    files: tuple[FilePart, ...]
    positions: Mapping[int, int]


class Listener(Protocol):
    def written(self, shard: int, group: int) -> None:
        """All groups up to `group` have reached the operating system. Comes before `synced` of the same group."""

    def synced(self, shard: int, group: int) -> None:
        """All groups up to `group` are durable."""

    def failed(self, shard: int, error: OSError | TopicsError) -> None:
        """The shard has stopped for good. Called once, after the last `written` and `synced`."""


class CommitLog(Protocol):
    shards: int

    def shard_of(self, log_id: int) -> int: ...

    def append(self, shard: int, entries: Sequence[Entry], sync: bool) -> int:
        """Hand over one group and return its number (1, 2, 3 … in each shard); never waits for a disk.

        With `sync` the group is made durable as soon as possible, without it within the log's sync interval.
        Raises, and appends nothing: `Deposed` when a position is not its log's tail + 1, `Throttled` when too much is
        waiting to be written, `LogStopped` when the shard has failed.
        """

    def sync(self, shard: int) -> None:
        """Make durable what was appended to a shard, as soon as possible; of one that has failed, nothing is."""

    def queued_bytes(self, shard: int) -> int:
        """What was appended and has not reached the operating system yet."""

    def metrics(self, shard: int) -> ShardMetrics:
        """What a shard has counted since it was opened."""

    def tail(self, log_id: int) -> int:
        """The position of the log's last entry, appended or stored; 0 when it has none."""

    def read(self, log_id: int, from_position: int) -> Iterator[Entry]:
        """The stored entries of one log from a position on, in order; trimmed ones are left out."""

    def trim(
        self,
        covered: Covered,
        snapshot_no: int,
        erase: bool = False,
        done: Callable[[Exception | None], None] = lambda error: None,
    ) -> None:
        """Allow dropping what snapshot `snapshot_no`, durable by now, covers. How much really goes is up to the log.

        With `erase` all of it goes, and its bytes are overwritten. `done` is called when that has happened, or cannot.
        """

    def cut(self, done: Callable[[Cut | Exception], None]) -> None:
        """Say which files hold all that was appended by now and nothing else; they read as a log stopped cleanly.

        Nothing changes. The files stay as long as nothing is trimmed. `done` gets the error when a shard has failed.
        """

    def close(self) -> None:
        """Stop cleanly: everything appended is synced and the end is marked.

        Raises `LogStopped` when that cannot be said of every shard, after closing all of them.
        """
