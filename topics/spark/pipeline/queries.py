"""How a definition becomes running queries: sources and sinks that know the server, checkpoints, triggers.

Addresses, keys and passwords travel inside the classes of sources and sinks, pickled: they are in no plan, no page of
the UI and no log.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import environ
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from topics.errors import InvalidRequest
from topics.pipelinemodel import PipelineConfig, PipelineKind, PipelineOptions, PipelineState, PipelineStream
from topics.spark.pipeline.changes import open_changes
from topics.spark.pipeline.checkpoints import checkpoint_of
from topics.spark.pipeline.flows import as_records, open_stream, query, read_table
from topics.spark.pipeline.locations import Locations
from topics.spark.pipeline.mergesource import FORMAT as ROWS
from topics.spark.pipeline.mergesource import RowSink
from topics.spark.pipeline.mergetable import RowTable
from topics.spark.pipeline.progress import Progress
from topics.spark.pipeline.routes import routed
from topics.spark.pipeline.rowflows import GONE, as_rows, refuse_without_columns
from topics.spark.pipeline.spool import Spool
from topics.spark.pipeline.strands import Strand, strands_of
from topics.spark.source import preset_source
from topics.sql.sparktext import to_spark
from topics.tablemodel import TableConfig, TableRoute, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from pyspark.sql.types import StructType

_MEMBERS: Final = "members.json"
SERVER: Final = "topics_of_pipelines"
"""The format of topics in this session, with address and key inside."""


@dataclass
class Running:
    """A query that was begun, and what is known of it."""

    name: str
    query: StreamingQuery
    routes: tuple[TableRoute, ...] = ()
    progress: Progress = field(default_factory=Progress)


class Queries:
    """Begins queries in one session."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        url: str,
        key: str,
        checkpoints: str,
        available_now: bool,
        table_of: Callable[[str], TableState],
        locations: Sequence[str] = (),
    ) -> None:
        self._spark = spark
        self._locations = Locations(locations)
        self._checkpoints = checkpoints
        self._available_now = available_now
        self._table_of = table_of
        spark.dataSource.register(preset_source(SERVER, url=url, key=key))
        spark.dataSource.register(RowSink)

    @property
    def ui(self) -> str | None:
        """Where Spark shows what it does."""
        from pyspark.errors import PySparkException

        try:
            return self._spark.sparkContext.uiWebUrl
        except PySparkException:
            return None

    def begin(self, state: PipelineState) -> list[Running]:
        """Begin what a pipeline needs, each query at the position it had."""
        if state.kind is PipelineKind.ROUTES:
            assert state.table is not None
            table = self._table_of(state.table)
            begun: list[Running] = []
            try:
                for strand in strands_of(table.routes, partial(self._members, checkpoint_of(self._checkpoints, state))):
                    begun.append(self._strand(state, table, strand))
            except BaseException:
                for running in begun:
                    running.query.stop()
                raise
            return begun
        assert state.config is not None
        return [self._pipeline(state, state.config)]

    def _location_of(self, config: TableConfig) -> str:
        location = location_of(config)
        self._locations.check(location, "location")
        return location

    def _members(self, root: str, strand: str, numbers: frozenset[int]) -> frozenset[int]:
        """The routes that a strand was begun with, noted before it is."""
        spool = Spool(f"{root}/{strand}/topics")
        if _MEMBERS in spool.names():
            return frozenset(msgspec.json.decode(spool.read(_MEMBERS), type=list[int]))
        spool.write(_MEMBERS, msgspec.json.encode(sorted(numbers)))
        return numbers

    def _strand(self, state: PipelineState, table: TableState, strand: Strand) -> Running:
        place = f"{checkpoint_of(self._checkpoints, state)}/{strand.name}"
        source = f"topics_changes_{state.number}_{_identifier(strand.name)}"
        changes, described = open_changes(
            self._spark, source, table, self._location_of(table.config), strand, f"{place}/topics"
        )
        routes = [_for_spark(route) for route in strand.routes]
        records = routed(changes, described, routes)
        writer = self._writer(records, PipelineOptions(), f"{state.pipeline} {strand.name}", place).format(SERVER)
        return Running(strand.name, writer.start(), strand.routes)

    def _pipeline(self, state: PipelineState, config: PipelineConfig) -> Running:
        for said, location in (("path", config.path), ("checkpoint", config.options.checkpoint)):
            if location:
                self._locations.check(location, said)
        place = config.options.checkpoint or checkpoint_of(self._checkpoints, state)
        rows = self._rows(state, config)
        name = state.pipeline
        if config.kind is PipelineKind.INSERT:
            records = as_records(rows, config.partition_by)
            writer = self._writer(records, config.options, name, place).format(SERVER).option("topic", config.topic)
            return Running(name, writer.start())
        writer = (
            self._writer(rows, config.options, name, place)
            .format(ROWS)
            .option("location", config.path)
            .option("key", ",".join(config.key))
            .option("spool", f"{place}/topics")
        )
        return Running(name, writer.start())

    def _rows(self, state: PipelineState, config: PipelineConfig) -> DataFrame:
        """What is to be written, before it has the shape of a record."""

        def stream_of(stream: PipelineStream) -> DataFrame:
            return open_stream(self._spark, SERVER, stream, config.options, state.created_ts)

        def table_of(name: str) -> DataFrame:
            found = self._table_of(name).config
            source = f"topics_table_{state.number}_{_identifier(name)}"
            return read_table(self._spark, source, name, found, self._location_of(found))

        if config.sql:
            rows = query(self._spark, config, stream_of, table_of)
            if config.kind is PipelineKind.MERGE and config.delete_when:
                return rows.selectExpr("*", f"coalesce(({config.delete_when}), false) AS {GONE}")
            return rows
        (stream,) = config.streams
        records = stream_of(stream)
        merges = config.kind is PipelineKind.MERGE
        columns = self._columns(state.pipeline, config, stream)
        return as_rows(records, columns, where=config.where, gone_when=config.delete_when, merges=merges)

    def _columns(self, pipeline: str, config: PipelineConfig, stream: PipelineStream) -> StructType:
        """The columns of the rows: as declared, or as the table has them already."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructType

        if stream.schema:
            found = self._spark.createDataFrame([], stream.schema).schema
            assert isinstance(found, StructType)
            return found
        there = RowTable(config.path).columns()
        if there is None:
            raise refuse_without_columns(pipeline, stream.topic)
        return from_arrow_schema(there)

    def _writer(self, frame: DataFrame, options: PipelineOptions, name: str, place: str) -> DataStreamWriter:
        writer = frame.writeStream.queryName(name).outputMode(options.output_mode).option("checkpointLocation", place)
        if self._available_now:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=f"{options.trigger_ms} milliseconds")


def location_of(config: TableConfig) -> str:
    """Where a table is, as this process knows it."""
    if not config.location_env:
        return config.location
    found = environ.get(config.location_env, "")
    if not found:
        raise InvalidRequest(
            f"the environment variable {config.location_env}, which says where the table is, is not set for "
            "this runner",
            field="location_env",
            expected=config.location_env,
        )
    return found


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _for_spark(route: TableRoute) -> TableRoute:
    """A route whose expressions are Spark's text."""
    return replace(
        route,
        where=None if route.where is None else to_spark(route.where),
        partition_by=None if route.partition_by is None else to_spark(route.partition_by),
    )
