"""The owner of a WAL shard: takes what the engine appended, writes it, syncs it, and tells how far it got.

A round takes everything that is queued, writes it in one go, and says `written`. If a group among it wants to be
synced, or the oldest unsynced group has waited for the sync interval, one sync covers all that was written, and
`synced` is said. So a lone request is synced at once, and requests that arrive during a sync share the next one: the
batch is as large as the disk is slow, without a timer. When nothing is left to do, the shard's files are settled.

`Committer` runs a round whenever `work` is called (deterministic tests, the simulator). `ThreadCommitter` runs them on
a thread of its own, which sleeps on a condition until there is work or the sync interval ends. Reports go through
`post`, which must run them on the engine's thread; reports that pile up there become one.

While the thread sleeps, a small group is written by whoever appends it: handing over so little to the operating system
takes less time than waking a thread and being called back. The thread is kept out of the files meanwhile (`_claimed`),
and woken when there is something for it to do: a sync that is wanted, or the interval to the next one. What may take
longer is always the thread's: syncing, beginning a file, and all writes for a while after one that was slow.

The first error ends the shard: the failed write or sync is not tried again, what was queued is dropped unreported,
and every later append is refused with the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from topics.clock import Clock
from topics.errors import Internal, LogStopped, Throttled, TopicsError
from topics.storage.commitlog import Entry, FilePart, Listener
from topics.storage.walshard import ShardFiles, Trim

Post = Callable[[Callable[[], None]], None]
Done = Callable[[Exception | None], None]
CutDone = Callable[[Sequence[FilePart] | Exception], None]

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

AT_ONCE_BYTES_MAX = 64 << 10
"""A group up to this size may be written by whoever appends it."""
SLOW_NS = 2 * NS_PER_MS
"""A write that takes this long was held up, by a disk that is behind with what it was given before."""
CLAIM_NS = NS_PER_MS
"""How long the thread looks away when it is time to sync, and somebody else is at the files."""
SLOW_PAUSE_FACTOR = 10
"""So many times as long as a slow write took, all writes are the thread's: waiting takes a small share of the time."""


@dataclass(frozen=True, slots=True)
class CommitterSettings:
    disk_sync_ms: int = 200
    """How long a group that did not ask for a sync may stay unsynced."""
    queue_bytes_max: int = 64 << 20
    """Bytes waiting to be written, above which an append is refused. One group larger than this passes alone."""


class Committer:
    def __init__(
        self, files: ShardFiles, listener: Listener, clock: Clock, settings: CommitterSettings, post: Post
    ) -> None:
        self.shard = files.shard
        self.files = files
        self.metrics = files.metrics
        self._listener = listener
        self._clock = clock
        self._settings = settings
        self._post = post
        self._lock = threading.Lock()
        # Shared with the engine's thread, under the lock:
        self._queue: list[Sequence[Entry]] = []
        self._queue_bytes = 0
        self._queue_since_ns = 0
        self._last_group = 0
        self._sync_group = 0
        self._trim: Trim | None = None
        self._trim_done: list[Done] = []
        self._cuts: list[tuple[int, CutDone]] = []
        """The last group that each cut takes, and who wants to know."""
        self._error: OSError | TopicsError | None = None
        self._closed = False
        self._written_group = 0
        self._synced_group = 0
        self._reporting = False
        # The worker's own:
        self._unsynced_since_ns: int | None = None
        # The engine thread's own:
        self._told_written = 0
        self._told_synced = 0
        self._told_failed = False

    def append(self, entries: Sequence[Entry], size_bytes: int, sync: bool) -> int:
        """Queue one group; its number."""
        metrics = self.metrics
        with self._lock:
            if self._error is not None or self._closed:
                raise self._stopped()
            queue_bytes = self._queue_bytes + size_bytes
            if queue_bytes > self._settings.queue_bytes_max and self._queue_bytes:
                metrics.submit_full += 1
                raise self._full(size_bytes)
            if not self._queue:
                self._queue_since_ns = self._clock.ticks_ns()
            self._queue.append(entries)
            self._queue_bytes = metrics.queue_bytes = queue_bytes
            if queue_bytes > metrics.queue_bytes_peak:
                metrics.queue_bytes_peak = queue_bytes
            depth = metrics.queue_depth = len(self._queue)
            if depth > metrics.queue_depth_peak:
                metrics.queue_depth_peak = depth
            group = self._last_group = self._last_group + 1
            if sync:
                self._sync_group = group
            self._wake()
        return group

    def sync(self) -> None:
        """Sync what was queued in the next round."""
        with self._lock:
            self._sync_group = self._last_group
            self._wake()

    def trim(self, trim: Trim, done: Done) -> None:
        """Trim in the next round; `done` is called on the engine's thread afterwards."""
        with self._lock:
            if self._error is None and not self._closed:
                # A trim that waits already is covered by this one, but for its wish to erase.
                self._trim = trim.also(self._trim)
                self._trim_done.append(done)
                self._wake()
                return
        done(self._stopped())

    def cut(self, done: CutDone) -> None:
        """Tell `done` which files hold the groups up to the last one queued; on the engine's thread."""
        with self._lock:
            if self._error is None and not self._closed:
                self._cuts.append((self._last_group, done))
                self._wake()
                return
        done(self._stopped())

    def work(self) -> bool:
        """Run one round; False when there was nothing to do."""
        return self._error is None and not self._closed and self._round(closing=False)

    def due_ns(self) -> int | None:
        """The tick at which a round has to run although nothing new was appended; None when it need not."""
        if self._unsynced_since_ns is None:
            return None
        return self._unsynced_since_ns + self._settings.disk_sync_ms * NS_PER_MS

    def close(self) -> None:
        """Write and sync what is queued and end the file. `LogStopped` when the shard did not end cleanly."""
        self._finish()
        if self._error is not None:
            raise self._stopped()

    def _wake(self) -> None:
        """There is something to do. Called under the lock."""

    def _finish(self) -> None:
        if self._closed or self._error is not None:
            return
        self._round(closing=True)
        if self._error is None and self._survives(self.files.close):
            with self._lock:
                self._closed = True

    def _round(self, closing: bool) -> bool:
        with self._lock:
            queue, self._queue = self._queue, []
            since_ns, taken_bytes = self._queue_since_ns, self._queue_bytes
            last_group, sync_group = self._last_group, self._sync_group
            trim, self._trim = self._trim, None
            trim_done = list(self._trim_done)
            cuts = list(self._cuts)
            self.metrics.queue_depth = 0
        if (queue or cuts) and not self._write(queue, since_ns, taken_bytes, last_group, cuts):
            return True
        due_ns = self.due_ns()
        due = due_ns is not None and (closing or sync_group > self._synced_group or self._clock.ticks_ns() >= due_ns)
        if due and not self._sync():
            return True
        if trim is not None:
            if not self._survives(lambda: self.files.trim(trim)):
                return True
            self._tell_trimmed(trim_done, None)
        if not self._queue:
            self._survives(self.files.settle)
        return bool(queue or trim or due or cuts)

    def _write(
        self,
        queue: Sequence[Sequence[Entry]],
        since_ns: int,
        taken_bytes: int,
        last_group: int,
        cuts: Sequence[tuple[int, CutDone]],
    ) -> bool:
        if queue and self._unsynced_since_ns is None:
            self._unsynced_since_ns = since_ns
        if not self._survives(lambda: self._write_groups(queue, last_group, cuts)):
            return False
        with self._lock:
            self._queue_bytes -= taken_bytes
            self.metrics.queue_bytes = self._queue_bytes
            self._written_group = last_group
        self._report()
        return True

    def _write_groups(
        self, queue: Sequence[Sequence[Entry]], last_group: int, cuts: Sequence[tuple[int, CutDone]]
    ) -> None:
        """Write the groups up to `last_group`; at each cut look where the files end, before a later group is there."""
        written_group = last_group - len(queue)
        for group, done in cuts:
            if group > written_group:
                self.files.write(queue[: group - written_group])
                queue, written_group = queue[group - written_group :], group
            self._tell_cut(done, self.files.parts())
        if queue:
            self.files.write(queue)

    def _tell_cut(self, done: CutDone, answer: Sequence[FilePart] | Exception) -> None:
        with self._lock:
            self._cuts.pop(0)
        self._post(lambda: done(answer))

    def _sync(self) -> bool:
        if not self._survives(self.files.sync):
            return False
        self._unsynced_since_ns = None
        with self._lock:
            self._synced_group = self._written_group
        self._report()
        return True

    def _survives(self, step: Callable[[], None]) -> bool:
        """Do something with the files; False when that was the end of the shard."""
        try:
            step()
        except Exception as error:
            self._fail(error)
            return False
        return True

    def _tell_trimmed(self, trim_done: Sequence[Done], error: Exception | None) -> None:
        def tell() -> None:
            for done in trim_done:
                done(error)

        with self._lock:
            del self._trim_done[: len(trim_done)]
        if trim_done:
            self._post(tell)

    def _fail(self, error: Exception) -> None:
        """Stop for good. Nothing that is not synced by now will ever be reported as synced."""
        if not isinstance(error, OSError | TopicsError):
            cause = Internal(f"WAL shard {self.shard} stopped on a defect: {error!r}", shard=self.shard)
            cause.__cause__ = error
            error = cause
        with self._lock:
            self._error = error
            self._queue = []
            self._queue_bytes = 0
        self.metrics.queue_depth = self.metrics.queue_bytes = 0
        self.metrics.read_only = True
        self.metrics.last_error = str(error)
        # The shard is given up already, and its error reported: a close that fails as well says nothing new.
        with suppress(OSError):
            self.files.abandon()
        self._report()
        self._tell_trimmed(list(self._trim_done), error)
        for _, done in list(self._cuts):
            self._tell_cut(done, error)

    def _report(self) -> None:
        with self._lock:
            if self._reporting:
                return
            self._reporting = True
        self._post(self._deliver)

    def _deliver(self) -> None:
        """Tell the listener what is new. Runs on the engine's thread."""
        with self._lock:
            self._reporting = False
            written, synced, error = self._written_group, self._synced_group, self._error
        if written > self._told_written:
            self._told_written = written
            self._listener.written(self.shard, written)
        if synced > self._told_synced:
            self._told_synced = synced
            self._listener.synced(self.shard, synced)
        if error is not None and not self._told_failed:
            self._told_failed = True
            self._listener.failed(self.shard, error)

    def _stopped(self) -> LogStopped:
        cause = self._error
        reason = "it was closed" if cause is None else str(cause)
        stopped = LogStopped(f"WAL shard {self.shard} has stopped and takes no more writes: {reason}", shard=self.shard)
        stopped.__cause__ = cause
        return stopped

    def _full(self, size_bytes: int) -> Throttled:
        return Throttled(
            f"WAL shard {self.shard} has {self._queue_bytes} bytes waiting for the disk; {size_bytes} more would "
            f"exceed {self._settings.queue_bytes_max}: try again when some are written",
            limit="queue_bytes_max",
            shard=self.shard,
        )


class ThreadCommitter(Committer):
    def __init__(
        self, files: ShardFiles, listener: Listener, clock: Clock, settings: CommitterSettings, post: Post
    ) -> None:
        super().__init__(files, listener, clock, settings, post)
        self._work = threading.Condition(self._lock)
        self._idle = False
        """Whether the thread sleeps."""
        self._claimed = False
        """Whether the engine's thread is using the files."""
        self._at_once_from_ns = 0
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"wal-{self.shard}", daemon=True)
        self._thread.start()

    def append(self, entries: Sequence[Entry], size_bytes: int, sync: bool) -> int:
        now_ns = self._clock.ticks_ns()
        if size_bytes > AT_ONCE_BYTES_MAX or not self._claim(size_bytes, len(entries), now_ns):
            return super().append(entries, size_bytes, sync)
        group = self._last_group + 1
        rests = self._unsynced_since_ns is None
        written = False
        try:
            self.files.write([entries])
            written = True
        except Exception as error:
            self._fail(error)
        with self._lock:
            # Not a moment sooner: a thread that syncs before it knows of this group would think that all is synced.
            self._claimed = False
            self._last_group = group
            if written:
                self._written_group = group
                if rests:
                    self._unsynced_since_ns = now_ns
                if sync:
                    self._sync_group = group
                if sync or rests:
                    self._wake()
        if written:
            took_ns = self._clock.ticks_ns() - now_ns
            if took_ns > SLOW_NS:
                self._at_once_from_ns = now_ns + took_ns * SLOW_PAUSE_FACTOR
            self._told_written = group
            self._listener.written(self.shard, group)
        return group

    def _claim(self, size_bytes: int, count: int, now_ns: int) -> bool:
        """Keep the thread out of the files if it sleeps; False when the group is the thread's to write."""
        with self._lock:
            sleeps = self._idle and not self._queue and not self._closing
            may = sleeps and now_ns >= self._at_once_from_ns and self._error is None and not self._closed
            self._claimed = may and self.files.has_room(size_bytes, count)
            return self._claimed

    def close(self) -> None:
        with self._lock:
            self._closing = True
            self._wake()
        self._thread.join()
        super().close()

    def _wake(self) -> None:
        if self._idle:
            self._idle = False
            self._work.notify()

    def _run(self) -> None:
        try:
            while self._error is None and not self._wait():
                self.work()
            self._finish()
        except Exception as error:
            # The engine could not be told, as its loop is gone: whoever appends or closes will be.
            self._post = _to_nobody
            self._fail(error)

    def _wait(self) -> bool:
        """Sleep until there is work; True when it is time to close."""
        with self._work:
            while not (self._queue or self._trim or self._cuts or self._closing or self._sync_wanted()):
                due_ns = self.due_ns()
                timeout_ns = None if due_ns is None else due_ns - self._clock.ticks_ns()
                if timeout_ns is not None and timeout_ns <= 0:
                    if not self._claimed:
                        break
                    timeout_ns = CLAIM_NS
                self._idle = True
                self._work.wait(None if timeout_ns is None else timeout_ns / NS_PER_S)
                self._idle = False
            return self._closing

    def _sync_wanted(self) -> bool:
        return self._sync_group > self._synced_group


def _to_nobody(report: Callable[[], None]) -> None:
    """The `post` of a committer whose engine is gone."""
