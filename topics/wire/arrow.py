"""Records as an Arrow stream: the columns a block has anyway, and the text of data and meta cut out of it.

The columns of the answer are always the same: `seq` (int64), `ts` (timestamp in UTC), and `node`, `tag`, `meta` and
`data` as strings, of which the last two are JSON text as it was written. What a record has not is null. Of a queue they
are followed by `state` (ready, leased or delayed) and `attempts`, how often the job was handed out. Of a heap
`attempts` are the deliveries that failed, and a column `priority` (int64) comes behind them.

Nothing is done a record in Python. The pieces of a text that follow each other are an Arrow array as they lie there,
with the places of the cuts as offsets: data, what stands between, data, what stands between. Taking every second
element copies all data in one call. Only who has `pyarrow` gets here, so nothing else may import this module early.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topics.core.block import Block, Buffer
from topics.core.cut import Shape
from topics.core.heap import Heap
from topics.core.heaprecord import priorities
from topics.core.leases import DELAYED, FREE, LEASED, LEAVING, LeaseTable
from topics.core.log import Log
from topics.core.read import Span

I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SCHEMA: Final = pa.schema(
    [
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("node", pa.string()),
        pa.field("tag", pa.string()),
        pa.field("meta", pa.string()),
        pa.field("data", pa.string(), nullable=False),
    ]
)
JOB_SCHEMA: Final = SCHEMA.append(pa.field("state", pa.string(), nullable=False)).append(
    pa.field("attempts", pa.int32(), nullable=False)
)
MESSAGE_SCHEMA: Final = JOB_SCHEMA.append(pa.field("priority", pa.int64(), nullable=False))
_STATES: Final = {FREE: "ready", LEASED: "leased", DELAYED: "delayed", LEAVING: "leased"}
_US_PER_MS: Final = 1000
_DATA_KEY: Final = len(',"data":')


def arrow_page(spans: Sequence[Span], shape: Shape) -> bytes:
    """The records of the spans as an Arrow IPC stream of one batch, or of none. Tags are always in it."""
    return _stream(_table(spans, shape))


def arrow_jobs(leases: LeaseTable, spans: Sequence[Span], shape: Shape) -> bytes:
    """The same for jobs of a queue. The caller has let time act on the leases."""
    table = _table(spans, shape)
    states, attempts = leases.conditions(table.column("seq").to_pylist())
    columns = [pa.array([_STATES[state] for state in states], pa.string()), pa.array(attempts, pa.int32())]
    return _stream(pa.Table.from_arrays([*table.columns, *columns], schema=JOB_SCHEMA))


def arrow_messages(log: Log, heap: Heap, spans: Sequence[Span], shape: Shape) -> bytes:
    """The same for messages of a heap. The caller has had it look at its log."""
    table = _table(spans, shape)
    seqs = table.column("seq").to_pylist()
    states, deliveries = heap.leases.conditions(seqs)
    said = ["leased" if seq in heap.exhausted else _STATES[state] for seq, state in zip(seqs, states, strict=True)]
    failed = [count - (state == LEASED) for count, state in zip(deliveries, states, strict=True)]
    came_with = priorities(log, seqs)
    for at, seq in enumerate(seqs if heap.changed else ()):
        came_with[at] = heap.changed.get(seq, came_with[at])
    columns = [pa.array(said, pa.string()), pa.array(failed, pa.int32()), pa.array(came_with, pa.int64())]
    return _stream(pa.Table.from_arrays([*table.columns, *columns], schema=MESSAGE_SCHEMA))


def _table(spans: Sequence[Span], shape: Shape) -> Any:
    return pa.Table.from_batches([_batch(span, shape.meta) for span in spans], SCHEMA).combine_chunks()


def _stream(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def _batch(span: Span, with_meta: bool) -> Any:
    chosen = chosen_of(span)
    columns = [
        column(span.block, chosen, field.name) if with_meta or field.name != "meta" else _nothing(len(chosen))
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def chosen_of(span: Span) -> I64:
    """The positions of a span's records in its block."""
    return np.arange(span.start, span.end) if span.chosen is None else span.chosen


def column(block: Block, chosen: I64, name: str) -> Any:
    """One column of some records of a block, with the type it has in the schema."""
    match name:
        case "seq":
            return pa.array(chosen + block.first_seq)
        case "ts":
            return _times(block, chosen)
        case "node":
            return _nodes(block, chosen)
        case "tag":
            return _tags(block, chosen)
    data_ends = block.ends[chosen].astype(np.int64) - 1
    data_starts = data_ends - block.data_lens[chosen]
    return _metas(block, chosen, data_starts) if name == "meta" else _pieces(block.text, data_starts, data_ends)


def _times(block: Block, chosen: I64) -> Any:
    times_ms = np.full(len(chosen), block.first_ts, np.int64)
    if block.ts_deltas is not None:
        times_ms += block.ts_deltas[chosen]
    return pa.array(times_ms * _US_PER_MS).view(SCHEMA.field("ts").type)


def _nodes(block: Block, chosen: I64) -> Any:
    if block.node_ids is None:
        return _nothing(len(chosen))
    ids = block.node_ids[chosen].astype(np.int64)
    names = pa.array([name.decode() for name in block.node_names], pa.string())
    return names.take(pa.array(ids - 1, mask=ids == 0))


def _tags(block: Block, chosen: I64) -> Any:
    if block.tag_ends is None:
        return _nothing(len(chosen))
    ends = block.tag_ends.astype(np.int64)
    starts = np.concatenate(([0], ends[:-1]))
    return _present(block.tags, starts[chosen], ends[chosen])


def _metas(block: Block, chosen: I64, data_starts: I64) -> Any:
    if block.meta_lens is None:
        return _nothing(len(chosen))
    ends = data_starts - _DATA_KEY
    return _present(block.text, ends - block.meta_lens[chosen], ends)


def _present(text: Buffer, starts: I64, ends: I64) -> Any:
    """The pieces of a text, null where one is empty."""
    there: Bools = ends > starts
    pieces = _pieces(text, starts[there], ends[there])
    return pieces.take(pa.array(np.cumsum(there) - 1, mask=~there))


def _pieces(text: Buffer, starts: I64, ends: I64) -> Any:
    """What stands in a text from each start to its end; both ascend."""
    count = len(starts)
    if not count:
        return _nothing(0)
    cuts = np.empty(2 * count, np.int64)
    cuts[0::2] = starts
    cuts[1::2] = ends
    whole = pa.Array.from_buffers(pa.large_string(), 2 * count - 1, [None, pa.py_buffer(cuts), pa.py_buffer(text)])
    return whole.take(pa.array(np.arange(0, 2 * count, 2))).cast(pa.string())


def _nothing(count: int) -> Any:
    return pa.nulls(count, pa.string())
