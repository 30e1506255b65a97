"""Checking a data directory that no process has open, and repairing one that is damaged.

A check reads every byte and changes nothing. A repair goes on from what the check could read, in an order that can be
cut short anywhere and begun again:

    1   the damaged files are copied to `damaged-<time>/`, durably; then everything is read again, to be used this time
    2   `repair-<time>.json` says what was found, kept and lost, and that the repair is not finished
    3   what was saved is written as new segments, then as one new snapshot: from here on it counts
    4   the WAL begins anew, and what nothing names any more is removed
    5   `repair-<time>.json` says that the repair is finished
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from topics.clock import Clock
from topics.engine import heapimages, images, writing
from topics.engine.findings import FsckReport, Kind
from topics.engine.recovery import Options
from topics.engine.remains import OnBytes
from topics.engine.salvage import Salvage
from topics.errors import InvalidRequest, TopicsError
from topics.storage.commitlog import Covered
from topics.storage.draft import Draft
from topics.storage.fs import FileSystem
from topics.storage.store import Store

COPY_BYTES = 1 << 20
_REPORT = re.compile(r"repair-.*\.json")


def fsck(
    fs: FileSystem,
    directory: str,
    clock: Clock,
    salt_source: Callable[[], int],
    options: Options,
    repair: bool = False,
    on_bytes: OnBytes = lambda done: None,
) -> FsckReport:
    """Check a directory, and with `repair` mend it. Raises `DirectoryLocked` while a process has it open."""
    if not fs.exists(f"{directory}/wal"):
        raise InvalidRequest(
            f"{directory} is no data directory: it has no wal/ in it; name the one that a server or program was given",
            expected="a data directory",
        )
    store = Store(fs, directory, clock, salt_source, options.hot_bytes, options.cold_dir)
    try:
        report = FsckReport(directory)
        report.files, report.bytes = _size(store)
        salvage = Salvage(store, options, False, on_bytes)
        report.last_stop = salvage.read().last_stop.value
        report.findings, report.notes = salvage.found.items, salvage.found.notes
        report.notes += [
            f"a repair was cut short; {path} says what it gave up, and what is left is checked here"
            for path in _unfinished_repairs(store)
        ]
        report.lost, report.may_be_back, report.kept = salvage.lost(), salvage.may_be_back(), salvage.kept()
        if repair and not report.clean:
            salvage.release()
            _repair(store, options, report)
        return report
    finally:
        store.close()


def total_bytes(fs: FileSystem, directory: str, cold_dir: str | None = None) -> int:
    """What a check will read, for a progress bar."""
    return sum(_file_bytes(fs, path) for path in _files(fs, directory, cold_dir))


def _size(store: Store) -> tuple[int, int]:
    paths = _files(store.fs, store.directory, store.tiers.cold_dir)
    return len(paths), sum(_file_bytes(store.fs, path) for path in paths)


def _files(fs: FileSystem, directory: str, cold_dir: str | None) -> list[str]:
    places = [f"{directory}/{name}" for name in ("wal", "segments", "snapshots")]
    places += [cold_dir] if cold_dir is not None else []
    return [f"{place}/{name}" for place in places for name in fs.list(place)]


def _file_bytes(fs: FileSystem, path: str) -> int:
    file = fs.open(path, "read")
    try:
        return file.size()
    finally:
        file.close()


# ---- repair


class _Unheard:
    """Nobody waits for anything while a repair has the WAL open."""

    def written(self, shard: int, group: int) -> None: ...

    def synced(self, shard: int, group: int) -> None: ...

    def failed(self, shard: int, error: OSError | TopicsError) -> None:
        raise error


def _repair(store: Store, options: Options, report: FsckReport) -> None:
    stamp = _stamp(store)
    report.set_aside = _set_aside(store, f"{store.directory}/damaged-{stamp}", {f.file for f in report.findings})
    _remove_indexes(store, {finding.file for finding in report.findings if finding.kind is Kind.INDEX})
    salvage = Salvage(store, options, True, lambda done: None)
    recovery = salvage.read()
    report.report_file = f"{store.directory}/repair-{stamp}.json"
    _write_report(store, report)
    _write_anew(store, salvage, options)
    wal = recovery.start(
        _Unheard(), Covered(salvage.checkpointer.covered, salvage.machine.next_log_id), store.snapshots.number, None
    )
    wal.close()
    report.notes += [f"removed {path}" for path in store.sweep()]
    report.repaired = True
    _write_report(store, report)


def _write_report(store: Store, report: FsckReport) -> None:
    assert report.report_file is not None
    with Draft(store.fs, report.report_file) as draft:
        draft.append([msgspec.json.format(msgspec.json.encode(report), indent=2)])
        draft.seal()
        draft.publish()
    store.fs.sync_dir(store.directory)


def _unfinished_repairs(store: Store) -> list[str]:
    """Reports of repairs that were cut short: what they gave up may be given up already, and no later check sees it."""
    paths = [f"{store.directory}/{name}" for name in store.fs.list(store.directory) if _REPORT.fullmatch(name)]
    return [path for path in paths if not _is_finished(store.fs, path)]


def _is_finished(fs: FileSystem, path: str) -> bool:
    mapping = fs.map(path)
    try:
        return msgspec.json.decode(bytes(mapping.view), type=_Ending).repaired
    except msgspec.DecodeError:
        return True  # Not a report of ours.
    finally:
        mapping.release()


class _Ending(msgspec.Struct):
    repaired: bool = True


def _stamp(store: Store) -> str:
    """The time, and a number when this second has had a repair already."""
    stamp = datetime.fromtimestamp(store.clock.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    taken = set(store.fs.list(store.directory))
    candidates = [stamp, *(f"{stamp}-{number}" for number in range(2, 1000))]
    return next(name for name in candidates if not {f"damaged-{name}", f"repair-{name}.json"} & taken)


def _set_aside(store: Store, target_dir: str, paths: set[str]) -> list[str]:
    """Copy files, durably, under names that say where they were; the copies."""
    fs = store.fs
    copies = []
    for path in sorted(paths):
        place, _, name = path.rpartition("/")
        if "." not in name or name not in fs.list(place):
            continue  # a directory, or a file that is missing
        fs.make_dir(target_dir)
        copy = f"{target_dir}/{place.rpartition('/')[2]}-{name}"
        source = fs.map(path)
        try:
            with Draft(fs, copy) as draft:
                for at in range(0, len(source.view), COPY_BYTES):
                    draft.append([source.view[at : at + COPY_BYTES]])
                draft.seal()
                draft.publish()
        finally:
            source.release()
        fs.sync_dir(target_dir)
        copies.append(copy)
    return copies


def _remove_indexes(store: Store, paths: set[str]) -> None:
    """A segment whose index is missing gets a new one when it is opened."""
    for path in sorted(paths):
        if store.fs.exists(path):
            store.fs.unlink(path)
            store.fs.sync_dir(path.rpartition("/")[0])


def _write_anew(store: Store, salvage: Salvage, options: Options) -> None:
    """Everything that was saved, as one checkpoint whose snapshot does not build on the damaged ones."""
    machine, checkpointer = salvage.machine, salvage.checkpointer
    checkpointer.dirty.update(machine.logs)
    heapimages.write_anew(machine.logs.values())
    machine.changed.update(topic.name for topic in machine.topics)
    machine.routers.changed.update(router.name for router in machine.routers)
    machine.catalog.all_changed()
    machine.accounts.changed.update(machine.accounts.all_keys())
    machine.batches.changed_stages.update(machine.batches.stages)
    machine.batches.changed_batches.update(machine.batches.by_producer)
    for log in machine.logs.values():
        if log.remembers:
            log.dedupe.changed_fences = log.dedupe.fenced()
    *_, job = checkpointer.capture(salvage.now_ms)
    chunks = {key: value for key, value in salvage.state.items() if key.startswith(b"d/")}
    known = {images.chunk_key(c.log.log_id, number) for c in job.logs for number in c.image.chunks}
    job.puts = {key: value for key, value in chunks.items() if key in known} | job.puts
    job.whole = True
    writing.write(store, options.segments, job)
    checkpointer.install(job)
    writing.clean(store, job)
