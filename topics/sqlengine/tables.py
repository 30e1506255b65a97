"""A table of the engine as DuckDB scans it: it names the columns and rows it needs, and only those are sent.

DuckDB takes a subclass of `pyarrow.dataset.Dataset` and calls its `scanner` each time it reads the table, with the
columns it wants and a filter that it does not apply itself. The filter is an opaque expression; a column whose name
does not occur in its text cannot be part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.dataset as ds

from topics.sqlengine.feed import Feed
from topics.sqlengine.querymessages import Open


class EngineTable(ds.Dataset):
    # The base class refuses to be instantiated, and holds nothing that is used here.
    def __init__(self, feed: Feed, index: int, schema: Any, from_us: int | None, to_us: int | None) -> None:
        self._feed = feed
        self._index = index
        self._schema = schema
        self._from_us = from_us
        self._to_us = to_us

    @property
    def schema(self) -> Any:
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> Any:
        import pyarrow as pa

        said = "" if filter is None else str(filter)
        names = self._schema.names
        wanted = [name for name in names if columns is None or name in columns or name in said]
        opening = Open(self._index, wanted, self._from_us, self._to_us)
        return ds.Scanner.from_batches(
            self._feed.scan(opening),
            schema=pa.schema([self._schema.field(name) for name in wanted]),
            columns=list(columns) if columns is not None else list(names),
            filter=filter,
            batch_readahead=2,
            use_threads=False,
        )
