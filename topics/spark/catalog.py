"""Topics as tables of a session: `topics.orders` in SQL, in `spark.table` and in `readStream.table`.

A table remembers the name of its source and nothing else, so each topic has a source of its own, a class that knows the
address, the key and the topic. Names of tables are narrower than names of topics: what is not a letter, a digit or `_`
becomes `_`, and two topics that would be called the same are refused by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topics.errors import Conflict
from topics.spark.source import preset_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STRANGE: Final = re.compile(r"[^A-Za-z0-9_]")


def table_name(topic: str) -> str:
    """What the table of a topic is called."""
    return _STRANGE.sub("_", topic).lower()


def named_tables(topics: list[str]) -> dict[str, str]:
    """Table to topic; `Conflict` when two topics would have the same table."""
    found: dict[str, str] = {}
    for topic in sorted(topics):
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
        spark.sql(f"CREATE DATABASE IF NOT EXISTS `{database}`")

    def show(self, topics: list[str]) -> None:
        """Have a table for each of these topics, and for no other."""
        wanted = named_tables(topics)
        shown = self._spark.sql(f"SHOW TABLES IN `{self._database}`").collect()
        # Views of the session are in every database.
        there = {row["tableName"] for row in shown if not row["isTemporary"]}
        for name in sorted(there - wanted.keys()):
            self._spark.sql(f"DROP TABLE IF EXISTS {self._path(name)}")
        for name, topic in wanted.items():
            if self.tables.get(name) == topic and name in there:
                continue
            # A table of an earlier session may be there, the source is not: it lives in a session.
            source = f"{self._database}__{name}"
            self._spark.dataSource.register(preset_source(source, **self._preset, topic=topic))
            if name not in there:
                self._spark.sql(f"CREATE TABLE {self._path(name)} USING {source}")
        self.tables = wanted

    def _path(self, name: str) -> str:
        return f"`{self._database}`.`{name}`"
