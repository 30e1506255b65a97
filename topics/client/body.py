"""The bodies of requests: what a client asks for, as JSON text, refused here when it cannot be JSON at all.

Whatever else may be wrong with a request is the server's to say: it alone knows its limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from topics import jsontext
from topics.client.jobtransport import ResultRequest
from topics.client.transport import DeleteRequest, ReadRequest, StageRequest, WriteRequest
from topics.errors import InvalidRequest

Fields = Mapping[str, object]

_PRODUCER = ("producer_id", "epoch", "sequence")


def write_body(request: WriteRequest) -> bytes:
    fields = _records(request) | _said(
        idempotency_key=request.idempotency_key,
        create=request.create,
        config=_plain(request.config),
        delay_ms=request.delay_ms,
        not_before=request.not_before_ms,
    )
    if request.producer is not None:
        if request.idempotency_key is not None:
            message = "idempotency_key and producer are two ways to name a write: give one of them"
            raise InvalidRequest(message, field="producer", expected="idempotency_key or producer")
        fields |= dict(zip(_PRODUCER, named_tuple(request.producer, ("id", "epoch", "sequence")), strict=True))
    return _encode(fields, request.records)


def stage_body(request: StageRequest) -> bytes:
    delay = _said(delay_ms=request.delay_ms, not_before=request.not_before_ms)
    return _encode(_records(request) | delay | {"stage": request.stage}, request.records)


def results_body(fields: Fields, results: Sequence[ResultRequest]) -> bytes:
    """An ack, and what is written with it."""
    produce = [{"topic": result.topic, "records": list(map(_record, result.records))} for result in results]
    return _encode({**fields, "produce": produce}, [record for result in results for record in result.records])


def read_body(request: ReadRequest) -> bytes:
    fields: dict[str, object] = {"from_seq": request.from_seq, "include_tags": request.include_tags}
    fields |= _said(from_ts=request.from_ts)
    for name in ("partition", "limit", "max_batch_bytes", "wait_ms", "match"):
        if value := getattr(request, name):
            fields[name] = value
    if request.nodes:
        fields["node"] = list(request.nodes)
    if not request.include_meta:
        fields["include_meta"] = False
    return plain_body(fields)


def delete_body(request: DeleteRequest) -> bytes:
    fields = _said(before_seq=request.before_seq, match=request.match)
    if request.partition:
        fields["partition"] = request.partition
    if request.erase:
        fields["erase"] = True
    if request.dry_run:
        fields["dry_run"] = True
    return plain_body(fields)


def plain_body(fields: Fields) -> bytes:
    """A body without records."""
    try:
        return msgspec.json.encode(fields)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        names = ", ".join(fields)
        raise InvalidRequest(f"{names} cannot be written as JSON: {error}", field=names, expected="JSON") from None


def named_tuple(value: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """A producer's tuple, when it has as many parts as it should."""
    if not isinstance(value, tuple | list) or len(value) != len(names):
        expected = f"({', '.join(names)})"
        raise InvalidRequest(f"producer must be {expected}, not {value!r}", field="producer", expected=expected)
    return tuple(value)


def _records(request: WriteRequest | StageRequest) -> dict[str, object]:
    records = [_record(record) for record in request.records]
    if request.partition is not None and request.key is not None:
        message = "partition and key both choose the partition: give one of them"
        raise InvalidRequest(message, field="key", expected="partition or key")
    return {"records": records} | _said(node=request.node, partition=request.partition, key=request.key)


def _record(record: object) -> object:
    """A record without what it does not say; what is no record is left for the server to refuse."""
    if not isinstance(record, Mapping):
        return record
    fields = {name: value for name, value in record.items() if value is not None or name == "data"}
    if isinstance(meta := fields.get("meta"), Mapping) and not isinstance(meta, dict):
        fields["meta"] = dict(meta)
    return fields


def _said(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _plain(fields: Fields | None) -> dict[str, object] | None:
    return None if fields is None else dict(fields)


def _encode(fields: Fields, records: Sequence[Mapping[str, Any]]) -> bytes:
    try:
        body = msgspec.json.encode(fields)
    except (TypeError, ValueError, OverflowError, RecursionError):
        _check_datas(records)
        return plain_body(fields)
    if b"null" in body:
        # msgspec writes a NaN as null, which is another value.
        _check_datas(records)
    return body


def _check_datas(records: Sequence[Mapping[str, Any]]) -> None:
    for index, record in enumerate(records):
        if isinstance(record, Mapping):
            jsontext.encode(record.get("data"), f"records[{index}].data")
