"""Opening a WAL directory: find the files, replay them, and go on behind them.

    recovery = WalRecovery(fs, directory, settings, clock, salt_source, covered, snapshot_no)
    for log_id, position, kind, body in recovery.replay(): …
    recovery.last_stop, recovery.torn, …
    wal = recovery.start(listener, covered, snapshot_no, post)

Nothing is changed on disk before `start`, which never appends to a file of an earlier process: it closes that file off
(without its torn tail) and begins a new one.

A *layout* is a number of shards. If everything stored is covered by the snapshot that `start` is given, a new layout
begins, with the number of shards that the settings ask for: its files carry a higher layout number, which makes all
others obsolete, whatever a crash leaves of them. If not, the layout on disk stays, so a log never has entries in two
shards. To change the number of shards, take a snapshot before `start`, or just stop cleanly with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum

from topics.clock import Clock
from topics.errors import Damaged, NotUnderstood
from topics.storage.commitlog import Covered, Listener
from topics.storage.committer import Committer, CommitterSettings, Post, ThreadCommitter
from topics.storage.frame import OTHER_VERSION
from topics.storage.fs import FileSystem
from topics.storage.tier import shred
from topics.storage.wal import Wal, WalSettings
from topics.storage.walfile import file_name, is_erased, is_spare, parse_name
from topics.storage.walscan import Loss, Replayed, ScannedFile, ShardScan, TornTail, open_file
from topics.storage.walshard import ShardFiles, ShardStart, seal_recovered, stored_file
from topics.storage.witness import Notes, Testimony, recall


class LastStop(Enum):
    """How the process before this one ended, as far as the WAL can tell."""

    NEVER_RAN = "never ran"
    CLEAN = "clean"
    PROCESS_DIED = "process died"
    """Everything that was reported as written is there: the witness says so."""
    UNKNOWN = "process died, disk unknown"
    """The machine has been running since, but no witness proves that the disk kept what was not synced."""
    WRITES_LOST = "process died, disk lost writes"
    """The machine has been running since, and what was written but not synced is gone, at least in part."""
    POWER_LOST = "power lost"
    """What was written but not synced may be gone. After this or the two above, later starts say it again until a
    `trim` names a newer snapshot."""

    @property
    def may_have_lost(self) -> bool:
        """Whether writes that were reported as written may be gone."""
        return self in _LOSSES


_LOSSES = (LastStop.UNKNOWN, LastStop.WRITES_LOST, LastStop.POWER_LOST)
"""From the mildest to the worst."""

_STOPS = {
    Testimony.KEPT: LastStop.PROCESS_DIED,
    Testimony.UNKNOWN: LastStop.UNKNOWN,
    Testimony.LOST: LastStop.WRITES_LOST,
}


def not_understood(directory: str, log_id: int, position: int, error: Exception) -> NotUnderstood:
    """A fact that is whole and says nothing to us. To leave it out would lose what it says."""
    return NotUnderstood(
        f"{directory}: position {position} of log {log_id} is whole, but cannot be read: {error}; {OTHER_VERSION}",
        file=directory,
        log_id=log_id,
        position=position,
        at_risk=((log_id, position, position),),
    )


class WalRecovery:
    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        settings: WalSettings,
        clock: Clock,
        salt_source: Callable[[], int],
        covered: Covered,
        snapshot_no: int,
        salvage: bool = False,
    ) -> None:
        """`snapshot_no` is the newest snapshot there is (0: none) and `covered` what it covers."""
        self._fs = fs
        self.directory = directory
        self._settings = settings
        self._clock = clock
        self._salt_source = salt_source
        self._salvage = salvage
        self._witness = recall(fs, directory)
        self._header_losses: list[Loss] = []
        self._missing: list[Loss] = []
        self._tails: dict[int, int] = {}
        names = fs.list(directory)
        self._spares = [f"{directory}/{name}" for name in names if is_spare(name)]
        self._erased = [f"{directory}/{name}" for name in names if is_erased(name)]
        found = self._open_files(names, salvage)
        self._highest: dict[int, int] = {file.shard: file.number for file in found}
        self._layout = max((file.header.layout for file in found if file.header), default=0)
        current = [file for file in found if file.header is None or file.header.layout == self._layout]
        self._obsolete = [file.path for file in found if file not in current]
        self.shards_on_disk = self._agreed_shards(current)
        self._scans = [
            ShardScan(
                fs,
                shard,
                [f for f in current if f.shard == shard],
                covered,
                snapshot_no,
                self._tails,
                self._witness.shard(shard),
                salvage,
            )
            for shard in range(self.shards_on_disk)
        ]

    def replay(self) -> Iterator[Replayed]:
        """The entries that the snapshot does not cover: shard by shard, each log in order."""
        for shard in range(self.shards_on_disk):
            yield from self.replay_shard(shard)
        self._check_shards()

    def replay_shard(self, shard: int) -> Iterator[Replayed]:
        return iter(self._scans[shard])

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes read so far, and bytes to read."""
        return sum(scan.bytes_done for scan in self._scans), sum(scan.bytes_total for scan in self._scans)

    @property
    def noted_ms(self) -> int:
        """The time of the engine when it was last noted; 0 when that is not known."""
        return self._witness.time_ms

    @property
    def torn(self) -> list[TornTail]:
        return [scan.torn for scan in self._scans if scan.torn is not None]

    @property
    def losses(self) -> list[Loss]:
        return [*self._header_losses, *(loss for scan in self._scans for loss in scan.losses), *self._missing]

    @property
    def needed_snapshot_no(self) -> int:
        """The newest snapshot that replaces something the WAL has dropped. Known after the replay."""
        return max((scan.snapshot_no for scan in self._scans), default=0)

    @property
    def tails(self) -> dict[int, int]:
        """The last position of each log that the files hold."""
        return self._tails

    def logs_behind(self, shard: int, number: int) -> set[int]:
        """The logs with entries in later files of a shard than the one of this number."""
        files = [file for scan in self._scans if scan.shard == shard for file in scan.files]
        return {log_id for file in files if file.number > number for log_id in file.last}

    @property
    def last_stop(self) -> LastStop:
        """Known after the replay."""
        self._assert_replayed()
        last = [scan.files[-1] for scan in self._scans if scan.files]
        if not last:
            return LastStop.NEVER_RAN
        died = [file for file in last if not file.clean]
        if not died:
            return LastStop.CLEAN
        stops = {self._stop_of(file) for file in died}
        return max(stops & set(_LOSSES), key=_LOSSES.index, default=LastStop.PROCESS_DIED)

    def start(self, listener: Listener, covered: Covered, snapshot_no: int, post: Post | None) -> Wal:
        """Begin new files. With `post` each shard gets a thread; without it the caller runs `Wal.work`.

        `covered` and `snapshot_no` are those of the newest durable snapshot, perhaps one taken after the replay.
        """
        self._assert_replayed()
        files = [file for scan in self._scans for file in scan.files]
        everything_covered = all(
            position <= covered.upto(log_id) for file in files for log_id, position in file.last.items()
        )
        if self.losses and not everything_covered:
            message = f"{self.losses[0].message}: after a salvage a snapshot must cover everything before a start"
            raise Damaged(message, file=self.losses[0].file, offset=self.losses[0].offset)
        self._fs.make_dir(self.directory)
        if everything_covered:
            self._obsolete += [file.path for file in files]
            starts = self._new_layout(snapshot_no)
        else:
            starts = self._same_layout(snapshot_no)
        notes = Notes(self._fs, self.directory, len(starts))
        committers = self._open_shards(starts, listener, post, notes)
        self._remove_obsolete()
        tails = dict(covered.positions)
        for log_id, tail in self._tails.items():
            tails[log_id] = max(tail, tails.get(log_id, 0))
        return Wal(committers, tails, notes)

    def _open_files(self, names: list[str], salvage: bool) -> list[ScannedFile]:
        found = []
        for shard, number in sorted(parsed for name in names if (parsed := parse_name(name)) is not None):
            path = f"{self.directory}/{file_name(shard, number)}"
            file, loss = open_file(self._fs, path, shard, number, salvage)
            found.append(file)
            if loss is not None:
                self._header_losses.append(loss)
        return found

    def _check_shards(self) -> None:
        """Every shard has a file before the first entry is written to any of them."""
        if not any(file.last for scan in self._scans for file in scan.files):
            return
        for scan in self._scans:
            if not scan.files:
                path = f"{self.directory}/{file_name(scan.shard, 1)}"
                message = f"{path} or a later file of shard {scan.shard} is missing: it has none"
                if not self._salvage:
                    raise Damaged(message, file=path, offset=0)
                self._missing.append(Loss(path, 0, message, (), whole_file=True))

    def _agreed_shards(self, files: list[ScannedFile]) -> int:
        counts = {file.header.shards for file in files if file.header}
        if len(counts) > 1:
            message = f"the WAL files in {self.directory} disagree about the number of shards: {sorted(counts)}"
            raise Damaged(message, file=self.directory)
        # The names count too, as in a salvage there may be no readable header.
        return max([*counts, *(file.shard + 1 for file in files)], default=0)

    def _stop_of(self, file: ScannedFile) -> LastStop:
        """What is known of a last file that was not ended by a clean stop."""
        header = file.header
        if header is None or header.boot_id != self._fs.boot_id() or (header.after_power_loss and not file.trimmed):
            return LastStop.POWER_LOST
        return _STOPS[self._witness.shard(file.shard).about(header, file.end, file.sealed)]

    def _assert_replayed(self) -> None:
        assert all(scan.finished for scan in self._scans), "replay every shard to its end first"

    def _new_layout(self, snapshot_no: int) -> list[ShardStart]:
        shards = self._settings.shards
        return [self._start(shard, shards, self._layout + 1, snapshot_no) for shard in range(shards)]

    def _same_layout(self, snapshot_no: int) -> list[ShardStart]:
        starts = []
        for scan in self._scans:
            self._obsolete += [file.path for file in scan.files if file.number < scan.oldest]
            needed = [file for file in scan.files if file.number >= scan.oldest]
            stored = tuple(map(stored_file, needed[:-1])) + tuple(seal_recovered(self._fs, f) for f in needed[-1:])
            start = self._start(scan.shard, self.shards_on_disk, self._layout, snapshot_no)
            starts.append(replace(start, stored=stored))
        return starts

    def _start(self, shard: int, shards: int, layout: int, snapshot_no: int) -> ShardStart:
        return ShardStart(
            shard=shard,
            shards=shards,
            layout=layout,
            stored=(),
            next_number=self._highest.get(shard, 0) + 1,
            snapshot_no=snapshot_no,
            after_power_loss=self.last_stop.may_have_lost,
        )

    def _open_shards(
        self, starts: list[ShardStart], listener: Listener, post: Post | None, notes: Notes
    ) -> list[Committer]:
        settings = CommitterSettings(self._settings.disk_sync_ms, self._settings.queue_bytes_max)
        opened: list[ShardFiles] = []
        try:
            for start in starts:
                opened.append(
                    ShardFiles(
                        self._fs,
                        self.directory,
                        self._clock,
                        self._salt_source,
                        self._settings.file_bytes,
                        start,
                        notes.of_shard(start.shard),
                    )
                )
        except OSError:
            for files in opened:
                files.abandon()
            raise
        if post is None:
            return [Committer(files, listener, self._clock, settings, run_now) for files in opened]
        return [ThreadCommitter(files, listener, self._clock, settings, post) for files in opened]

    def _remove_obsolete(self) -> None:
        """Files that nobody needs now that the new ones are durable."""
        spares = [path for path in self._spares if self._fs.exists(path)]
        for path in [*self._obsolete, *spares]:
            self._fs.unlink(path)
        for path in self._erased:
            shred(self._fs, path)
        if self._obsolete or spares or self._erased:
            self._fs.sync_dir(self.directory)


def run_now(report: Callable[[], None]) -> None:
    """The `post` of a WAL without threads."""
    report()
