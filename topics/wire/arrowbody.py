"""The body of a write as an Arrow stream, to checked columns.

The columns `data`, `tag`, `node` and `meta` are text, of which `data` and `meta` are JSON; a null is `null` as data and
nothing elsewhere. `delay_ms` and `not_before` are whole numbers, of jobs. Others are ignored, so that what was read can
be written again. What a JSON body says beside its records is in the query of the address.

That all texts of a column are JSON is checked in one pass over all of them as the elements of one array. A text that
is no JSON value could still make up one with its neighbours, but then the elements are not as long as the texts.

The bytes come from anybody. Offsets are checked before they are used, and nothing is taken that could unfold into more
than it is: no compression but that of the whole body, whose size is bounded, and no type that shares its bytes.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from topics.core.records import DEFAULT_LIMITS, Json, RecordLimits, Records, empty_name
from topics.core.waits import WAIT_MS_LIMIT, waits_of
from topics.errors import BatchTooLarge, InvalidRequest
from topics.limits import U64_MAX
from topics.wire import json
from topics.wire.query import Query
from topics.wire.records import WriteBatch, WriteBody

_EXPECTED: Final = 'an Arrow IPC stream with a text column "data"'
_texts = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(msgspec.Raw)

# Of the tables in the head of a message: the numbers of the fields that lead to its compression.
_MESSAGE_HEADER: Final = 2
_DICTIONARY_DATA: Final = 1
_BATCH_COMPRESSION: Final = 3


def decode_arrow_write(body: bytes, query: Query, limits: RecordLimits = DEFAULT_LIMITS) -> WriteBatch:
    """The write a body and its query ask for, or `InvalidRequest` naming the column and row that is wrong."""
    table = _read(body, limits.batch_records)
    if "data" not in table.column_names:
        raise _refuse("data", "there is no column data")
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise _refuse(name, f"there are several columns {name}")
    datas = _json_column(table, "data", b"null")
    records = Records.check(
        datas or [],
        tags=_text_column(table, "tag", limits.tag_bytes),
        nodes=_text_column(table, "node", limits.node_bytes),
        metas=_json_column(table, "meta", b""),
        node=_node(query),
        limits=limits,
    )
    batch = WriteBatch(records)
    batch.take_options(_options(query))
    batch.waits = _waits(table)
    return batch


def _node(query: Query) -> str:
    """The node of all records that name none; empty when it is not given."""
    if query.given(("node",)).get("node") == "":
        raise empty_name("node")
    return query.text("node")


def _read(body: bytes, records_max: int) -> Any:
    batches = []
    count = 0
    try:
        _refuse_compressed(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            for batch in reader:
                count += batch.num_rows
                if count > records_max:
                    raise BatchTooLarge(
                        f"a write has 1 to {records_max} records, this one more", field="records", max=records_max
                    )
                batch.validate(full=True)
                batches.append(batch)
            return pa.Table.from_batches(batches, reader.schema).combine_chunks()
    except (pa.ArrowException, OSError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise _refuse("", f"the body is not an Arrow stream: {str(error).splitlines()[0]}") from None


def _refuse_compressed(body: bytes) -> None:
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(body)):
        if message.type not in ("record batch", "dictionary"):
            continue
        head = memoryview(message.metadata)
        table = _field(head, struct.unpack_from("<I", head)[0], _MESSAGE_HEADER)
        if message.type == "dictionary" and table:
            table = _field(head, table, _DICTIONARY_DATA)
        if table and _field(head, table, _BATCH_COMPRESSION):
            raise InvalidRequest(
                "the buffers of the Arrow stream are compressed, which is not taken: compress the whole body",
                field="",
                expected="no compression, or Content-Encoding: gzip",
            )


def _field(head: memoryview, table: int, number: int) -> int:
    """Where a field of a flatbuffers table that is itself a table begins; 0 when it is not there."""
    vtable = table - int(struct.unpack_from("<i", head, table)[0])
    (vtable_bytes,) = struct.unpack_from("<H", head, vtable)
    slot = 4 + 2 * number
    if slot + 2 > vtable_bytes:
        return 0
    (offset,) = struct.unpack_from("<H", head, vtable + slot)
    return table + offset + int(struct.unpack_from("<I", head, table + offset)[0]) if offset else 0


def _column(table: Any, name: str) -> Any | None:
    """A column as one array; None when it is not there or all of it is null."""
    if name not in table.column_names:
        return None
    found = table.column(name)
    if found.null_count == len(found) and name != "data":
        return None
    # A stream without batches has no chunks, and there are types of which nothing can be made.
    return found.chunk(0) if found.num_chunks else pa.nulls(0)


def _json_column(table: Any, name: str, null: bytes) -> list[Json] | None:
    column = _column(table, name)
    if column is None:
        return None
    if pa.types.is_null(column.type):
        return [null] * len(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise _refuse(name, f"column {name} must be JSON text, not {column.type}", "string or large_string")
    filled = column.fill_null(pa.scalar("null", column.type))
    together = pa.LargeListArray.from_arrays([0, len(filled)], filled)
    joined = pc.binary_join(together, pa.scalar(",", column.type))
    texts: list[Json] = []
    try:
        texts += _texts.decode(b"[%b]" % joined[0].as_buffer())
    except (msgspec.DecodeError, RecursionError):
        texts.clear()
    lens = pc.binary_length(filled).to_numpy(zero_copy_only=False).tolist()
    if list(map(len, texts)) != lens:
        texts = [_one_text(text.as_buffer().to_pybytes(), f"records[{row}].{name}") for row, text in enumerate(filled)]
    if column.null_count and null != b"null":
        texts = [text if there else null for text, there in zip(texts, column.is_valid().to_pylist(), strict=True)]
    return texts


def _one_text(text: bytes, field: str) -> msgspec.Raw:
    """One text, without the spaces around it."""
    try:
        return json.decode(_text, text)
    except InvalidRequest as error:
        raise _refuse(field, error.message.replace("the body", field, 1), "JSON") from None


def _text_column(table: Any, name: str, bytes_max: int) -> list[str] | None:
    column = _column(table, name)
    if column is None:
        return None
    if pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type):
        # A value that is too long would be repeated before it is refused.
        longest = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        if longest > bytes_max:
            raise _refuse(name, f"a {name} has {longest} bytes, at most {bytes_max} are allowed", f"{bytes_max} bytes")
        column = column.dictionary_decode()
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise _refuse(name, f"column {name} must be text, not {column.type}", "string, large_string or a dictionary")
    empty = pc.index(column, pa.scalar("", column.type)).as_py()
    if empty >= 0:
        raise empty_name(f"records[{empty}].{name}")
    texts: list[str] = column.fill_null("").to_pylist()
    return texts


def _waits(table: Any) -> bytes:
    """How long each record waits, by one of the two columns that can say it."""
    not_before, delay_ms = _milliseconds(table, "not_before"), _milliseconds(table, "delay_ms")
    if not_before is not None and delay_ms is not None:
        raise _refuse("delay_ms", "columns delay_ms and not_before both say how long: have one of them", "one of them")
    return waits_of(not_before) if not_before is not None else waits_of(-delay_ms) if delay_ms is not None else b""


def _milliseconds(table: Any, name: str) -> Any | None:
    column = _column(table, name)
    if column is None or not len(column):
        return None
    expected = f"whole numbers from 0 to {WAIT_MS_LIMIT - 1}"
    if not pa.types.is_integer(column.type):
        raise _refuse(name, f"column {name} must have {expected}, not {column.type}", expected)
    least, most = pc.min_max(column).as_py().values()
    if least < 0 or most >= WAIT_MS_LIMIT:
        raise _refuse(name, f"column {name} must have {expected}, not {least if least < 0 else most}", expected)
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _options(query: Query) -> WriteBody:
    """What the query says, as a JSON body would have said it."""

    def number(name: str) -> int | None:
        return query.whole(name, 0, U64_MAX) if query.text(name) else None

    return WriteBody(
        records=[],
        idempotency_key=query.text("idempotency_key") or None,
        producer_id=query.text("producer_id") or None,
        epoch=number("epoch"),
        sequence=number("sequence"),
        create=query.flag("create", True) if query.text("create") else None,
        disable_backpressure=query.flag("disable_backpressure", False),
        partition=number("partition"),
        key=query.text("key") or None,
        delay_ms=number("delay_ms"),
        not_before=number("not_before"),
    )


def _refuse(field: str, message: str, expected: str = _EXPECTED) -> InvalidRequest:
    return InvalidRequest(message, field=field, expected=expected)
