"""Erasing records of a lake so that their bytes are gone, and a receipt that says so.

Files with such records are written again without them, one commit puts the new ones in the place of the old ones, and
then the old ones are deleted. A file that no commit names, left by a task that died, may hold them as well: it is
deleted when it is old enough to be nobody's, and until then the receipt says that it is there and the erasure is not
complete. The table's log holds no text of records (see `lakecolumns.py`). Versions of the table from before cannot be
read any more where they need an erased file: that is the point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from topics.clock import SystemClock
from topics.errors import Conflict
from topics.limits import HOUR_MS, SECOND_MS
from topics.spark.lakefile import LakeFile, StoredFile, delete_file, file_system, read_file, write_file
from topics.spark.laketable import Lake

IN_FLIGHT_MS: Final = HOUR_MS
"""A file that is younger may be one that a running query is about to commit."""
_ATTEMPTS: Final = 5
_GLOB: Final = "*"


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure did to a lake."""

    location: str
    topic: str
    tag: str
    """A tag, or a prefix with a `*` behind it."""
    erased_count: int
    """Records that were taken out of the table."""
    files_rewritten: int
    files_deleted: int
    version: int
    """That of the table without them."""
    pending_files: tuple[str, ...]
    """Files that no commit names and that may be another query's: erase again when they are old or committed."""
    erased_ts: int

    @property
    def complete(self) -> bool:
        return not self.pending_files


def erase(root: str, topic: str, tag: str, now_ms: int | None = None) -> Receipt:
    """Erase the records of a topic that have a tag, or whose tags begin with what stands before a `*`."""
    erased_at_ms = SystemClock().now_ms() if now_ms is None else now_ms
    replaced, erased_count = _replace(root, topic, tag)
    deleted = 0
    lake = Lake.open(root)
    # Files that a commit took out, this one or a compaction before, are nobody's any more.
    removed = set(lake.table.vacuum(0, dry_run=True, enforce_retention_duration=False))
    pending = []
    for path, modified_ms in _untracked(lake):
        if not _holds(root, lake, path, topic, tag):
            continue
        if path not in removed and erased_at_ms - modified_ms < IN_FLIGHT_MS:
            pending.append(path)
        else:
            deleted += delete_file(root, path)
    return Receipt(
        location=root,
        topic=topic,
        tag=tag,
        erased_count=erased_count,
        files_rewritten=len(replaced),
        files_deleted=deleted,
        version=lake.version,
        pending_files=tuple(pending),
        erased_ts=erased_at_ms,
    )


def _replace(root: str, topic: str, tag: str) -> tuple[list[StoredFile], int]:
    """Commit files without the records; when others changed the same files meanwhile, anew."""
    for attempt in range(_ATTEMPTS):
        lake = Lake.open(root)
        removed: list[StoredFile] = []
        added: list[LakeFile] = []
        erased_count = 0
        for file in lake.files([topic]):
            rows = read_file(root, file.path, file.partition_values)
            kept = rows.filter(pc.invert(_matching(rows, topic, tag)))
            if kept.num_rows == rows.num_rows:
                continue
            removed.append(file)
            erased_count += rows.num_rows - kept.num_rows
            if kept.num_rows:
                added.append(write_file(root, lake.layout, kept))
        if not removed:
            return [], 0
        try:
            lake.replace(removed, added)
        except Conflict:
            for written in added:
                delete_file(root, written.path)
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        return removed, erased_count
    raise AssertionError("the last attempt returns or raises")


def _matching(rows: Any, topic: str, tag: str) -> Any:
    tags = pc.starts_with(rows["tag"], tag[:-1]) if tag.endswith(_GLOB) else pc.equal(rows["tag"], tag)
    return pc.and_(pc.equal(rows["topic"], topic), pc.fill_null(tags, False))


def _untracked(lake: Lake) -> Iterator[tuple[str, int]]:
    """Parquet files below the root that this version does not name, and when they were written."""
    fs, base = file_system(lake.root)
    named = {file.path for file in lake.files()}
    for info in fs.get_file_info(pafs.FileSelector(base, recursive=True)):
        path = info.path[len(base) :].lstrip("/")
        stored = info.type == pafs.FileType.File and path.endswith(".parquet") and not path.startswith("_")
        if stored and path not in named:
            yield path, int(info.mtime.timestamp() * SECOND_MS)


def _holds(root: str, lake: Lake, path: str, topic: str, tag: str) -> bool:
    """Whether a file has such records. One that cannot be read, or lies where none of the lake's does, may."""
    values = dict(part.partition("=")[::2] for part in path.split("/")[:-1])
    try:
        rows = read_file(root, path, {name: unquote(values[name]) for name in lake.layout})
    except (OSError, KeyError, pa.ArrowInvalid):
        return True
    return bool(pc.any(_matching(rows, topic, tag)).as_py())
