"""Looking after a lake: what is in it, small files made into large ones, old days let go, leftovers swept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow.parquet as pq
from deltalake.exceptions import CommitFailedError

from topics.clock import SystemClock
from topics.errors import Conflict, InvalidRequest
from topics.limits import DAY_MS
from topics.spark.lakecolumns import day_at
from topics.spark.lakefile import StoredFile, delete_file, file_system, join_files
from topics.spark.laketable import Lake

TARGET_BYTES: Final = 256 << 20
VACUUM_HOURS: Final = 7 * 24
"""Files that nobody needs any more are kept so long for those who read an earlier version."""
VACUUM_HOURS_MIN: Final = 1
"""A younger file may be one that a running query is about to commit."""


class TopicInLake(msgspec.Struct, frozen=True, kw_only=True):
    """What a lake holds of one topic."""

    topic: str
    files: int
    count: int
    bytes: int
    first_date: str
    last_date: str


class LakeState(msgspec.Struct, frozen=True, kw_only=True):
    location: str
    layout: str
    version: int
    files: int
    count: int
    bytes: int
    topics: tuple[TopicInLake, ...]


class Optimized(msgspec.Struct, frozen=True, kw_only=True):
    location: str
    files_removed: int
    files_added: int
    version: int


class Vacuumed(msgspec.Struct, frozen=True, kw_only=True):
    location: str
    rows_dropped: int
    """Rows of days that are not kept any more."""
    files_deleted: int
    dry_run: bool


def state(root: str) -> LakeState:
    """What is in a lake, topic by topic."""
    lake = Lake.open(root)
    files = list(lake.files())
    by_topic: dict[str, list[StoredFile]] = {}
    for file in files:
        for topic in _topics(lake, file):
            by_topic.setdefault(topic, []).append(file)
    return LakeState(
        location=root,
        layout=",".join(lake.layout),
        version=lake.version,
        files=len(files),
        count=sum(file.row_count for file in files),
        bytes=sum(file.size_bytes for file in files),
        topics=tuple(_topic(topic, found) for topic, found in sorted(by_topic.items())),
    )


def _topics(lake: Lake, file: StoredFile) -> list[str]:
    """The topics in a file: its directory says it, or the column itself has to be looked at."""
    if "topic" in file.partition_values:
        return [file.partition_values["topic"]]
    fs, base = file_system(lake.root)
    with fs.open_input_file(f"{base}/{file.path}") as source:
        names = pq.read_table(source, columns=["topic"])["topic"].unique().to_pylist()
    return [str(name) for name in names]


def _topic(topic: str, files: list[StoredFile]) -> TopicInLake:
    dates = sorted(file.partition_values.get("date", "") for file in files)
    return TopicInLake(
        topic=topic,
        files=len(files),
        count=sum(file.row_count for file in files),
        bytes=sum(file.size_bytes for file in files),
        first_date=dates[0],
        last_date=dates[-1],
    )


def optimize(root: str, target_bytes: int = TARGET_BYTES) -> Optimized:
    """Make large files of small ones. Whoever reads or archives meanwhile is not disturbed."""
    lake = Lake.open(root)
    removed = added = 0
    for files in _piles(lake, target_bytes):
        try:
            joined = join_files(root, lake.layout, files)
        except FileNotFoundError:
            # Erased meanwhile, as below.
            continue
        try:
            lake.replace(files, [joined], is_change=False)
        except Conflict:
            # Whoever changed these files was first; what is small among them is for the next time.
            delete_file(root, joined.path)
            continue
        removed, added = removed + len(files), added + 1
    return Optimized(location=root, files_removed=removed, files_added=added, version=Lake.open(root).version)


def _piles(lake: Lake, target_bytes: int) -> Iterator[list[StoredFile]]:
    """Files of one directory that are small and together not too large, two or more."""
    by_directory: dict[tuple[str, ...], list[StoredFile]] = {}
    for file in sorted(lake.files(), key=lambda file: file.first_seq):
        if file.size_bytes < target_bytes:
            by_directory.setdefault(tuple(file.partition_values.values()), []).append(file)
    for files in by_directory.values():
        pile: list[StoredFile] = []
        for file in files:
            if sum(each.size_bytes for each in pile) + file.size_bytes > target_bytes:
                yield from [pile] if len(pile) > 1 else []
                pile = []
            pile.append(file)
        if len(pile) > 1:
            yield pile


def vacuum(root: str, older_than_hours: int = VACUUM_HOURS, keep_days: int = 0, dry_run: bool = False) -> Vacuumed:
    """Let go of days that are older than `keep_days` (0 keeps all), and delete files that nobody needs.

    Those are files that are in no version of the last `older_than_hours`, and files that no commit ever named.
    """
    if older_than_hours < VACUUM_HOURS_MIN:
        expected = f"{VACUUM_HOURS_MIN} or more"
        raise InvalidRequest(
            f"older_than_hours must be {expected}: a younger file may be one that is about to be committed",
            field="older_than_hours",
            expected=expected,
        )
    if keep_days < 0:
        raise InvalidRequest(
            f"keep_days must be 0, which keeps all, or more, not {keep_days}", field="keep_days", expected="0 or more"
        )
    lake = Lake.open(root)
    dropped = 0
    if keep_days:
        before = day_at(SystemClock().now_ms() - keep_days * DAY_MS)
        old = f"date < '{before}'"
        if dry_run:
            dropped = sum(file.row_count for file in lake.files() if file.partition_values.get("date", before) < before)
        else:
            try:
                dropped = int(lake.table.delete(old)["num_deleted_rows"] or 0)
            except CommitFailedError as error:
                raise Conflict(f"{root} was changed meanwhile: try again ({error})", location=root) from error
        lake = Lake.open(root)
    gone = lake.table.vacuum(older_than_hours, dry_run=dry_run, enforce_retention_duration=False, full=True)
    return Vacuumed(location=root, rows_dropped=dropped, files_deleted=len(gone), dry_run=dry_run)
