"""`format("topics")`: where Spark begins, for reading and writing, batch and stream.

Spark makes a `TopicsSource` out of the options of a reader or writer and asks it for the part it needs. The class is
pickled on its way to other processes, and so is what a session preset: `preset_source` makes a class that carries
options, which is registered under the usual name or one of its own. Presets do not appear in any plan, so that is how a
key travels.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from functools import cached_property
from typing import ClassVar, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from topics.errors import InvalidRequest
from topics.spark.columns import source_schema
from topics.spark.options import Options, parse_options
from topics.spark.reader import PushdownReader, TopicsReader
from topics.spark.server import Server
from topics.spark.sink import TopicsStreamWriter, TopicsWriter
from topics.spark.stream import TopicsStreamReader

FORMAT: Final = "topics"


class TopicsSource(DataSource):
    """A data source of topics. `options` go before what `preset` says, and that before the environment."""

    preset: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return FORMAT

    @cached_property
    def _options(self) -> Options:
        return parse_options(self.options, self.preset)

    def _server(self) -> Server:
        options = self._options
        return Server(options.url, options.key, options.timeout_ms)

    def schema(self) -> StructType | str:
        return source_schema(self._readable(), self._server())

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._readable()
        return (PushdownReader if options.pushdown else TopicsReader)(options, self._server(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return TopicsStreamReader(self._readable(), self._server(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        self._refuse_overwrite(overwrite)
        return TopicsWriter(self._options, self._server(), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        self._refuse_overwrite(overwrite)
        return TopicsStreamWriter(self._options, self._server(), schema)

    def _readable(self) -> Options:
        if not self._options.topics:
            raise InvalidRequest(
                "option topic is missing: which topics are to be read? Names, or prefixes with a * behind them",
                field="topic",
                expected="orders, or orders,payments, or orders.*",
            )
        return self._options

    def _refuse_overwrite(self, overwrite: bool) -> None:
        if overwrite:
            raise InvalidRequest(
                "a topic is only ever appended to: use mode('append'), of a stream outputMode('append'); what a stream "
                "aggregates can be appended when a watermark says that a window is over",
                field="mode",
                expected="append",
            )


def preset_source(name: str = FORMAT, **preset: str) -> type[TopicsSource]:
    """A source under a name, with options that its readers and writers need not say."""
    # A class of a function is pickled by value, with what it holds, where a class of a module would be its name only.
    given = dict(preset)

    class PresetSource(TopicsSource):
        preset: ClassVar[Mapping[str, str]] = given

        @classmethod
        def name(cls) -> str:
            return name

    return PresetSource
