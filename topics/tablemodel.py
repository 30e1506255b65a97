"""The values of registered tables that users see: where a table is, what identifies a row, which columns it has.

Field names are those of the `/v0` wire. The engine stores what a table is called and where it is, never what is in it;
whoever reads it is a runner of pipelines. See docs/PIPELINES.md.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class TableFormat(StrEnum):
    """What a table is made of, and with that how its changes are found."""

    DELTA = "delta"
    """A Delta table with change data feed."""
    POSTGRESQL = "postgresql"
    """A table of PostgreSQL whose changes `topics cdc install` keeps in an outbox."""
    SQLITE = "sqlite"
    """The same of SQLite."""
    PARQUET = "parquet"
    """A directory of Parquet files; a new file is new rows."""
    JSON = "json"
    """A directory of files with a JSON object a line; a new file is new rows."""
    CSV = "csv"
    """A directory of CSV files; a new file is new rows."""

    @property
    def is_database(self) -> bool:
        """Its changes are read out of an outbox."""
        return self in (TableFormat.POSTGRESQL, TableFormat.SQLITE)

    @property
    def is_files(self) -> bool:
        """It only ever gets rows, by new files."""
        return self in (TableFormat.PARQUET, TableFormat.JSON, TableFormat.CSV)


class TableColumn(msgspec.Struct, frozen=True):
    """One column. Its type is in the words of Spark: `bigint`, `string`, `struct<a:int>`."""

    name: str
    type: str
    nullable: bool = True


class TableConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a table. Stored as a map by field name; a new field needs a default."""

    format: TableFormat
    location: str = ""
    """A path or an address without a password. Empty when `location_env` says it."""
    location_env: str = ""
    """The environment variable of the runner that holds the location, for one with a secret in it."""
    source: str = ""
    """What the database itself calls the table, such as `public.messages`; empty is the registered name."""
    key: tuple[str, ...] = ()
    """The columns that identify a row. Only files may have none."""
    columns: tuple[TableColumn, ...] = ()
    """As they were when somebody last looked; empty when nobody has. Expressions are checked against them."""
    options: dict[str, str] = {}
    """How Spark reads files: `header`, `sep`, `multiLine`, …"""


class TableRoute(msgspec.Struct, frozen=True, kw_only=True):
    """One route out of a table: which changes become records of which topic, and from where on."""

    topic: str
    operation: str
    """`insert`, `update` or `delete`."""
    payload: str
    """`key`, `full` or `diff`."""
    where: str | None = None
    partition_by: str | None = None
    start: str = "now"
    """`now`, `snapshot` or `version`."""
    start_version: int = 0
    """With `version`: the first that counts."""
    declared_ms: int = 0
    """`now` is this moment: changes that were committed later count."""
    number: int = 0
    """No other route ever had it. One that is changed keeps it, and its position, unless FROM says where to begin."""


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """A registered table as it is now."""

    table: str
    config: TableConfig
    created: bool = False
    """Whether this call registered it."""
    created_ts: int
    changed_ts: int
    routes: tuple[TableRoute, ...] = ()


class TableDropped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to unregistering a table; `deleted` is false when there was none."""

    table: str
    deleted: bool
