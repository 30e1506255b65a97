"""Tables on their way to a query process, as Arrow streams: the columns it asked for, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from topics.core.read import Span
from topics.sqlengine.channel import Buffer
from topics.sqlengine.systemtables import SystemTable
from topics.wire import arrow

_JSON: Final = {"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
"""DuckDB takes text with this for JSON, without parsing it."""

SCHEMA: Final = pa.schema(
    [
        *(field.with_metadata(_JSON) if field.name in ("meta", "data") else field for field in arrow.SCHEMA),
        pa.field("partition", pa.int32(), nullable=False),
    ]
)
"""The first column is the one that costs least, since counting rows asks for the first one."""

TOPIC_SCHEMA: Final = bytes(SCHEMA.serialize())

VIEW: Final = "SELECT {topic} AS topic, partition, seq, ts, node, tag, meta, data FROM {scanned}"
"""A topic as a query sees it."""

SYSTEM_ROWS: Final = 16_384
"""Rows of a system table sent at a time."""

_SCHEMA_BYTES: Final = 16 * 1024
"""Room for the schema in front of the first batch."""


def of_spans(partition: int, spans: Sequence[Span], names: Sequence[str]) -> Buffer:
    """The records of some spans; nothing when there are none."""
    schema = pa.schema([SCHEMA.field(name) for name in names])
    return _stream(schema, [_batch(partition, span, schema) for span in spans])


def system_schema(table: SystemTable) -> bytes:
    return bytes(table.schema.serialize())


def of_system_table(table: SystemTable, names: Sequence[str]) -> Iterator[tuple[Buffer, bool]]:
    """The rows of a system table, and with each part whether it is the last one."""
    batches = table.arrow().select(list(names)).combine_chunks().to_batches(SYSTEM_ROWS)
    for number, batch in enumerate(batches, 1):
        yield _stream(batch.schema, [batch]), number == len(batches)


def _batch(partition: int, span: Span, schema: Any) -> Any:
    chosen = arrow.chosen_of(span)
    count = len(chosen)
    arrays = []
    for name in schema.names:
        if name == "partition":
            arrays.append(pa.array(np.full(count, partition, np.int32)))
        else:
            arrays.append(arrow.column(span.block, chosen, name))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _stream(schema: Any, batches: Sequence[Any]) -> Buffer:
    if not batches:
        return b""
    # Room for all of it at once: growing would copy what is there again and again.
    size = _SCHEMA_BYTES + sum(pa.ipc.get_record_batch_size(batch) for batch in batches)
    buffer = pa.allocate_buffer(size)
    sink = pa.FixedSizeBufferWriter(buffer)
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return memoryview(buffer)[: sink.tell()]
