"""`format("topics_changes")`: what happens to a table, as a stream of changes.

    op string, before struct<…>, after struct<…>, position string, ts bigint

Of a Delta table or files `before` and `after` are rows. Of a database they are the JSON text that its triggers wrote;
`changes` makes rows of it. `position` names a change within its table for good, `ts` is when it was committed, in
milliseconds. Order within a batch is that of the changes.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import cached_property
from typing import ClassVar, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from topics.spark.pipeline.changeoptions import ChangeOptions, parse_change_options
from topics.spark.pipeline.deltareader import DeltaChangeReader, change_schema, delta_schema
from topics.spark.pipeline.filereader import FileReader, file_row
from topics.spark.pipeline.outboxreader import SCHEMA, OutboxReader

FORMAT: Final = "topics_changes"


class ChangesSource(DataSource):
    """Options go before what `preset` says. A location with a password in it belongs into the preset."""

    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @cached_property
    def _options(self) -> ChangeOptions:
        return parse_change_options(self.options, self.preset)

    def schema(self) -> StructType | str:
        options = self._options
        if options.format.is_database:
            return SCHEMA
        if not options.format.is_files:
            return delta_schema(options)
        if options.columns:
            row = f"struct<{options.columns}>"
            return f"op string, before {row}, after {row}, position string, ts bigint"
        return change_schema(from_arrow_schema(file_row(options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self._options
        if options.format.is_database:
            return OutboxReader(options)
        return FileReader(options, schema) if options.format.is_files else DeltaChangeReader(options, schema)


def preset_changes(name: str = FORMAT, **preset: str) -> type[ChangesSource]:
    """A source under a name, with options that are in no plan."""
    given = dict(preset)

    class PresetChanges(ChangesSource):
        preset: ClassVar[Mapping[str, str]] = given

        @classmethod
        def name(cls) -> str:
            return name

    return PresetChanges
