"""The query of a pipeline over topics: its streams and tables as views, and what comes out as rows to be written.

A pipeline that INSERTs has columns of its own, which become an object, or the columns of a write when one is called
`data`. A MERGE or APPEND without a query takes the records themselves as rows, see rowflows.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from topics.errors import InvalidRequest
from topics.pipelinemodel import PipelineConfig, PipelineOptions, PipelineStream
from topics.spark.pipeline.changes import change_preset
from topics.spark.pipeline.payloads import spread_text
from topics.spark.pipeline.tablesource import preset_table
from topics.sql.sparktext import spark_name as quoted
from topics.sql.streamcolumns import EVENT_TIME
from topics.tablemodel import TableConfig

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MISFITS: Final = "misfits:"
"""Observed of each stream with a schema: records that do not fit it."""
_COLUMN: Final = re.compile(r"`?(\w+)`?")
_WRITTEN: Final = ("topic", "partition", "key", "tag", "node", "meta", "data", "delay_ms", "not_before", "priority")


def open_stream(
    spark: SparkSession, source: str, stream: PipelineStream, options: PipelineOptions, created_ms: int
) -> DataFrame:
    """A topic as a stream, with its watermark. `source` is a format that knows the server."""
    from pyspark.sql.functions import count_if, expr

    reader = spark.readStream.format(source).option("topic", stream.topic)
    if options.starting == "latest":
        # What is latest when a query begins would move while nothing comes; the moment of the declaration stays.
        reader = reader.option("startingTimestamp", created_ms)
    if options.max_records:
        reader = reader.option("maxRowsPerTrigger", options.max_records)
    if stream.schema:
        reader = reader.option("schema", stream.schema)
    frame = reader.load()
    if stream.schema:
        frame = frame.observe(MISFITS + stream.view, count_if(expr("_corrupt IS NOT NULL")).alias("count"))
    if not stream.watermark:
        return frame
    column = _COLUMN.fullmatch(stream.watermark.strip())
    if column is not None and column[1] in frame.columns:
        return frame.withWatermark(column[1], stream.delay)
    return frame.withColumn(EVENT_TIME, expr(stream.watermark)).withWatermark(EVENT_TIME, stream.delay)


def read_table(spark: SparkSession, name: str, table: str, config: TableConfig, location: str) -> DataFrame:
    """A registered table, as it is whenever it is read; `name` is that of a source that this session has then."""
    if config.format.is_database:
        raise InvalidRequest(
            f"a pipeline cannot join a table of {config.format}: lead it into a topic, and that by MERGE into a Delta "
            "table",
            expected="a Delta table or files",
        )
    spark.dataSource.register(preset_table(name, **change_preset(table, config, location)))
    return spark.read.format(name).load()


def query(
    spark: SparkSession,
    config: PipelineConfig,
    stream_of: Callable[[PipelineStream], DataFrame],
    table_of: Callable[[str], DataFrame],
) -> DataFrame:
    """What the SELECT of a pipeline gives, over views that only this session has."""
    for stream in config.streams:
        stream_of(stream).createOrReplaceTempView(stream.view)
    for table in config.tables:
        table_of(table.table).createOrReplaceTempView(table.view)
    return spark.sql(config.sql)


def as_records(rows: DataFrame, partition_by: str) -> DataFrame:
    """Rows as a topic takes them."""
    from pyspark.sql.functions import expr, struct
    from pyspark.sql.types import StructType

    spread = []
    if partition_by:
        kinds = rows.selectExpr(f"struct({partition_by}) AS it").schema["it"].dataType
        assert isinstance(kinds, StructType)
        spread = [expr(spread_text(partition_by, len(kinds))).alias("key")]
    if "data" in rows.columns:
        written = [name for name in rows.columns if name in _WRITTEN and not (spread and name == "key")]
        return rows.select(*written, *spread)
    return rows.select(struct(*[quoted(name) for name in rows.columns]).alias("data"), *spread)
