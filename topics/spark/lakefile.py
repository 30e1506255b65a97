"""Parquet files of a lake: written by tasks, named in one commit afterwards.

A task sorts nothing and keeps little: rows come in batches, each is split by directory, and what goes into one
directory is gathered until it makes a file. What a file is called has a random part, so that an attempt that is
repeated never meets the file of another; files that no commit names are swept by `vacuum`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from topics.clock import SystemClock
from topics.spark.lakecolumns import SCHEMA, STATISTICS, stored_schema

FILE_BYTES_MAX: Final = 128 << 20
COMPRESSION: Final = "zstd"
_DIRECTORY_SAFE: Final = " "
"""Beside letters, digits and `_.-~`: what Spark leaves as it is in the name of a directory."""


class LakeFile(msgspec.Struct, frozen=True):
    """A Parquet file that no commit names yet."""

    path: str
    """Below the root of the lake."""
    size_bytes: int
    modified_ms: int
    partition_values: dict[str, str]
    statistics: str
    row_count: int


class Place(NamedTuple):
    """One partition of one life of a topic."""

    topic: str
    epoch: int
    partition: int


@dataclass(frozen=True)
class StoredFile:
    """A file that the table names."""

    path: str
    size_bytes: int
    row_count: int
    partition_values: dict[str, str]
    first_seq: int
    last_seq: int


@dataclass
class _Pile:
    """Rows for one directory that are not in a file yet."""

    tables: list[Any] = field(default_factory=list)
    size_bytes: int = 0


def file_system(root: str) -> tuple[Any, str]:
    """Where a lake is: a file system, and the path on it."""
    found: tuple[Any, str] = pafs.FileSystem.from_uri(root) if "://" in root else (pafs.LocalFileSystem(), root)
    return found


def write_files(root: str, layout: tuple[str, ...], batches: Iterable[Any]) -> Iterator[LakeFile]:
    """Write rows of `SCHEMA` into files of their directories; each is told when it is complete."""
    piles: dict[tuple[str, ...], _Pile] = {}
    for batch in batches:
        table = pa.Table.from_batches([batch]).select(SCHEMA.names).cast(SCHEMA)
        for place, rows in _split(table, layout):
            pile = piles.setdefault(place, _Pile())
            pile.tables.append(rows)
            pile.size_bytes += rows.nbytes
            if pile.size_bytes >= FILE_BYTES_MAX:
                yield write_file(root, layout, pa.concat_tables(piles.pop(place).tables))
    for pile in piles.values():
        yield write_file(root, layout, pa.concat_tables(pile.tables))


def _split(table: Any, layout: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The rows of each directory, in their order."""
    if not table.num_rows:
        return
    for place in table.select(layout).group_by(layout).aggregate([]).to_pylist():
        values = tuple(str(place[name]) for name in layout)
        chosen = True
        for name, value in zip(layout, values, strict=True):
            chosen = pc.and_(chosen, pc.equal(table[name], value))
        yield values, table.filter(chosen)


def write_file(root: str, layout: tuple[str, ...], table: Any) -> LakeFile:
    """One file of rows that belong into the same directory."""
    return _write(root, layout, {name: table[name][0].as_py() for name in layout}, [table])


def join_files(root: str, layout: tuple[str, ...], files: Sequence[StoredFile]) -> LakeFile:
    """One file with the rows of several of one directory, in their order; one of them at a time is in memory."""
    values = files[0].partition_values
    return _write(root, layout, values, (read_file(root, file.path, values) for file in files))


def _write(root: str, layout: tuple[str, ...], values: dict[str, str], tables: Iterable[Any]) -> LakeFile:
    fs, base = file_system(root)
    directory = "/".join(f"{name}={quote(value, _DIRECTORY_SAFE)}" for name, value in values.items())
    path = f"{directory}/part-{uuid4().hex}.parquet"
    fs.create_dir(f"{base}/{directory}", recursive=True)
    schema = stored_schema(layout)
    counted = []
    try:
        with (
            fs.open_output_stream(f"{base}/{path}") as sink,
            pq.ParquetWriter(sink, schema, compression=COMPRESSION) as writer,
        ):
            for table in tables:
                writer.write_table(table.select(schema.names))
                counted.append(table.select(STATISTICS))
    except BaseException:
        delete_file(root, path)
        raise
    counts = pa.concat_tables(counted)
    info = fs.get_file_info(f"{base}/{path}")
    return LakeFile(path, info.size, SystemClock().now_ms(), values, _statistics(counts), counts.num_rows)


def read_file(root: str, path: str, values: Mapping[str, str]) -> Any:
    """The rows of a file, with what its directories say, as a table of `SCHEMA`."""
    fs, base = file_system(root)
    with fs.open_input_file(f"{base}/{path}") as source:
        stored = pq.read_table(source)
    for name, value in values.items():
        stored = stored.append_column(name, pa.array([value] * stored.num_rows, pa.string()))
    return stored.select(SCHEMA.names).cast(SCHEMA)


def delete_file(root: str, path: str) -> bool:
    """Whether there was such a file."""
    fs, base = file_system(root)
    if fs.get_file_info(f"{base}/{path}").type != pafs.FileType.File:
        return False
    fs.delete_file(f"{base}/{path}")
    return True


def _statistics(table: Any) -> str:
    bounds: dict[str, dict[str, Any]] = {"minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in STATISTICS:
        column = table[name]
        found = pc.min_max(column)
        for kind, place in (("min", "minValues"), ("max", "maxValues")):
            value = found[kind].as_py()
            if value is not None:
                bounds[place][name] = value if isinstance(value, int) else value.isoformat(timespec="milliseconds")
        bounds["nullCount"][name] = column.null_count
    return json.dumps({"numRecords": table.num_rows, **bounds})
