"""A topic as a table that DuckDB scans: it says which columns it needs and which rows, and only those are made.

DuckDB takes a subclass of `pyarrow.dataset.Dataset` and calls its `scanner` anew for each time the table is read, with
the columns it wants and a filter it will not apply itself any more. The filter is an opaque expression; a column whose
name does not occur in its text cannot be part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from topics.core.read import Span
from topics.sqlengine.cancelling import Cancelling
from topics.sqlengine.scan import Scan
from topics.wire import arrow

_JSON = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
"""What makes text JSON to DuckDB, without looking at it."""

SCHEMA = pa.schema(
    [
        *(field.with_metadata(_JSON) if field.name in ("meta", "data") else field for field in arrow.SCHEMA),
        pa.field("partition", pa.int32(), nullable=False),
    ]
)
"""Of what is scanned: first the column that costs least, since counting rows asks for the first one."""

VIEW = "SELECT {topic} AS topic, partition, seq, ts, node, tag, meta, data FROM {scanned}"
"""A topic as a query sees it."""

COLUMNS = tuple(SCHEMA.names)


class TopicTable(ds.Dataset):
    """Scanned by DuckDB, on the thread of the query."""

    # The base class refuses to be made, and holds nothing that is used here.
    def __init__(self, make_scan: Callable[[], Scan], cancelling: Cancelling) -> None:
        self._make_scan = make_scan
        self._cancelling = cancelling

    @property
    def schema(self) -> Any:
        return SCHEMA

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> Any:
        said = "" if filter is None else str(filter)
        wanted = [name for name in COLUMNS if columns is None or name in columns or name in said]
        schema = pa.schema([SCHEMA.field(name) for name in wanted])
        return ds.Scanner.from_batches(
            self._batches(schema),
            schema=schema,
            columns=list(columns) if columns is not None else list(COLUMNS),
            filter=filter,
            batch_readahead=2,
            use_threads=False,
        )

    def _batches(self, schema: Any) -> Iterator[Any]:
        with self._cancelling.failing():
            for partition, spans in self._make_scan():
                for span in spans:
                    self._cancelling.check()
                    yield self._batch(partition, span, schema)

    def _batch(self, partition: int, span: Span, schema: Any) -> Any:
        chosen = arrow.chosen_of(span)
        count = len(chosen)
        arrays = []
        for name in schema.names:
            if name == "partition":
                arrays.append(pa.array(np.full(count, partition, np.int32)))
            else:
                arrays.append(arrow.column(span.block, chosen, name))
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
