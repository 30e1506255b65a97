"""Topics as tables of a session: `topics.orders` in SQL, in `spark.table` and in `readStream.table`.

A table remembers the name of its source and nothing else, so each topic has a source of its own, a class that knows the
address, the key and the topic. Names of tables are narrower than names of topics: what is not a letter, a digit or `_`
becomes `_`, and two topics that would be called the same are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from topics.errors import Conflict
from topics.spark.source import preset_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS: Final = "Tables of a topics server; topics.spark.connect makes and drops them."
"""What a database says of itself that was made here."""
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_]")


def table_name(topic: str) -> str:
    """What the table of a topic is called."""
    return _STRANGE.sub("_", topic).lower()


def named_tables(topics: Iterable[str]) -> dict[str, str]:
    """Table to topic; `Conflict` when two topics would have the same table."""
    found: dict[str, str] = {}
    for topic in sorted(set(topics)):
        name = table_name(topic)
        if name in found:
            raise Conflict(
                f'topics "{found[name]}" and "{topic}" would both be the table {name}: '
                "name those you want with topics=[…], or read one with format('topics')",
                topics=[found[name], topic],
            )
        found[name] = topic
    return found


class Catalog:
    """The tables of one server in one session."""

    def __init__(self, spark: SparkSession, database: str, preset: dict[str, str]) -> None:
        self._spark = spark
        self._database = database
        self._preset = preset
        self.tables: dict[str, str] = {}
        """Table to topic, as they are now."""
        have_database(spark, database, "database")

    def show(self, topics: Iterable[str]) -> None:
        """Have a table for each of these topics, and for no other."""
        wanted = named_tables(topics)
        there = tables_in(self._spark, self._database)
        for name in sorted(there - wanted.keys()):
            self._spark.sql(f"DROP TABLE IF EXISTS {self._path(name)}")
        for name, topic in wanted.items():
            if self.tables.get(name) == topic and name in there:
                continue
            # A table of an earlier session may be there, the source is not: it lives in a session.
            self._spark.dataSource.register(preset_source(self._source(name), **self._preset, topic=topic))
            if name not in there:
                self._spark.sql(f"CREATE TABLE {self._path(name)} USING {self._source(name)}")
        self.tables = wanted

    def drop(self) -> None:
        """Have none of them any more, nor sources that know a key."""
        names = list(self.tables)
        self.show([])
        for name in names:
            self._spark.dataSource.register(preset_source(self._source(name)))
        drop_if_empty(self._spark, self._database)

    def _source(self, name: str) -> str:
        return f"{self._database}__{name}"

    def _path(self, name: str) -> str:
        return f"`{self._database}`.`{name}`"


def have_database(spark: SparkSession, database: str, parameter: str) -> None:
    """Make a database for tables of ours, unless it is there. Somebody else's is refused: we would drop its tables."""
    if not spark.catalog.databaseExists(database):
        spark.sql(f"CREATE DATABASE `{database}` COMMENT '{OURS}'")
    elif spark.catalog.getDatabase(database).description != OURS:
        raise Conflict(
            f'the session has a database "{database}" that was not made for topics: name another one with '
            f'connect(…, {parameter}="…")',
            database=database,
        )


def tables_in(spark: SparkSession, database: str) -> set[str]:
    """The tables of a database, which need not be there. Views of the session are in every one, and do not count."""
    if not spark.catalog.databaseExists(database):
        return set()
    shown = spark.sql(f"SHOW TABLES IN `{database}`").collect()
    return {row["tableName"] for row in shown if not row["isTemporary"]}


def drop_if_empty(spark: SparkSession, database: str) -> None:
    """A database with tables of somebody else's stays."""
    if not tables_in(spark, database):
        spark.sql(f"DROP DATABASE IF EXISTS `{database}`")
