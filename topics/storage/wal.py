"""The WAL: the commit log of one machine, a set of shards in one directory.

Each shard is a sequence of files (`walshard`) that one committer owns. A log belongs to the shard `log_id % shards`,
the meta log (0) to shard 0. Opening goes through `walrecovery`, which reads what is stored and starts a `Wal` from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from topics.errors import Deposed, LogStopped
from topics.limits import FRAME_BODY_BYTES_MAX
from topics.storage.commitlog import Covered, Cut, Entry, FilePart
from topics.storage.committer import Committer
from topics.storage.walmetrics import ShardMetrics
from topics.storage.walscan import FIRST_ENTRY_KIND
from topics.storage.walshard import Trim
from topics.storage.witness import Notes


@dataclass(frozen=True, slots=True)
class WalSettings:
    shards: int = 2
    """Takes effect at a start at which a snapshot covers everything stored; until then the old number stays."""
    file_bytes: int = 64 << 20
    """Reserved for each file; the next one is begun when it is full. A larger frame gets a file of its own size."""
    disk_sync_ms: int = 200
    queue_bytes_max: int = 64 << 20


class Wal:
    def __init__(self, committers: Sequence[Committer], tails: dict[int, int], notes: Notes) -> None:
        self.shards = len(committers)
        self._committers = list(committers)
        self._tails = tails
        self._notes = notes

    def shard_of(self, log_id: int) -> int:
        return log_id % self.shards

    def append(self, shard: int, entries: Sequence[Entry], sync: bool) -> int:
        ahead: dict[int, int] = {}
        size_bytes = 0
        for entry in entries:
            log_id, position = entry.log_id, entry.position
            tail = ahead.get(log_id) or self._tails.get(log_id, 0)
            if position != tail + 1:
                raise Deposed(
                    f"log {log_id} ends at position {tail}, the writer expected {position - 1}: it has another owner",
                    log_id=log_id,
                    tail=tail,
                    expected=position - 1,
                )
            ahead[log_id] = position
            body_bytes = 0
            for part in entry.body:
                body_bytes += len(part)
            assert body_bytes <= FRAME_BODY_BYTES_MAX and entry.kind >= FIRST_ENTRY_KIND
            assert log_id % self.shards == shard
            size_bytes += body_bytes
        group = self._committers[shard].append(entries, size_bytes, sync)
        self._tails.update(ahead)
        return group

    def tail(self, log_id: int) -> int:
        return self._tails.get(log_id, 0)

    def read(self, log_id: int, from_position: int) -> Iterator[Entry]:
        return self._committers[self.shard_of(log_id)].files.read(log_id, from_position)

    def trim(
        self,
        covered: Covered,
        snapshot_no: int,
        erase: bool = False,
        done: Callable[[Exception | None], None] = lambda error: None,
    ) -> None:
        """Drop the oldest files as far as the snapshot covers all that is in them; done by the committers.

        After a power loss this also says that the snapshot holds whatever the engine concluded from the loss.
        """
        waiting = len(self._committers)
        first_error: Exception | None = None

        def one_done(error: Exception | None) -> None:
            nonlocal waiting, first_error
            waiting -= 1
            first_error = first_error or error
            if not waiting:
                done(first_error)

        for committer in self._committers:
            committer.trim(Trim(covered, snapshot_no, erase), one_done)

    def cut(self, done: Callable[[Cut | Exception], None]) -> None:
        answers: list[Sequence[FilePart] | Exception] = []
        positions = dict(self._tails)

        def one_done(answer: Sequence[FilePart] | Exception) -> None:
            answers.append(answer)
            if len(answers) < len(self._committers):
                return
            errors = [answer for answer in answers if isinstance(answer, Exception)]
            files = [file for answer in answers if not isinstance(answer, Exception) for file in answer]
            done(errors[0] if errors else Cut(tuple(files), positions))

        for committer in self._committers:
            committer.cut(one_done)

    def sync(self, shard: int) -> None:
        self._committers[shard].sync()

    def queued_bytes(self, shard: int) -> int:
        return self._committers[shard].metrics.queue_bytes

    def work(self, shard: int | None = None) -> bool:
        """Without threads: run one round of a shard, or of every one; False when there was nothing to do."""
        committers = self._committers if shard is None else self._committers[shard : shard + 1]
        worked = [committer.work() for committer in committers]
        return any(worked)

    def due_ns(self) -> int | None:
        """Without threads: the tick at which `work` is needed although nothing was appended."""
        return min((due for committer in self._committers if (due := committer.due_ns()) is not None), default=None)

    def note_time(self, now_ms: int) -> None:
        """Keep the time for the next process on this run of the machine; costs no system call."""
        self._notes.note_time(now_ms)

    def metrics(self, shard: int) -> ShardMetrics:
        return self._committers[shard].metrics

    def close(self) -> None:
        stopped: LogStopped | None = None
        for committer in self._committers:
            try:
                committer.close()
            except LogStopped as error:
                stopped = stopped or error
        if stopped is not None:
            raise stopped
        self._notes.forget()
