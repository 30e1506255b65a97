"""The bodies of a group's verbs: consume, ack, nack, extend and reset. An empty body is an empty object."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from topics.core.groupcommands import AckGroup, Consume, ExtendGroup, NackGroup, ResetGroup
from topics.core.names import shorten
from topics.errors import InvalidRequest
from topics.groupmodel import EARLIEST, LATEST, Start, at_seq, at_ts
from topics.limits import BYTE_BUDGET_DEFAULT, GROUP_LIMIT_DEFAULT, PARTITIONS_MAX, U64_MAX
from topics.wire import json
from topics.wire.numbers import whole

ANY_PARTITION = "any"
START_EXPECTED = '"earliest", "latest", a seq, or {"ts": milliseconds since 1970}'


class ConsumeRequest(msgspec.Struct, frozen=True):
    command: Consume
    wait_ms: int
    ack: AckGroup | None
    """What is acked before."""
    anywhere: bool
    """In any partition."""


class _Consume(msgspec.Struct, rename={"start": "from"}):
    start: Any = None
    limit: int | None = None
    wait_ms: int | None = None
    partition: Any = None
    consumer: str | None = None
    visibility_ms: int | None = None
    max_batch_bytes: int | None = None
    include_tags: bool | None = None
    ack_upto_seq: int | None = None
    ack_partition: int | None = None
    ack_claim_id: str | None = None


class _Ack(msgspec.Struct):
    upto_seq: int
    from_seq: int | None = None
    partition: int | None = None
    consumer: str | None = None
    claim_id: str | None = None


class _Nack(msgspec.Struct):
    upto_seq: int | None = None
    from_seq: int | None = None
    partition: int | None = None
    consumer: str | None = None
    claim_id: str | None = None
    delay_ms: int | None = None


class _Extend(msgspec.Struct):
    upto_seq: int | None = None
    from_seq: int | None = None
    partition: int | None = None
    consumer: str | None = None
    claim_id: str | None = None
    visibility_ms: int | None = None


class _Reset(msgspec.Struct):
    to: Any
    partition: int | None = None


Body = TypeVar("Body", bound=msgspec.Struct)

_consumes = msgspec.json.Decoder(_Consume)
_acks = msgspec.json.Decoder(_Ack)
_nacks = msgspec.json.Decoder(_Nack)
_extends = msgspec.json.Decoder(_Extend)
_resets = msgspec.json.Decoder(_Reset)
_KEYS: dict[type, tuple[bytes, ...]] = {
    kind: tuple(b'"%b"' % name.encode() for name in kind.__struct_encode_fields__)
    for kind in (_Consume, _Ack, _Nack, _Extend, _Reset)
}


def decode_consume(topic: str, group: str, body: bytes) -> ConsumeRequest:
    parsed = _decode(_consumes, body)
    anywhere = parsed.partition == ANY_PARTITION
    partition = 0 if anywhere else _partition(parsed.partition)
    consumer = parsed.consumer or ""
    command = Consume(
        topic,
        group,
        partition,
        None if parsed.start is None else parse_start("from", parsed.start),
        GROUP_LIMIT_DEFAULT if parsed.limit is None else whole("limit", parsed.limit, U64_MAX),
        consumer,
        whole("max_batch_bytes", parsed.max_batch_bytes, U64_MAX) or BYTE_BUDGET_DEFAULT,
        _or_none("visibility_ms", parsed.visibility_ms),
        bool(parsed.include_tags),
    )
    ack = None
    acked = partition if parsed.ack_partition is None else _partition(parsed.ack_partition, "ack_partition")
    if parsed.ack_upto_seq is not None:
        upto_seq = whole("ack_upto_seq", parsed.ack_upto_seq, U64_MAX)
        ack = AckGroup(topic, group, upto_seq, acked, consumer, claim_id=parsed.ack_claim_id)
    return ConsumeRequest(command, whole("wait_ms", parsed.wait_ms, U64_MAX), ack, anywhere)


def decode_ack(topic: str, group: str, body: bytes) -> AckGroup:
    parsed = _decode(_acks, body)
    return AckGroup(
        topic,
        group,
        whole("upto_seq", parsed.upto_seq, U64_MAX),
        _partition(parsed.partition),
        parsed.consumer or "",
        whole("from_seq", parsed.from_seq, U64_MAX),
        parsed.claim_id,
    )


def decode_nack(topic: str, group: str, body: bytes) -> NackGroup:
    parsed = _decode(_nacks, body)
    return NackGroup(
        topic,
        group,
        _or_none("upto_seq", parsed.upto_seq),
        _partition(parsed.partition),
        parsed.consumer or "",
        whole("from_seq", parsed.from_seq, U64_MAX),
        parsed.claim_id,
        whole("delay_ms", parsed.delay_ms, U64_MAX),
    )


def decode_extend(topic: str, group: str, body: bytes) -> ExtendGroup:
    parsed = _decode(_extends, body)
    return ExtendGroup(
        topic,
        group,
        _or_none("upto_seq", parsed.upto_seq),
        _partition(parsed.partition),
        parsed.consumer or "",
        whole("from_seq", parsed.from_seq, U64_MAX),
        parsed.claim_id,
        _or_none("visibility_ms", parsed.visibility_ms),
    )


def decode_reset(topic: str, group: str, body: bytes) -> ResetGroup:
    parsed = _decode(_resets, body)
    return ResetGroup(topic, group, parse_start("to", parsed.to), _partition(parsed.partition))


def parse_start(field: str, given: object) -> Start:
    """Where a group begins: a word, a seq, or `{"ts": …}`."""
    match given:
        case "earliest":
            return EARLIEST
        case "latest":
            return LATEST
        case bool():
            pass
        case int() if 0 <= given <= U64_MAX:
            return at_seq(given)
        case {"ts": int(ts), **rest} if not rest and not isinstance(ts, bool) and 0 <= ts <= U64_MAX:
            return at_ts(ts)
    shown = shorten(given)
    raise InvalidRequest(
        f"{field} must be {START_EXPECTED}, not {shown}", field=field, value=shown, expected=START_EXPECTED
    )


def start_fields(start: Start) -> object:
    """The same as it is sent."""
    match start.kind.value:
        case "seq":
            return start.value
        case "ts":
            return {"ts": start.value}
        case word:
            return word


def _partition(given: object, field: str = "partition") -> int:
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        expected = f"a whole number from 0 to {PARTITIONS_MAX - 1}"
        shown = shorten(given)
        raise InvalidRequest(f"{field} must be {expected}, not {shown}", field=field, value=shown, expected=expected)
    return whole(field, given, PARTITIONS_MAX - 1)


def _or_none(field: str, given: int | None) -> int | None:
    return None if given is None else whole(field, given, U64_MAX)


def _decode(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    body = body or b"{}"
    parsed = json.decode(decoder, body)
    if any(body.count(key) > 1 for key in _KEYS[type(parsed)]) or (b"\\" in body and json.spelled_in_escapes(body)):
        json.refuse_repeated_keys(body, lambda root: [("", root)])
    return parsed
