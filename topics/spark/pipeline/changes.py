"""Changes of a registered table as a DataFrame with rows, whatever the table is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topics.spark.pipeline.changeoptions import parse_change_options
from topics.spark.pipeline.changesource import preset_changes
from topics.spark.pipeline.outboxreader import database_ddl
from topics.spark.pipeline.routes import CORRUPT, RoutedTable
from topics.spark.pipeline.strands import Strand
from topics.sql.sparktext import spark_name, spark_string
from topics.tablemodel import TableConfig, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTIONS: Final = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{CORRUPT}')"


def open_changes(
    spark: SparkSession, source: str, table: TableState, location: str, strand: Strand, spool: str
) -> tuple[DataFrame, RoutedTable]:
    """The changes of a table from where a strand begins, and what routes have to know of it."""
    from pyspark.sql.types import StructType

    config = table.config
    preset = {
        **change_preset(table.table, config, location),
        "start": strand.start,
        "startVersion": str(strand.start_version),
        "sinceMs": str(strand.since_ms),
        "spool": spool,
    }
    if config.format.is_database:
        preset["columns"] = database_ddl(parse_change_options(preset))
    spark.dataSource.register(preset_changes(source, **preset))
    changes = spark.readStream.format(source).load()
    if config.format.is_database:
        ddl = f"{preset['columns']}, {CORRUPT} string"
        changes = changes.selectExpr(
            "op", _parsed("before", ddl), _parsed("after", ddl), "position", "ts",
            "before AS before_text", "after AS after_text",
        )  # fmt: skip
    row = changes.schema["after"].dataType
    assert isinstance(row, StructType)
    names = tuple(field.name for field in row if field.name != CORRUPT)
    return changes, RoutedTable(table.table, config.key, names, config.format.is_database)


def change_preset(table: str, config: TableConfig, location: str) -> dict[str, str]:
    """What a source has to know of a table, as its options."""
    return {
        **config.options,
        "table": table,
        "tableFormat": config.format.value,
        "location": location,
        "source": config.source or table,
        "key": ",".join(config.key),
        "columns": ", ".join(f"{spark_name(each.name)} {each.type}" for each in config.columns),
    }


def _parsed(image: str, ddl: str) -> str:
    """The JSON of a row as a row, with what does not fit in a field of its own."""
    return f"from_json({image}, {spark_string(ddl)}, {_OPTIONS}) AS {image}"
