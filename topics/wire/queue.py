"""The bodies of a queue's verbs: claim, ack, nack, extend and redrive.

Workers send them all day, so a key given twice is looked for by counting, and only a body that may have one is parsed a
second time. Ranges that depend on a setting, or on the queue, are the engine's to check.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from topics.core.match import Match, parse_match
from topics.core.records import RecordLimits
from topics.errors import InvalidRequest
from topics.limits import PARTITIONS_MAX, REDRIVE_RATE_MAX, RESULT_PARTS_MAX, U64_MAX
from topics.wire import json
from topics.wire.numbers import whole
from topics.wire.records import WriteBatch, decode_write


class ClaimRequest(msgspec.Struct, frozen=True):
    node: str
    max: int
    lease_ms: int | None
    """None is the queue's own."""
    wait_ms: int
    partition: int


class Product(msgspec.Struct, frozen=True):
    """What an ack writes with it: one write to one topic."""

    topic: str
    batch: WriteBatch


class SettleRequest(msgspec.Struct, frozen=True):
    """An ack, a nack or an extend: which jobs, and whose they are."""

    node: str
    seqs: list[int]
    lease_ids: list[str] | None
    partition: int
    delay_ms: int = 0
    """Of a nack."""
    undelivered: bool = False
    """Of a nack."""
    lease_ms: int = 0
    """Of an extend."""
    products: tuple[Product, ...] = ()
    """Of an ack."""


class PlainAck(msgspec.Struct, frozen=True):
    """An ack without results, as it stands in a body."""

    node: str
    seqs: list[int]
    lease_ids: list[str] | None = None
    partition: int = 0


class RedriveRequest(msgspec.Struct, frozen=True, kw_only=True):
    destination: str | None
    source: str | None
    match: Match | None
    reason: str | None
    from_seq: int
    before_seq: int | None
    limit: int | None
    rate_per_second: int | None
    dry_run: bool
    partition: int


class DiscardRequest(msgspec.Struct, frozen=True, kw_only=True):
    source: str | None
    match: Match | None
    reason: str | None
    from_seq: int
    before_seq: int | None
    limit: int | None
    dry_run: bool
    partition: int


class _Claim(msgspec.Struct):
    node: str
    max: int | None = None
    lease_ms: int | None = None
    wait_ms: int | None = None
    partition: int | None = None


class _Ack(msgspec.Struct):
    node: str
    seqs: list[int]
    lease_ids: list[str] | None = None
    partition: int | None = None
    produce: list[Raw] | None = None


class _Nack(msgspec.Struct):
    node: str
    seqs: list[int]
    lease_ids: list[str] | None = None
    partition: int | None = None
    delay_ms: int | None = None
    delivered: bool | None = None


class _Extend(msgspec.Struct):
    node: str
    seqs: list[int]
    lease_ms: int
    lease_ids: list[str] | None = None
    partition: int | None = None


class _Redrive(msgspec.Struct):
    destination: str | None = None
    source: str | None = None
    match: Any = None
    reason: str | None = None
    from_seq: int | None = None
    before_seq: int | None = None
    limit: int | None = None
    rate_per_second: int | None = None
    dry_run: bool | None = None
    partition: int | None = None


class _Discard(msgspec.Struct):
    source: str | None = None
    match: Any = None
    reason: str | None = None
    from_seq: int | None = None
    before_seq: int | None = None
    limit: int | None = None
    dry_run: bool | None = None
    partition: int | None = None


class _Product(msgspec.Struct):
    topic: str


Body = TypeVar("Body", bound=msgspec.Struct)

_claims = msgspec.json.Decoder(_Claim)
_acks = msgspec.json.Decoder(_Ack)
_plain_acks = msgspec.json.Decoder(PlainAck)
_nacks = msgspec.json.Decoder(_Nack)
_extends = msgspec.json.Decoder(_Extend)
_redrives = msgspec.json.Decoder(_Redrive)
_discards = msgspec.json.Decoder(_Discard)
_products = msgspec.json.Decoder(_Product)
_KEYS: dict[type, tuple[bytes, ...]] = {
    kind: tuple(b'"%b"' % name.encode() for name in kind.__struct_fields__)
    for kind in (_Claim, _Ack, _Nack, _Extend, _Redrive, _Discard)
}


def decode_claim(body: bytes) -> ClaimRequest:
    parsed = _decode(_claims, body)
    return ClaimRequest(
        parsed.node,
        1 if parsed.max is None else whole("max", parsed.max, U64_MAX),
        None if parsed.lease_ms is None else whole("lease_ms", parsed.lease_ms, U64_MAX),
        whole("wait_ms", parsed.wait_ms, U64_MAX),
        whole("partition", parsed.partition, PARTITIONS_MAX - 1),
    )


def decode_ack(body: bytes, limits: RecordLimits) -> SettleRequest:
    parsed = _decode(_acks, body)
    return SettleRequest(
        parsed.node,
        parsed.seqs,
        parsed.lease_ids,
        whole("partition", parsed.partition, PARTITIONS_MAX - 1),
        products=_decode_products(parsed.produce, limits) if parsed.produce else (),
    )


def decode_plain_ack(body: bytes) -> PlainAck | None:
    """An ack that names jobs and no more, as nearly all do; None when there is more to say of it, or against it.

    What it holds needs a certain number of quotation marks. With no more of them there is no other key.
    """
    try:
        parsed = _plain_acks.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    strings = 3 if parsed.lease_ids is None else 4 + len(parsed.lease_ids)
    if parsed.partition:
        strings += 1
    is_plain = body.count(b'"') == 2 * strings and body.isascii() and 0 <= parsed.partition < PARTITIONS_MAX
    return parsed if is_plain else None


def decode_nack(body: bytes) -> SettleRequest:
    parsed = _decode(_nacks, body)
    return SettleRequest(
        parsed.node,
        parsed.seqs,
        parsed.lease_ids,
        whole("partition", parsed.partition, PARTITIONS_MAX - 1),
        delay_ms=whole("delay_ms", parsed.delay_ms, U64_MAX),
        undelivered=parsed.delivered is False,
    )


def decode_extend(body: bytes) -> SettleRequest:
    parsed = _decode(_extends, body)
    return SettleRequest(
        parsed.node,
        parsed.seqs,
        parsed.lease_ids,
        whole("partition", parsed.partition, PARTITIONS_MAX - 1),
        lease_ms=whole("lease_ms", parsed.lease_ms, U64_MAX),
    )


def decode_redrive(body: bytes) -> RedriveRequest:
    """An empty body is everything, back to where it came from."""
    parsed = _decode(_redrives, body or b"{}")
    return RedriveRequest(
        destination=parsed.destination,
        source=parsed.source,
        match=None if parsed.match is None else parse_match(parsed.match),
        reason=parsed.reason,
        from_seq=whole("from_seq", parsed.from_seq, U64_MAX),
        before_seq=None if parsed.before_seq is None else whole("before_seq", parsed.before_seq, U64_MAX),
        limit=_from_one("limit", parsed.limit, U64_MAX),
        rate_per_second=_from_one("rate_per_second", parsed.rate_per_second, REDRIVE_RATE_MAX),
        dry_run=bool(parsed.dry_run),
        partition=whole("partition", parsed.partition, PARTITIONS_MAX - 1),
    )


def decode_discard(body: bytes) -> DiscardRequest:
    """An empty body is every dead letter of the topic."""
    parsed = _decode(_discards, body or b"{}")
    return DiscardRequest(
        source=parsed.source,
        match=None if parsed.match is None else parse_match(parsed.match),
        reason=parsed.reason,
        from_seq=whole("from_seq", parsed.from_seq, U64_MAX),
        before_seq=None if parsed.before_seq is None else whole("before_seq", parsed.before_seq, U64_MAX),
        limit=_from_one("limit", parsed.limit, U64_MAX),
        dry_run=bool(parsed.dry_run),
        partition=whole("partition", parsed.partition, PARTITIONS_MAX - 1),
    )


def _decode(decoder: msgspec.json.Decoder[Body], body: bytes) -> Body:
    parsed = json.decode(decoder, body)
    for key in _KEYS[type(parsed)]:
        if body.count(key) > 1:
            break
    else:
        if b"\\" not in body or not json.spelled_in_escapes(body):
            return parsed
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return parsed


def _from_one(field: str, value: int | None, most: int) -> int | None:
    if value == 0:
        expected = f"a whole number from 1 to {most}"
        raise InvalidRequest(f"{field} must be {expected}, not 0", field=field, value="0", expected=expected)
    return None if value is None else whole(field, value, most)


def _decode_products(texts: list[Raw], limits: RecordLimits) -> tuple[Product, ...]:
    if len(texts) > RESULT_PARTS_MAX:
        expected = f"at most {RESULT_PARTS_MAX} writes"
        raise InvalidRequest(f"produce must be {expected}, not {len(texts)}", field="produce", expected=expected)
    products = []
    for place, text in enumerate(texts):
        try:
            products.append(_decode_product(bytes(text), limits))
        except InvalidRequest as error:
            path = f"produce[{place}].{error.detail.get('field', '')}".rstrip(".")
            raise type(error)(f"produce[{place}]: {error.message}", **(error.detail | {"field": path})) from None
    return tuple(products)


def _decode_product(text: bytes, limits: RecordLimits) -> Product:
    topic = json.decode(_products, text).topic
    batch = decode_write(text, limits)
    json.refuse_repeated_keys(text, lambda root: [("", root)])
    if batch.dedupe_key is not None:
        raise InvalidRequest(
            "what an ack produces is written once with it, and takes no key of its own",
            field="idempotency_key",
            expected="no idempotency_key, producer_id, epoch or sequence",
        )
    return Product(topic, batch)
