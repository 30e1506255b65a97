"""Archiving topics to a lake, continuously or as much as there is now.

    archive(spark, "/lake", "orders.*", url=…, key=…, available_now=True)

The query's checkpoint is in the lake, under the archive's name. Two archives of one name cannot run at the same time,
and two names cannot archive the same topics into one lake: the second commit is refused, nothing is doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from topics.spark.lakefile import Place
from topics.spark.lakequery import FORMAT, preset_lake, report
from topics.spark.laketable import Lake
from topics.spark.options import parse_options
from topics.spark.ranges import partition_states
from topics.spark.server import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ARCHIVE: Final = "lake"
ROWS_PER_BATCH: Final = 2_000_000
EVERY_MS: Final = 10_000


def archive(
    spark: SparkSession,
    location: str,
    topics: str | Sequence[str] = "*",
    *,
    url: str = "",
    key: str = "",
    name: str = ARCHIVE,
    layout: str = "topic,date",
    available_now: bool = False,
    every_ms: int = EVERY_MS,
    rows_per_batch: int = ROWS_PER_BATCH,
) -> StreamingQuery:
    """Begin to archive: a query that runs until it is stopped, or until all there is now is in the lake."""
    wanted = topics if isinstance(topics, str) else ",".join(topics)
    preset = {"url": url, "key": key}
    options = parse_options({"topic": wanted}, preset)
    server = Server(options.url, options.key, options.timeout_ms)
    states = partition_states(options, server)
    # A server that is not there leaves no lake behind.
    lake = Lake.create(location, layout)
    # What was committed before a crash and not reported is reported now.
    known = {Place(state.topic, state.epoch, state.partition) for state in states}
    report(server, name, location, {place for place in known if lake.upto_seq(place)})
    server.close()
    spark.dataSource.register(preset_lake(url=options.url, key=options.key))
    stream = (
        spark.readStream.format(FORMAT)
        .option("location", location)
        .option("topic", wanted)
        .option("maxRowsPerTrigger", rows_per_batch)
        .load()
    )
    writer = (
        stream.writeStream.format(FORMAT)
        .queryName(f"archive {name}")
        .option("location", location)
        .option("archive", name)
        .option("checkpointLocation", f"{location.rstrip('/')}/_topics/{name}")
    )
    writer = (
        writer.trigger(availableNow=True)
        if available_now
        else writer.trigger(processingTime=f"{every_ms} milliseconds")
    )
    return writer.start()
