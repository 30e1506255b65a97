"""The bodies of `/v1`: heaps and their messages, by the names of the gRPC contract.

A payload is base64 in `payload`, or JSON as it is in `payload_json`. Numbers of 64 bits may come as text, since not
every language can write them otherwise. Durations are seconds, see `duration.py`. A key given twice is refused, see
`once.py`; what is in `payload_json` and `meta` is the client's own.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, TypeVar

import msgspec
from msgspec import Raw

from topics.core.names import check_topic, shorten
from topics.errors import InvalidRequest
from topics.heapmodel import DeadFilter, LeaseRef, NewMessage
from topics.limits import PARTITIONS_MAX, SECOND_MS, U64_MAX
from topics.model import Mode
from topics.wire import json
from topics.wire.duration import Duration, duration_ms, optional_ms
from topics.wire.numbers import whole
from topics.wire.once import Walk, refuse_repeated, root_of

NO_JSON = Raw()
"""Stands for a payload that is no JSON; an explicit null is one."""

Body = TypeVar("Body", bound=msgspec.Struct)
Number = int | str
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
I64_MIN, I64_MAX = -(2**63), 2**63 - 1


class _Policy(msgspec.Struct):
    enabled: bool = True
    retention_time: Duration | None = None


class _Config(msgspec.Struct):
    retention_time: Duration | None = None
    visibility_timeout_default: Duration | None = None
    max_retries_default: int | None = None
    max_payload_bytes: Number | None = None
    compression_enabled: bool | None = None
    dlq_policy: _Policy | None = None


class _MakeHeap(_Config, kw_only=True):
    topic: str
    mode: int | str | None = None
    partitions: int | None = None
    replication_factor: int | None = None
    top_k_bound: int | None = None


class _Message(msgspec.Struct):
    topic: str
    payload: bytes | None = None
    payload_json: Raw = NO_JSON
    priority: Number | None = None
    partition_key: str | None = None
    partition_id: int | None = None
    producer_id: str | None = None
    epoch: Number | None = None
    sequence: Number | None = None
    max_retries: int | None = None
    not_before: Duration | None = None
    meta: dict[str, str] | None = None


class _Batch(msgspec.Struct):
    messages: list[_Message] | None = None
    requests: list[_Message] | None = None
    transaction_id: str | None = None


class _Pop(msgspec.Struct):
    topic: str
    max: int | None = None
    wait_time: Duration | None = None
    visibility_timeout: Duration | None = None
    partition_ids: list[int] | None = None
    consumer: str | None = None


class _Lease(msgspec.Struct):
    lease_token: str
    message_id: str = ""


class _Settle(msgspec.Struct):
    topic: str
    message_id: str | None = None
    lease_token: str | None = None
    leases: list[_Lease] | None = None
    backoff_override: Duration | None = None
    reason: str | None = None
    undelivered: bool | None = None
    extension: Duration | None = None


class _Moved(msgspec.Struct):
    message_id: str
    reason: str | None = None


class _Reprioritize(msgspec.Struct):
    message_id: str
    priority: Number


class _Cancel(msgspec.Struct):
    message_id: str


class _Purge(msgspec.Struct):
    partition_id: int | None = None


class _Dead(msgspec.Struct):
    message_ids: list[str] | None = None
    reason: str | None = None
    died_from: Moment | None = None
    died_before: Moment | None = None
    priority_min: Number | None = None
    priority_max: Number | None = None
    limit: int | None = None
    dry_run: bool | None = None


class PopRequest(msgspec.Struct, frozen=True):
    topic: str
    max: int
    wait_ms: int
    visibility_ms: int | None
    partitions: tuple[int, ...]
    consumer: str


class SettleRequest(msgspec.Struct, frozen=True):
    """An ack, a nack or an extend, of one lease or of several."""

    topic: str
    leases: list[LeaseRef]
    strict: bool
    """One lease, named by itself: when it is not there, that is an error. Of several, those are named that are not."""
    backoff_ms: int | None = None
    reason: str = ""
    undelivered: bool = False
    extension_ms: int = 0


class DeadRequest(msgspec.Struct, frozen=True):
    chosen: DeadFilter
    limit: int
    dry_run: bool


_makes = msgspec.json.Decoder(_MakeHeap)
_configs = msgspec.json.Decoder(_Config)
_messages = msgspec.json.Decoder(_Message)
_batches = msgspec.json.Decoder(_Batch)
_pops = msgspec.json.Decoder(_Pop)
_settles = msgspec.json.Decoder(_Settle)
_moves = msgspec.json.Decoder(_Moved)
_reprioritizes = msgspec.json.Decoder(_Reprioritize)
_cancels = msgspec.json.Decoder(_Cancel)
_purges = msgspec.json.Decoder(_Purge)
_deads = msgspec.json.Decoder(_Dead)

_MODES = {0: Mode.MIN, 1: Mode.MAX, "MIN": Mode.MIN, "MAX": Mode.MAX, "min": Mode.MIN, "max": Mode.MAX}

# ---- heaps


def decode_make(body: bytes) -> tuple[str, dict[str, object]]:
    """The name of a new heap, and its config as a topic has it."""
    parsed = json.decode(_makes, body)
    _refuse_repeated_config(body, parsed)
    topic = check_topic(parsed.topic)
    fields = _config(topic, parsed, None)
    if parsed.mode is not None:
        if parsed.mode not in _MODES:
            shown = shorten(repr(parsed.mode))
            raise InvalidRequest(f"mode must be MIN or MAX, not {shown}", field="mode", expected="MIN or MAX")
        fields["mode"] = _MODES[parsed.mode].value
    for name in ("partitions", "replication_factor", "top_k_bound"):
        value = getattr(parsed, name)
        if value is not None:
            fields[name] = value
    return topic, fields


def decode_change(body: bytes, topic: str, dlq_topic: str | None) -> dict[str, object]:
    """What a change of a heap's config names. Its dead letters go on going where they went."""
    parsed = json.decode(_configs, body)
    _refuse_repeated_config(body, parsed)
    return _config(topic, parsed, dlq_topic)


def _refuse_repeated_config(body: bytes, parsed: _Config) -> None:
    def ours(root: json.Pairs) -> list[tuple[str, json.Pairs]]:
        policy = root.last("dlq_policy")
        return [("", root), *([("dlq_policy", policy)] if isinstance(policy, json.Pairs) else [])]

    refuse_repeated(body, ours, [parsed], [] if parsed.dlq_policy is None else [parsed.dlq_policy])


def _config(topic: str, parsed: _Config, dlq_topic: str | None) -> dict[str, object]:
    fields: dict[str, object] = {}
    if parsed.retention_time is not None:
        fields["retention_ms"] = duration_ms("retention_time", parsed.retention_time)
    if parsed.visibility_timeout_default is not None:
        fields["lease_ms"] = duration_ms("visibility_timeout_default", parsed.visibility_timeout_default)
    if parsed.max_retries_default is not None:
        fields["max_retries"] = parsed.max_retries_default
    if parsed.max_payload_bytes is not None:
        fields["max_payload_bytes"] = number("max_payload_bytes", parsed.max_payload_bytes, 0, U64_MAX)
    if parsed.compression_enabled is not None:
        fields["compression"] = parsed.compression_enabled
    if (policy := parsed.dlq_policy) is not None:
        fields["dead_letter"] = (dlq_topic or f"{topic}.dlq") if policy.enabled else None
        if policy.retention_time is not None:
            fields["dead_letter_ttl_ms"] = duration_ms("dlq_policy.retention_time", policy.retention_time)
    return fields


# ---- messages


def decode_enqueue(body: bytes) -> tuple[str, NewMessage]:
    parsed = json.decode(_messages, body)
    refuse_repeated(body, root_of, [parsed], data=lambda: [bytes(parsed.payload_json)])
    return check_topic(parsed.topic), _new_message(parsed, "")


def decode_batch(body: bytes) -> tuple[list[tuple[str, NewMessage]], str]:
    """The messages of a batch, each with its heap, and the name of its transaction."""
    parsed = json.decode(_batches, body)
    messages, requests = parsed.messages or [], parsed.requests or []

    def data() -> list[bytes]:
        return [bytes(each.payload_json) for each in (*messages, *requests)]

    refuse_repeated(body, _root_and("messages", "requests"), [parsed], messages, requests, data=data)
    given = parsed.messages if parsed.messages is not None else parsed.requests
    if given is None:
        raise InvalidRequest("messages is required", field="messages", expected="a list of messages")
    name = "requests" if parsed.messages is None else "messages"
    return [
        (check_topic(each.topic), _new_message(each, f"{name}[{index}].")) for index, each in enumerate(given)
    ], parsed.transaction_id or ""


def _new_message(parsed: _Message, field: str) -> NewMessage:
    payload, is_json = parsed.payload or b"", False
    if parsed.payload_json is not NO_JSON:
        if parsed.payload is not None:
            raise InvalidRequest(
                f"{field}payload and {field}payload_json both are the payload: give one of them",
                field=f"{field}payload_json",
                expected="payload or payload_json",
            )
        payload, is_json = bytes(parsed.payload_json), True
    priority, epoch, sequence = parsed.priority, parsed.epoch, parsed.sequence
    return NewMessage(
        payload=payload,
        priority=0 if priority is None else number(f"{field}priority", priority, I64_MIN, I64_MAX),
        partition_key=parsed.partition_key,
        partition=parsed.partition_id,
        producer_id=parsed.producer_id,
        epoch=0 if epoch is None else number(f"{field}epoch", epoch, 0, U64_MAX),
        sequence=None if sequence is None else number(f"{field}sequence", sequence, 0, U64_MAX),
        max_retries=parsed.max_retries,
        delay_ms=0 if parsed.not_before is None else duration_ms(f"{field}not_before", parsed.not_before),
        is_json=is_json,
        meta=parsed.meta or None,
    )


def decode_pop(body: bytes) -> PopRequest:
    parsed = _decode(_pops, body)
    partitions = parsed.partition_ids or []
    for index, partition in enumerate(partitions):
        whole(f"partition_ids[{index}]", partition, PARTITIONS_MAX - 1)
    return PopRequest(
        check_topic(parsed.topic),
        1 if parsed.max is None else whole("max", parsed.max, U64_MAX),
        0 if parsed.wait_time is None else duration_ms("wait_time", parsed.wait_time),
        optional_ms("visibility_timeout", parsed.visibility_timeout) or None,
        tuple(partitions),
        parsed.consumer or "",
    )


def decode_settle(body: bytes, needs_extension: bool = False) -> SettleRequest:
    parsed = json.decode(_settles, body)
    refuse_repeated(body, _root_and("leases"), [parsed], parsed.leases or [])
    if parsed.leases is not None and parsed.lease_token is not None:
        message = "lease_token and leases both say which: give one of them"
        raise InvalidRequest(message, field="leases", expected="lease_token or leases")
    if parsed.leases is not None:
        leases = [LeaseRef(lease.lease_token, lease.message_id) for lease in parsed.leases]
    elif parsed.lease_token:
        leases = [LeaseRef(parsed.lease_token, parsed.message_id or "")]
    else:
        expected = "the token that came with the message, or leases with one each"
        raise InvalidRequest("lease_token is required", field="lease_token", expected=expected)
    if needs_extension and parsed.extension is None:
        raise InvalidRequest("extension is required", field="extension", expected="seconds from now")
    return SettleRequest(
        check_topic(parsed.topic),
        leases,
        parsed.leases is None,
        optional_ms("backoff_override", parsed.backoff_override),
        parsed.reason or "",
        bool(parsed.undelivered),
        optional_ms("extension", parsed.extension) or 0,
    )


# ---- single messages, dead letters


def decode_move(body: bytes) -> tuple[str, str]:
    """A message id, and why."""
    parsed = _decode(_moves, body)
    return parsed.message_id, parsed.reason or ""


def decode_reprioritize(body: bytes) -> tuple[str, int]:
    parsed = _decode(_reprioritizes, body)
    return parsed.message_id, number("priority", parsed.priority, I64_MIN, I64_MAX)


def decode_cancel(body: bytes) -> str:
    return _decode(_cancels, body).message_id


def decode_purge(body: bytes) -> int | None:
    """The partition, None for all of them; an empty body says nothing."""
    if not body:
        return None
    partition = _decode(_purges, body).partition_id
    return None if partition is None else whole("partition_id", partition, PARTITIONS_MAX - 1)


def decode_dead(body: bytes) -> DeadRequest:
    """Which dead letters; an empty body is all of them."""
    parsed = _decode(_deads, body or b"{}")
    least, most = parsed.priority_min, parsed.priority_max
    return DeadRequest(
        DeadFilter(
            message_ids=tuple(parsed.message_ids or ()),
            reason=parsed.reason,
            died_from_ms=_milliseconds(parsed.died_from),
            died_before_ms=_milliseconds(parsed.died_before),
            priority_min=None if least is None else number("priority_min", least, I64_MIN, I64_MAX),
            priority_max=None if most is None else number("priority_max", most, I64_MIN, I64_MAX),
        ),
        whole("limit", parsed.limit, U64_MAX),
        bool(parsed.dry_run),
    )


# ---- what they share


def _decode(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    """A body without objects in it."""
    parsed = json.decode(decoder, body)
    refuse_repeated(body, root_of, [parsed])
    return parsed


def _root_and(*lists: str) -> Walk:
    """The body itself, and the objects in lists of it."""

    def ours(root: json.Pairs) -> list[tuple[str, json.Pairs]]:
        return [
            ("", root),
            *((f"{name}[{place}]", each) for name in lists for place, each in enumerate(root.last(name) or ())),
        ]

    return ours


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * SECOND_MS)


def number(field: str, value: Number, least: int, most: int) -> int:
    """A whole number, also as text."""
    if isinstance(value, str):
        digits = value.removeprefix("-")
        # The digits of other scripts are decimals too.
        found = int(value) if digits.isascii() and digits.isdecimal() and len(digits) <= 20 else None
    else:
        found = value
    if found is None or not least <= found <= most:
        expected = f"a whole number from {least} to {most}"
        shown = shorten(value)
        raise InvalidRequest(f"{field} must be {expected}, not {shown}", field=field, value=shown, expected=expected)
    return found
