"""From a backup archive back to a data directory: whole and checked, or not there at all.

    1   everything is unpacked into `DIR.restoring`, which nothing else looks at
    2   the archive is verified while it is read: each file against its checksum, and that none is missing
    3   the unpacked directory is read as an engine would read it: every block, the snapshot, the WAL, and that each log
        ends at the position it had when the backup was made
    4   it is durable, and gets its name

Whatever goes wrong before the last step takes `DIR.restoring` away again; what a crash leaves of it is taken away by
the next attempt. A directory that holds something is never written to.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import msgspec

from topics.clock import Clock
from topics.core.registry import META_LOG_ID
from topics.engine.findings import Kind
from topics.engine.recovery import Options
from topics.engine.salvage import Salvage
from topics.errors import Conflict, Damaged, InvalidRequest
from topics.storage.archive import Archive, Manifest
from topics.storage.fs import FileSystem
from topics.storage.store import LOCK_FILE, Store
from topics.storage.walrecovery import LastStop

RESTORING_SUFFIX = ".restoring"
PLACES = ("wal", "snapshots", "segments")

OnBytes = Callable[[int], None]


class Contents(msgspec.Struct, frozen=True):
    """What an archive holds, after all of it was verified."""

    archive: str
    created_ms: int
    program: str
    files: int
    bytes: int


class Restored(msgspec.Struct, frozen=True):
    """What a restored directory holds."""

    directory: str
    created_ms: int
    """The moment that the directory is at."""
    files: int
    bytes: int
    topics: int
    records: int


def verify_archive(fs: FileSystem, path: str, on_bytes: OnBytes = lambda count: None) -> Contents:
    """Read an archive from front to back. `Damaged` names the first thing that is not as it was written."""
    archive = _open(fs, path, on_bytes)
    try:
        manifest = archive.manifest()
        files = total_bytes = 0
        for _, length_bytes, _ in archive.members():
            files += 1
            total_bytes += length_bytes
        return Contents(path, manifest.created_ms, manifest.program, files, total_bytes)
    finally:
        archive.close()


def archive_bytes(fs: FileSystem, path: str) -> int:
    """How long an archive is, for a progress bar."""
    file = fs.open(path, "read")
    try:
        return file.size()
    finally:
        file.close()


def restore_archive(
    fs: FileSystem,
    path: str,
    directory: str,
    clock: Clock,
    salt_source: Callable[[], int],
    options: Options,
    on_bytes: OnBytes = lambda count: None,
) -> Restored:
    """Make `directory` out of an archive. `on_bytes` tells what was read of the archive."""
    directory = directory.rstrip("/") or "/"
    if fs.exists(directory) and fs.list(directory):
        raise Conflict(
            f"{directory} is there and not empty: a restore never writes over anything. Name a directory that is not "
            "there yet, or move this one away",
            directory=directory,
        )
    archive = _open(fs, path, on_bytes)
    try:
        # Read before anything is made: most files that are no backup are told by it.
        manifest = archive.manifest()
        restoring = directory + RESTORING_SUFFIX
        fs.make_dir(restoring)
        # Only whoever has the lock may clean up: another restore may be at it.
        lock = fs.lock(f"{restoring}/{LOCK_FILE}")
        try:
            _empty(fs, restoring)
            files, total_bytes = _unpack(fs, archive, manifest, restoring)
            lock.release()
            topics, records = _check(fs, restoring, clock, salt_source, options, manifest)
            fs.sync_dir(restoring)
            fs.rename_dir(restoring, directory)
        except Exception:
            # The error that ended it is the one to tell; what cannot be cleaned up now is by the next attempt.
            with suppress(OSError):
                _empty(fs, restoring)
                fs.unlink(f"{restoring}/{LOCK_FILE}")
                fs.remove_dir(restoring)
            raise
        finally:
            lock.release()
    finally:
        archive.close()
    return Restored(directory, manifest.created_ms, files, total_bytes, topics, records)


def _open(fs: FileSystem, path: str, on_bytes: OnBytes) -> Archive:
    try:
        return Archive(fs, path, on_bytes)
    except IsADirectoryError:
        message = f"{path} is a directory, and a backup is one file; `topics backup` makes one"
        raise InvalidRequest(message, expected="a backup") from None


def _empty(fs: FileSystem, restoring: str) -> None:
    """Take away what an earlier attempt left, all but its lock."""
    for place in PLACES:
        for name in fs.list(f"{restoring}/{place}"):
            fs.unlink(f"{restoring}/{place}/{name}")
        if fs.exists(f"{restoring}/{place}"):
            fs.remove_dir(f"{restoring}/{place}")


def _unpack(fs: FileSystem, archive: Archive, manifest: Manifest, restoring: str) -> tuple[int, int]:
    """Files and bytes that were unpacked, durably."""
    free_bytes = fs.free_bytes(restoring)
    if manifest.bytes > free_bytes:
        message = f"the backup needs {manifest.bytes} bytes and {free_bytes} are free"
        raise OSError(errno.ENOSPC, message, restoring)
    for place in PLACES:
        fs.make_dir(f"{restoring}/{place}")
    files = total_bytes = 0
    for name, length_bytes, chunks in archive.members():
        file = fs.open(f"{restoring}/{name}", "create")
        try:
            at = 0
            for chunk in chunks:
                file.write_at(at, [chunk])
                at += len(chunk)
            file.sync()
        finally:
            file.close()
        files += 1
        total_bytes += length_bytes
    for place in PLACES:
        fs.sync_dir(f"{restoring}/{place}")
    return files, total_bytes


def _check(
    fs: FileSystem,
    restoring: str,
    clock: Clock,
    salt_source: Callable[[], int],
    options: Options,
    manifest: Manifest,
) -> tuple[int, int]:
    """Read all of it as an engine would; topics and records that it holds."""
    store = Store(fs, restoring, clock, salt_source, options.hot_bytes)
    try:
        salvage = Salvage(store, replace(options, cold_dir=None), True, lambda count: None)
        recovery = salvage.read()
        # An index that is missing or damaged has been made anew.
        findings = [finding for finding in salvage.found.items if finding.kind is not Kind.INDEX]
        if findings:
            first = findings[0]
            raise Damaged(
                f"the backup holds a damaged directory: {first.message}", file=first.file, offset=first.offset
            )
        if recovery.last_stop is not LastStop.CLEAN:
            message = f"the backup does not end as a backup does: {recovery.last_stop.value}"
            raise Damaged(message, file=f"{restoring}/wal", offset=0)
        for log_id in (META_LOG_ID, *salvage.machine.logs):
            found, expected = salvage.positions.get(log_id, 0), manifest.positions.get(str(log_id), 0)
            if found != expected:
                message = f"log {log_id} ends at position {found}, and at {expected} when the backup was made"
                raise Damaged(message, file=f"{restoring}/wal", offset=0, log_id=log_id)
        return len(salvage.machine.topics), sum(kept.records for kept in salvage.kept())
    finally:
        store.close()
