"""A Delta table that a pipeline writes: one commit a batch, and each batch once.

A commit carries the query and the batch it belongs to, which Delta keeps in its log for good. A batch that comes again
after a crash finds itself there and changes nothing, also when somebody else has written to the table meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from topics.errors import InvalidRequest
from topics.spark.pipeline.rowflows import GONE

_QUERY: Final = "pipeline:"
_CONFIGURATION: Final = {"delta.enableChangeDataFeed": "true"}


class RowTable:
    """A table at a path or address."""

    def __init__(self, location: str, key: Sequence[str] = ()) -> None:
        self._location = location
        self._key = tuple(key)

    def columns(self) -> Any | None:
        """Its columns as an Arrow schema; None when there is no table."""
        try:
            return pa.schema(DeltaTable(self._location).schema().to_arrow())
        except TableNotFoundError:
            return None

    def commit(self, query_id: str, batch_id: int, rows: Any) -> bool:
        """Write the rows of a batch, a table in the order of its records; whether this call did it."""
        wanted = rows.drop_columns([GONE]) if GONE in rows.column_names else rows
        table = self._made(wanted.schema)
        done = table.transaction_version(_QUERY + query_id)
        if done is not None and int(done) >= batch_id:
            return False
        marks = CommitProperties(app_transactions=[Transaction(_QUERY + query_id, batch_id)])
        if self._key:
            self._merge(table, latest_rows(rows, self._key), marks)
        else:
            write_deltalake(table, wanted, mode="append", schema_mode="merge", commit_properties=marks)
        return True

    def _made(self, schema: Any) -> DeltaTable:
        try:
            return DeltaTable(self._location)
        except TableNotFoundError:
            return DeltaTable.create(
                self._location, Schema.from_arrow(schema), mode="ignore", configuration=_CONFIGURATION
            )

    def _merge(self, table: DeltaTable, rows: Any, marks: CommitProperties) -> None:
        columns = [name for name in rows.column_names if name != GONE]
        gone = f"source.{GONE}" if GONE in rows.column_names else "false"
        merger = table.merge(
            rows,
            " AND ".join(f"target.{_name(name)} = source.{_name(name)}" for name in self._key),
            source_alias="source",
            target_alias="target",
            merge_schema=True,
            # With what the source holds at hand, files of the target that cannot match are not read.
            streamed_exec=False,
            commit_properties=marks,
        )
        values = {_name(name): f"source.{_name(name)}" for name in columns}
        merger = merger.when_matched_delete(gone) if gone != "false" else merger
        merger.when_matched_update(values).when_not_matched_insert(values, predicate=f"NOT {gone}").execute()


def latest_rows(rows: Any, key: Sequence[str]) -> Any:
    """The last row of each key."""
    for name in key:
        if name not in rows.column_names:
            raise InvalidRequest(
                f"the rows have no column {name}, which is in KEY; they have {', '.join(rows.column_names)}", field=name
            )
        if rows[name].null_count:
            raise InvalidRequest(f"column {name} is in KEY, and a row has no value in it", field=name)
    numbered = rows.select(list(key)).append_column("_topics_at", pa.array(np.arange(rows.num_rows)))
    last = numbered.group_by(list(key)).aggregate([("_topics_at", "max")])["_topics_at_max"]
    return rows.take(last.combine_chunks().sort())


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
