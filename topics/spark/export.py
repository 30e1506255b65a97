"""A topic as plain Parquet files, for whoever knows Parquet and no topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from topics.spark.source import FORMAT, preset_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Exported(msgspec.Struct, frozen=True):
    """What an export wrote."""

    path: str
    count: int


def export(
    spark: SparkSession,
    topics: str,
    path: str,
    *,
    url: str = "",
    key: str = "",
    options: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write what is in topics into a directory of Parquet files, which must not be there unless `overwrite`.

    `options` are those of `format("topics")`: ranges, tags, a schema for `data`, `history` for what is in a lake.
    """
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    spark.dataSource.register(preset_source(url=url, key=key))
    reader = spark.read.format(FORMAT).option("topic", topics)
    for name, value in (options or {}).items():
        reader = reader.option(name, value)
    seen = Observation()
    rows = reader.load().observe(seen, count(lit(1)).alias("count"))
    rows.write.mode("overwrite" if overwrite else "errorifexists").parquet(path)
    return Exported(path, int(seen.get["count"]))
