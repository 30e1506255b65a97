"""New files as a stream of inserts: the offset is how many files were read, in the order in which they were found.

    {"files": 12}

Which file is the twelfth is written down beside the checkpoint, once and for good, before its number is known to
anybody. So a file is read once, whatever its time or name, also one that was put into the directory late. Files are
found in the order of their times, then of their names; those whose names begin with `.` or `_` are not there yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.json as pajson
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from topics.errors import InvalidRequest, NotFound
from topics.spark.lakefile import file_system
from topics.spark.load import format_of
from topics.spark.pipeline.changeoptions import NOW, VERSION, ChangeOptions
from topics.spark.pipeline.spool import Spool
from topics.tablemodel import TableFormat

FILES_PER_TRIGGER: Final = 1000
_PREFIX: Final = "files-"
_DIGITS: Final = 12


class FoundFile(msgspec.Struct, frozen=True, order=True):
    """A file of the table; sorted by time, then by path."""

    modified_ms: int
    path: str
    size_bytes: int = 0


@dataclass(frozen=True)
class FilePart(InputPartition):
    number: int
    path: str
    modified_ms: int


class FileReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._end: int | None = None
        self._known: list[FoundFile] | None = None
        """All files that have a number, in the order of their numbers."""

    def initialOffset(self) -> dict[str, Any]:
        return {"files": max(0, self._options.start_version - 1) if self._options.start == VERSION else 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = len(self._look())

    def reportLatestOffset(self) -> dict[str, Any]:
        return {"files": len(self._look())}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        count = len(self._look())
        upto = count if self._end is None else min(count, self._end)
        return {"files": max(int(start["files"]), min(upto, int(start["files"]) + FILES_PER_TRIGGER))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        files = self._numbered()
        chosen = [(number, files[number]) for number in range(int(start["files"]), int(end["files"]))]
        since_ms = self._options.since_ms if self._options.start == NOW else 0
        return [
            FilePart(number, file.path, file.modified_ms) for number, file in chosen if file.modified_ms >= since_ms
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, FilePart)
        wanted = to_arrow_schema(self._schema, timezone="UTC")
        row = wanted.field("after").type
        at = 0
        for batch in read_rows(self._options, partition.path, pa.schema(list(row))):
            count = batch.num_rows
            after = pa.StructArray.from_arrays([batch.column(each.name) for each in row], fields=list(row))
            numbers = pa.array(np.arange(at, at + count)).cast(pa.string())
            name = quote(partition.path.rsplit("/", 1)[-1])
            columns = {
                "op": pa.repeat(pa.scalar("insert"), count),
                "before": pa.nulls(count, row),
                "after": after,
                "position": pc.binary_join_element_wise(f"f{partition.number}.{name}.", numbers, ""),
                "ts": pa.repeat(pa.scalar(partition.modified_ms, pa.int64()), count),
            }
            yield pa.RecordBatch.from_arrays([columns[name] for name in wanted.names], schema=wanted)
            at += count

    def _numbered(self) -> list[FoundFile]:
        if self._known is None:
            spool = Spool(self._options.spool)
            pages = [msgspec.json.decode(spool.read(name), type=list[FoundFile]) for name in spool.names(_PREFIX)]
            self._known = [file for page in pages for file in page]
        return self._known

    def _look(self) -> list[FoundFile]:
        """Give numbers to files that have none yet."""
        known = self._numbered()
        paths = {file.path for file in known}
        new = sorted(file for file in find(self._options) if file.path not in paths)
        if new:
            Spool(self._options.spool).write(f"{_PREFIX}{len(known):0{_DIGITS}}.json", msgspec.json.encode(new))
            known += new
        return known


def find(options: ChangeOptions) -> list[FoundFile]:
    """The files that are there."""
    fs, base = file_system(options.location)
    info = fs.get_file_info(base)
    if info.type != pafs.FileType.Directory:
        raise NotFound(f'there is no directory {options.location}, where table "{options.table}" is registered')
    found = fs.get_file_info(pafs.FileSelector(base, recursive=True))
    return [
        FoundFile(int((each.mtime_ns or 0) // 1_000_000), each.path, each.size)
        for each in found
        if each.type == pafs.FileType.File
        and not any(part.startswith((".", "_")) for part in each.path[len(base) :].strip("/").split("/"))
        and format_of(each.path) == options.format.value
    ]


def read_rows(options: ChangeOptions, path: str, row: Any) -> Iterator[Any]:
    """The rows of one file, in batches with exactly these columns."""
    fs, _ = file_system(options.location)
    try:
        if options.format is TableFormat.PARQUET:
            there = pads.dataset(path, filesystem=fs, format="parquet").to_batches()
        elif options.format is TableFormat.JSON:
            with fs.open_input_stream(path) as source:
                table = pajson.read_json(
                    source, parse_options=pajson.ParseOptions(explicit_schema=row, unexpected_field_behavior="ignore")
                )
            there = table.to_batches()
        else:
            there = _csv(options, fs, path, row)
        for batch in there:
            arrays = [
                batch.column(each.name).cast(each.type)
                if each.name in batch.schema.names
                else pa.nulls(batch.num_rows, each.type)
                for each in row
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=row)
    except pa.ArrowException as error:
        raise InvalidRequest(
            f'file {path} does not fit the columns of table "{options.table}": {error}; mend or remove it, or '
            "register the table with other columns",
            path=path,
        ) from error


def _csv(options: ChangeOptions, fs: Any, path: str, row: Any) -> Iterator[Any]:
    names = None if options.header else row.names
    with fs.open_input_stream(path) as source:
        yield from pacsv.open_csv(
            source,
            read_options=pacsv.ReadOptions(column_names=names),
            parse_options=pacsv.ParseOptions(delimiter=options.separator),
            convert_options=pacsv.ConvertOptions(
                column_types=row, strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )


def file_row(options: ChangeOptions) -> Any:
    """The columns of the first file, for whoever was told none."""
    there = sorted(find(options))
    if not there:
        raise InvalidRequest(
            f"table \"{options.table}\" has no files yet and no columns: register it with COLUMNS ('id bigint, …')",
            expected="COLUMNS ('ddl')",
        )
    fs, _ = file_system(options.location)
    path = there[0].path
    if options.format is TableFormat.PARQUET:
        return pads.dataset(path, filesystem=fs, format="parquet").schema
    with fs.open_input_stream(path) as source:
        if options.format is TableFormat.JSON:
            return pajson.read_json(source).schema
        return pacsv.open_csv(source, parse_options=pacsv.ParseOptions(delimiter=options.separator)).schema
