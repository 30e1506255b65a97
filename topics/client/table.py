"""One registered table, as a program uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, Literal

import msgspec

from topics.client.catalogtransport import CatalogTransport
from topics.tablemodel import TableColumn, TableDropped, TableFormat, TableState

TABLES_PAGE: Final = 100
"""Tables asked for at once."""

FormatName = TableFormat | Literal["delta", "postgresql", "sqlite", "parquet", "json", "csv"]


class Table:
    """A registered table by its name. Making this object touches nothing."""

    def __init__(self, transport: CatalogTransport, name: str) -> None:
        self._transport = transport
        self._name = name

    def __repr__(self) -> str:
        return f"<Table {self._name}>"

    @property
    def name(self) -> str:
        """The name that it is registered under."""
        return self._name

    async def put(
        self,
        format: FormatName,
        location: str = "",
        *,
        key: Iterable[str] = (),
        location_env: str = "",
        source: str = "",
        columns: Iterable[TableColumn] = (),
        options: Mapping[str, str] | None = None,
    ) -> TableState:
        """Register the table under its name; one that is registered has this config from now on.

            await client.table("chat.messages").put("delta", "/data/messages", key=["id"])
            await client.table("chat.users").put("postgresql", location_env="PG_DSN", key=["id"], source="public.users")

        `key` names the columns that identify a row; only files may have none. A location with a password in it is
        refused: put it into an environment variable of the runner, and name that in `location_env`. With `columns`
        expressions of routes are checked when they are declared. `options` say how Spark reads files.
        """
        fields = {
            "format": str(format),
            "location": location,
            "location_env": location_env,
            "source": source,
            "key": list(key),
            "columns": [msgspec.to_builtins(column) for column in columns],
            "options": dict(options or {}),
        }
        return await self._transport.put_table(self._name, fields)

    async def state(self) -> TableState:
        """How it is registered, and its routes."""
        return await self._transport.table(self._name)

    async def drop(self) -> TableDropped:
        """Forget the name; the table itself is not touched. `TableInUse` while routes or pipelines read it."""
        return await self._transport.drop_table(self._name)


async def every_table(transport: CatalogTransport, prefix: str) -> AsyncIterator[TableState]:
    """Tables in order of their names, one page after the other."""
    after = ""
    while True:
        found = await transport.tables(prefix=prefix, after=after, limit=TABLES_PAGE)
        for state in found:
            yield state
        if len(found) < TABLES_PAGE:
            return
        after = found[-1].table
