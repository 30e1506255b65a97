"""The body of a write, from JSON bytes to checked columns: the hottest path there is.

One pass of msgspec cuts the body into records whose data and meta stay text. From there on the work is a handful of
passes over whole columns, no step of Python a record.

A key given twice in the request or in a record is refused, because two readers would take two different values. The
parser does not see it. But what it found needs a certain number of bytes, however it is written, and a body that has
no byte more has no room for another key. In any other body occurrences are counted: as many `"tag"` as records that
have one means that none is repeated. Data that itself holds `"tag"` is subtracted, and only what is still unclear is
parsed a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from topics.core.dedupe import DedupeKey, check_idempotency_key, check_producer_key
from topics.core.records import DEFAULT_LIMITS, Json, RecordLimits, Records, empty_name
from topics.core.waits import named_waits
from topics.errors import InvalidRequest
from topics.limits import PARTITIONS_MAX, U64_MAX
from topics.wire import json
from topics.wire.numbers import whole

T = TypeVar("T")


class _Record(msgspec.Struct, gc=False):
    data: Raw
    tag: str | UnsetType | None = UNSET
    node: str | UnsetType | None = UNSET
    meta: Raw | UnsetType = UNSET
    delay_ms: int | UnsetType | None = UNSET
    not_before: int | UnsetType | None = UNSET


class WriteBody(msgspec.Struct):
    """A write as the wire says it; unset is "not said"."""

    records: list[_Record]
    node: str | UnsetType | None = UNSET
    idempotency_key: str | UnsetType | None = UNSET
    producer_id: str | UnsetType | None = UNSET
    epoch: int | UnsetType | None = UNSET
    sequence: int | UnsetType | None = UNSET
    create: bool | UnsetType | None = UNSET
    config: dict[str, Any] | UnsetType | None = UNSET
    disable_backpressure: bool | UnsetType | None = UNSET
    partition: int | UnsetType | None = UNSET
    key: str | UnsetType | None = UNSET
    delay_ms: int | UnsetType | None = UNSET
    not_before: int | UnsetType | None = UNSET


_decoder = msgspec.json.Decoder(WriteBody)
_SAID_NOTHING = (UNSET,) * (len(WriteBody.__struct_fields__) - 2)
_OPTION_KEYS = [b'"%b"' % name.encode() for name in WriteBody.__struct_fields__[2:]]
# What the parts of a request take without spaces and without their values; an escape or a null takes more.
_EMPTY_BYTES = len('{"records":[]}') - len(",")
_RECORD_BYTES = len('{"data":},')
_TAG_BYTES = len(',"tag":""')
_NODE_BYTES = len(',"node":""')
_META_BYTES = len(',"meta":')
_PRODUCER = ("producer_id", "epoch", "sequence")


class WriteBatch:
    """A write request: checked records, and what the client said about them. None is "not said"."""

    __slots__ = (
        "config",
        "create",
        "dedupe_key",
        "delay_ms",
        "disable_backpressure",
        "key",
        "not_before_ms",
        "partition",
        "records",
        "waits",
    )

    def __init__(self, records: Records) -> None:
        self.records = records
        self.dedupe_key: DedupeKey | None = None
        self.create: bool | None = None
        self.config: Mapping[str, Any] | None = None
        self.disable_backpressure = False
        self.partition: int | None = None
        self.key: str | None = None
        """Chooses the partition when the client did not: see `core/partition.py`."""
        self.delay_ms = 0
        self.not_before_ms = 0
        """Of jobs: nobody gets them before."""
        self.waits = b""
        """The same of each of them, where the records say that (`core/waits.py`)."""

    def take_options(self, body: WriteBody) -> None:
        self.dedupe_key = _dedupe_key(body)
        self.create = _said(body.create)
        self.config = _said(body.config)
        self.disable_backpressure = bool(body.disable_backpressure)
        self.partition = _partition(_said(body.partition))
        self.key = _said(body.key)
        self.delay_ms = whole("delay_ms", _said(body.delay_ms), U64_MAX)
        self.not_before_ms = whole("not_before", _said(body.not_before), U64_MAX)
        if self.partition is not None and self.key is not None:
            expected = "partition or key"
            raise InvalidRequest(
                "partition and key both choose the partition: give one of them", field="key", expected=expected
            )


def _refuse_empty(tags: Sequence[object], nodes: Sequence[object]) -> NoReturn:
    """A tag or node that is there and names nothing is a mistake; which it is, by the first one."""
    for name, values in (("tag", tags), ("node", nodes)):
        if "" in values:
            raise empty_name(f"records[{values.index('')}].{name}")
    raise empty_name("node")


def decode_write(body: bytes, limits: RecordLimits = DEFAULT_LIMITS) -> WriteBatch:
    """The write a body asks for, or `InvalidRequest` naming the field that is wrong."""
    parsed = json.decode(_decoder, body)
    items = parsed.records
    count = len(items)
    datas: list[Json] = [item.data for item in items]
    tags = [item.tag for item in items]
    nodes = [item.node for item in items]
    metas = [item.meta for item in items]
    tag_count = count - tags.count(UNSET)
    node_count = count - nodes.count(UNSET)
    meta_count = count - metas.count(UNSET)
    texts: list[Json] | None = [_meta(meta) for meta in metas] if meta_count else None
    names = [node or "" for node in nodes] if node_count else None
    options = msgspec.structs.astuple(parsed)[2:]

    records = Records.check(
        datas,
        tags=[tag or "" for tag in tags] if tag_count else None,
        nodes=names,
        metas=texts,
        node=parsed.node or "",
        limits=limits,
    )
    least_bytes = _EMPTY_BYTES + _RECORD_BYTES * count + records.payload_bytes
    least_bytes += _TAG_BYTES * tag_count + len(records.tags) + _META_BYTES * meta_count
    if names is not None:
        least_bytes += _NODE_BYTES * node_count + len("".join(names).encode())
    if options != _SAID_NOTHING:
        least_bytes += _text_options_bytes(options)
    waits = b""
    if len(body) != least_bytes:
        # A body without a byte to spare names no delays either.
        delays, times = [item.delay_ms for item in items], [item.not_before for item in items]
        delay_count, time_count = count - delays.count(UNSET), count - times.count(UNSET)
        keys = {b'"records"': 1, b'"data"': count}
        if tag_count:
            keys[b'"tag"'] = tag_count
        if node_count or parsed.node is not UNSET:
            keys[b'"node"'] = node_count + (parsed.node is not UNSET)
        if meta_count:
            keys[b'"meta"'] = meta_count
        keys |= {key: 1 for key, value in zip(_OPTION_KEYS, options, strict=True) if value is not UNSET}
        if delay_count or time_count:
            keys[b'"delay_ms"'] = delay_count + (parsed.delay_ms is not UNSET)
            keys[b'"not_before"'] = time_count + (parsed.not_before is not UNSET)
            waits = named_waits([_said(delay) for delay in delays], [_said(time) for time in times])
        _refuse_repeated(body, keys, datas, texts)
    if "" in tags or "" in nodes or parsed.node == "":
        _refuse_empty(tags, nodes)

    batch = WriteBatch(records)
    batch.waits = waits
    if options != _SAID_NOTHING:
        batch.take_options(parsed)
    return batch


def _text_options_bytes(options: tuple[object, ...]) -> int:
    """What the options that are text take at least. The others count nothing: a number may be written in many ways."""
    texts = [(key, value) for key, value in zip(_OPTION_KEYS, options, strict=True) if isinstance(value, str)]
    return sum(len(key) + len(':"",') + len(value.encode()) for key, value in texts)


def _meta(meta: Raw | UnsetType) -> Json:
    return b"" if meta is UNSET or bytes(meta) == b"null" else meta


def _said(value: T | UnsetType | None) -> T | None:
    return None if value is UNSET else value


def _partition(partition: int | None) -> int | None:
    if partition is not None and not 0 <= partition < PARTITIONS_MAX:
        expected = f"an integer from 0 to {PARTITIONS_MAX - 1}"
        raise InvalidRequest(f"partition must be {expected}, not {partition}", field="partition", expected=expected)
    return partition


def _dedupe_key(body: WriteBody) -> DedupeKey | None:
    idempotency_key = _said(body.idempotency_key)
    said = {name: value for name in _PRODUCER if (value := _said(getattr(body, name))) is not None}
    if not said:
        return None if idempotency_key is None else check_idempotency_key(idempotency_key)
    expected = "idempotency_key, or producer_id, epoch and sequence together"
    if idempotency_key is not None:
        message = "idempotency_key and producer_id are two ways to name a write: give one of them"
        raise InvalidRequest(message, field="producer_id", expected=expected)
    for name in _PRODUCER:
        if name not in said:
            raise InvalidRequest(f"{name} is required beside {next(iter(said))}", field=name, expected=expected)
    return check_producer_key(**said)


def _refuse_repeated(body: bytes, keys: dict[bytes, int], datas: list[Json], metas: list[Json] | None) -> None:
    """Refuse a key given twice; `keys` says how often each key that occurs should."""
    escaped = b"\\" in body and json.spelled_in_escapes(body)
    for key, count in keys.items():
        if body.count(key) != count:
            break
    else:
        if not escaped:
            return
    inside = b",".join(datas if metas is None else datas + metas)
    if escaped or any(body.count(key) - inside.count(key) != count for key, count in keys.items()):
        json.refuse_repeated_keys(body, _ours)


def _ours(root: json.Pairs) -> list[tuple[str, json.Pairs]]:
    """The objects of a write that are ours, not the client's data, with their paths."""
    records = root.last("records")
    return [("", root), *((f"records[{index}]", record) for index, record in enumerate(records))]
