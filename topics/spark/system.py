"""The system tables of a server as tables of a session: `SELECT * FROM system.groups`, and joins with any other table.

Each is a source of its own that asks the server when it is read, so that every query sees how things stand then.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from topics.spark.answers import arrow_type
from topics.spark.catalog import drop_if_empty, have_database, tables_in
from topics.spark.server import Server
from topics.spark.source import preset_source
from topics.sql.systemcolumns import NAMES, columns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE: Final = "system"


class SystemSource(DataSource):
    """One system table of one server."""

    table: ClassVar[str] = ""
    server: ClassVar[Server]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        return source_name(cls.table)

    def schema(self) -> StructType:
        return from_arrow_schema(_schema(self.table))

    def reader(self, schema: StructType) -> DataSourceReader:
        return SystemReader(self.table, self.server, schema)


class SystemReader(DataSourceReader):
    def __init__(self, table: str, server: Server, schema: StructType) -> None:
        self._table = table
        self._server = server
        self._schema = to_arrow_schema(schema, timezone="UTC")

    def read(self, partition: InputPartition) -> Iterator[Any]:
        found = self._server.query(f"SELECT * FROM {DATABASE}.{self._table}")
        columns = [
            found.column(field.name).cast(field.type)
            if field.name in found.column_names
            else pa.nulls(len(found), field.type)
            for field in self._schema
        ]
        yield from pa.Table.from_arrays(columns, schema=self._schema).to_batches()


def source_name(table: str) -> str:
    return f"topics_system__{table}"


class SystemCatalog:
    """The system tables of one server in one session."""

    def __init__(self, spark: SparkSession, database: str, server: Server) -> None:
        self._spark = spark
        self._database = database
        self._server = server

    def show(self) -> None:
        """Have a table for each."""
        have_database(self._spark, self._database, "system_database")
        there = tables_in(self._spark, self._database)
        for name in NAMES:
            self._spark.dataSource.register(_source(name, self._server))
            if name not in there:
                self._spark.sql(f"CREATE TABLE {self._path(name)} USING {source_name(name)}")

    def drop(self) -> None:
        """Have none of them any more, nor sources that know a key."""
        for name in NAMES:
            self._spark.sql(f"DROP TABLE IF EXISTS {self._path(name)}")
            self._spark.dataSource.register(preset_source(source_name(name)))
        drop_if_empty(self._spark, self._database)

    def _path(self, name: str) -> str:
        return f"`{self._database}`.`{name}`"


def _source(name: str, given: Server) -> type[SystemSource]:
    # A class of a function is pickled by value, with what it holds.
    class OneSystemSource(SystemSource):
        table: ClassVar[str] = name
        server: ClassVar[Server] = given

    return OneSystemSource


def _schema(table: str) -> Any:
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns_of(table)])
