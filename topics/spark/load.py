"""Files into a topic: Parquet, JSON lines or CSV, in parallel, each file once.

A row becomes a record whose data is the row as JSON, or one column of it. Files are taken in the order of their names,
rows in the order of their file, a few files at a time: each such part is written in one commit under the name of the
job and its number. So a job that is begun again after a failure goes on where it was, and one that is repeated as a
whole adds nothing, for as long as the server remembers (24 hours).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec
import pyarrow.fs as pafs

from topics.errors import InvalidRequest, NotFound
from topics.spark.lakefile import file_system
from topics.spark.source import FORMAT, preset_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS: Final = ("parquet", "json", "csv")
_SUFFIXES: Final = {"parquet": "parquet", "json": "json", "jsonl": "json", "ndjson": "json", "csv": "csv"}
PART_BYTES: Final = {"parquet": 8 << 20, "json": 32 << 20, "csv": 32 << 20}
"""Files that go into one commit, as large as they are on disk; a larger file goes alone. Parquet is compressed."""
_JOB_HEX: Final = 16


class InputFile(msgspec.Struct, frozen=True):
    path: str
    size_bytes: int
    modified_ms: int


class Loaded(msgspec.Struct, frozen=True):
    """What an import wrote, or would have found written by the same job."""

    topic: str
    job_id: str
    files: int
    count: int


class Mapped(msgspec.Struct, frozen=True):
    """Which columns mean what; without `data` the whole row is the data."""

    data: str = ""
    tag: str = ""
    node: str = ""
    key: str = ""
    partition: str = ""


def find_files(path: str, kind: str) -> list[InputFile]:
    """The file, or the files of that format below the directory, in the order of their names."""
    fs, base = file_system(path)
    info = fs.get_file_info(base)
    if info.type == pafs.FileType.NotFound:
        raise NotFound(f"there is no file or directory {path}", path=path)
    found = [info] if info.type == pafs.FileType.File else fs.get_file_info(pafs.FileSelector(base, recursive=True))
    files = [
        InputFile(each.path, each.size, int((each.mtime_ns or 0) // 1_000_000))
        for each in found
        if each.type == pafs.FileType.File and not each.base_name.startswith((".", "_"))
    ]
    wanted = [file for file in files if info.type == pafs.FileType.File or format_of(file.path) == kind]
    if not wanted:
        raise NotFound(f"there are no {kind} files in {path}", path=path)
    return sorted(wanted, key=lambda file: file.path)


def format_of(path: str) -> str:
    """The format that a name's end tells; "" when it tells none."""
    names = path.removesuffix(".gz").rsplit(".", 1)
    return _SUFFIXES.get(names[-1].lower(), "") if len(names) > 1 else ""


def job_name(topic: str, files: list[InputFile], columns: Mapped) -> str:
    """A name that the same job has again: it is made of what goes where."""
    told = msgspec.json.encode([topic, files, columns])
    return f"import-{sha256(told).hexdigest()[:_JOB_HEX]}"


def parts_of(files: list[InputFile], part_bytes: int) -> Iterator[list[InputFile]]:
    """Files in order, so many together that they make a part."""
    part: list[InputFile] = []
    for file in files:
        if part and sum(each.size_bytes for each in part) + file.size_bytes > part_bytes:
            yield part
            part = []
        part.append(file)
    if part:
        yield part


def load(
    spark: SparkSession,
    path: str,
    topic: str,
    *,
    url: str = "",
    key: str = "",
    kind: str = "",
    columns: Mapped | None = None,
    job_id: str = "",
    on_progress: Callable[[int, int], None] = lambda done_bytes, total_bytes: None,
) -> Loaded:
    """Append what is in files to a topic, which is made if it is not there."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    kind = kind or format_of(path)
    if kind not in FORMATS:
        expected = ", ".join(FORMATS)
        raise InvalidRequest(
            f"which format is {path}? --format is one of {expected}", field="format", value=kind, expected=expected
        )
    mapped = columns or Mapped()
    files = find_files(path, kind)
    job = job_id or job_name(topic, files, mapped)
    spark.dataSource.register(preset_source(url=url, key=key))
    total_bytes, done_bytes, row_count = sum(file.size_bytes for file in files), 0, 0
    for number, part in enumerate(parts_of(files, PART_BYTES[kind])):
        seen = Observation()
        rows = _records(_read(spark, kind, [file.path for file in part]), mapped)
        counted = rows.observe(seen, count(lit(1)).alias("count"))
        writer = counted.write.format(FORMAT).mode("append").option("topic", topic)
        writer.option("jobId", f"{job}:{number}").save()
        row_count += int(seen.get["count"])
        done_bytes += sum(file.size_bytes for file in part)
        on_progress(done_bytes, total_bytes)
    return Loaded(topic, job, len(files), row_count)


def _read(spark: SparkSession, kind: str, paths: list[str]) -> DataFrame:
    if kind == "csv":
        return spark.read.option("header", "true").option("inferSchema", "true").csv(paths)
    return spark.read.json(paths) if kind == "json" else spark.read.parquet(*paths)


def _records(rows: DataFrame, mapped: Mapped) -> DataFrame:
    """The columns of a write, out of those of a file."""
    from pyspark.sql.functions import col, monotonically_increasing_id, struct

    named = {name: getattr(mapped, name) for name in Mapped.__struct_fields__ if getattr(mapped, name)}
    missing = sorted(set(named.values()) - set(rows.columns))
    if missing:
        raise InvalidRequest(
            f"there is no column {', '.join(missing)}; there are {', '.join(rows.columns)}",
            field=missing[0],
            expected=rows.columns,
        )
    chosen = [] if mapped.data else [struct(*[col(f"`{name}`") for name in rows.columns]).alias("data")]
    for name, column in named.items():
        kind = {"partition": "int", "data": None}.get(name, "string")
        found = col(f"`{column}`")
        chosen.append((found.cast(kind) if kind else found).alias(name))
    # Spark reads large pieces of files first. Within a piece the ids go up, so this is the order of the files again.
    place = [col("_metadata.file_path").alias("_file"), col("_metadata.file_block_start").alias("_start")]
    placed = rows.select(*chosen, *place, monotonically_increasing_id().alias("_at"))
    return placed.orderBy("_file", "_start", "_at").drop("_file", "_start", "_at")
