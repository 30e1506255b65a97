"""History as Delta tables: all that there is to do with a lake, in one place.

    from topics.spark import lake

    lake.archive(spark, "/lake", "orders.*", url="http://localhost:4000")
    lake.read(spark, "/lake", "orders.eu").groupBy("date").count()
    lake.optimize("/lake")
    lake.vacuum("/lake", keep_days=365)
    lake.erase("/lake", "orders.eu", "user:7")

A lake is a standard Delta table, so whatever reads Delta reads it: Spark, Trino, DuckDB, Polars, pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topics.spark.archive import archive
from topics.spark.lakecare import LakeState, Optimized, TopicInLake, Vacuumed, optimize, state, vacuum
from topics.spark.lakecolumns import SCHEMA
from topics.spark.lakeerase import Receipt, erase
from topics.spark.laketable import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "Lake",
    "LakeState",
    "Optimized",
    "Receipt",
    "TopicInLake",
    "Vacuumed",
    "archive",
    "erase",
    "optimize",
    "read",
    "state",
    "vacuum",
]


def read(spark: SparkSession, location: str, topics: str | Sequence[str] | None = None) -> DataFrame:
    """A lake as it is now, of all topics or of some: Spark reads the files itself, at its own speed.

    For a topic with what is not archived yet, read it with `format("topics")` and the option `history`.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    lake = Lake.open(location)
    wanted = [topics] if isinstance(topics, str) else topics
    base = location.rstrip("/")
    paths = [f"{base}/{file.path}" for file in lake.files(wanted)]
    columns = from_arrow_schema(SCHEMA)
    if not paths:
        return spark.createDataFrame([], columns)
    rows = spark.read.schema(columns).option("basePath", base).parquet(*paths)
    return rows if wanted is None else rows.where(rows["topic"].isin(*wanted))
