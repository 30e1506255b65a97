"""A registered table as it is now, for joins: read anew for each batch of a query that names it.

Spark's own readers look for files once, when a DataFrame is made. This one looks when its rows are needed, so a
pipeline that runs for weeks sees the table of today.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from topics.spark.pipeline.changeoptions import ChangeOptions, parse_change_options
from topics.spark.pipeline.deltachanges import open_table, read_snapshot, row_type
from topics.spark.pipeline.filereader import file_row, find, read_rows


class TableReader(DataSourceReader):
    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        # Spark plans a DataFrame once and keeps that, so a plan must not say which files there are.
        return [InputPartition(self._options.location)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        options, wanted = self._options, to_arrow_schema(self._schema, timezone="UTC")
        if options.format.is_files:
            for file in sorted(find(options)):
                yield from read_rows(options, file.path, wanted)
            return
        row = pa.struct(list(wanted))
        version = open_table(options.location, options.table).version()
        for batch in read_snapshot(options.location, options.table, version, row):
            yield pa.RecordBatch.from_arrays(batch.column("after").flatten(), schema=wanted)


class TableSource(DataSource):
    """Options are those of `format("topics_changes")`."""

    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @cached_property
    def _options(self) -> ChangeOptions:
        # Nothing is kept beside a table that is only looked at.
        return parse_change_options(self.options, {"spool": "none", **self.preset})

    def schema(self) -> StructType | str:
        options = self._options
        if not options.format.is_files:
            return from_arrow_schema(pa.schema(list(row_type(open_table(options.location, options.table)))))
        return options.columns or from_arrow_schema(file_row(options))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self._options, schema)


def preset_table(name: str, **preset: str) -> type[TableSource]:
    """A source under a name, with options that are in no plan."""
    given = dict(preset)

    class PresetTable(TableSource):
        preset: ClassVar[Mapping[str, str]] = given

        @classmethod
        def name(cls) -> str:
            return name

    return PresetTable
