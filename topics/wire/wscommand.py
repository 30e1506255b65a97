"""What a client asks over a WebSocket: one JSON object a message, whose `op` says which command it is.

A publish is the body of a write with `op`, `topic` and `request_id` beside the records, so it is decoded as one; here
only what stands beside is read. A subscribe has the fields of a watch.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from topics.errors import InvalidRequest
from topics.jsontext import NOT_UNDERSTOOD
from topics.limits import PARTITIONS_MAX, U64_MAX, WS_REQUEST_ID_CHARS_MAX
from topics.wire import json
from topics.wire.numbers import whole
from topics.wire.watch import PlaceFields, ViewFields, Wanted, objects_of, parse_key, view_of, wanted_of

OPS: Final = ("subscribe", "unsubscribe", "publish", "ping")

RequestId = str | int | None
"""The client's own name for a command, repeated in the answer."""


class Subscribe(msgspec.Struct, frozen=True):
    request_id: RequestId
    wanted: tuple[Wanted, ...]


class Unsubscribe(msgspec.Struct, frozen=True):
    request_id: RequestId
    keys: tuple[str, ...]
    """As `parse_key` reads them."""
    topic: str | None
    """The one key, when it was given as `topic`."""


class Publish(msgspec.Struct, frozen=True):
    request_id: RequestId
    topic: str
    with_seqs: bool
    has_config: bool


class Ping(msgspec.Struct, frozen=True):
    request_id: RequestId


Command = Subscribe | Unsubscribe | Publish | Ping


class _Named(msgspec.Struct):
    request_id: Any = None


class _Head(msgspec.Struct):
    op: str
    request_id: RequestId = None
    topic: str | None = None
    return_seqs: bool | None = None
    config: Raw | UnsetType = UNSET


class _Subscribe(ViewFields, kw_only=True):
    topics: dict[str, PlaceFields | None] | None = None
    from_seq: int | None = None
    tail: bool | None = None
    partition: int | None = None


class _Unsubscribe(msgspec.Struct):
    topics: list[str] | None = None


_named_decoder = msgspec.json.Decoder(_Named)
_head_decoder = msgspec.json.Decoder(_Head)
_subscribe_decoder = msgspec.json.Decoder(_Subscribe)
_unsubscribe_decoder = msgspec.json.Decoder(_Unsubscribe)


def request_id_of(message: bytes) -> RequestId:
    """What a client calls its command, as far as that can be read from one that is refused."""
    try:
        found = _named_decoder.decode(message).request_id
    except NOT_UNDERSTOOD:
        return None
    return found if isinstance(found, str | int) and _is_short(found) else None


def decode_command(message: bytes) -> Command:
    """The command of a message, or `InvalidRequest` naming the field that is wrong."""
    head = json.decode(_head_decoder, message)
    if not _is_short(head.request_id):
        expected = f"at most {WS_REQUEST_ID_CHARS_MAX} characters"
        raise InvalidRequest(f"request_id must have {expected}", field="request_id", expected=expected)
    match head.op:
        case "publish":
            return _publish(message, head)
        case "subscribe":
            return _subscribe(message, head)
        case "unsubscribe":
            return _unsubscribe(message, head)
        case "ping":
            return Ping(head.request_id)
    raise InvalidRequest(f"op must be one of {', '.join(OPS)}", field="op", expected=" or ".join(OPS))


def _is_short(request_id: RequestId) -> bool:
    return len(str(request_id)) <= WS_REQUEST_ID_CHARS_MAX


def _publish(message: bytes, head: _Head) -> Publish:
    # The decoder of a write looks after the keys that it knows; these are ours, and usually there once.
    if any(message.count(name) > 1 for name in _OUR_KEYS) or json.spelled_in_escapes(message):
        json.refuse_repeated_keys(message, lambda root: [("", root)])
    has_config = head.config is not UNSET and bytes(head.config) != b"null"
    return Publish(head.request_id, _topic(head), head.return_seqs is not False, has_config)


_OUR_KEYS = (b'"op"', b'"topic"', b'"request_id"', b'"return_seqs"')


def _subscribe(message: bytes, head: _Head) -> Subscribe:
    parsed = json.decode(_subscribe_decoder, message)
    json.refuse_repeated_keys(message, objects_of)
    view = view_of(parsed)
    _refuse_both(head, parsed.topics)
    if parsed.topics is not None:
        for name in ("from_seq", "tail", "partition"):
            if getattr(parsed, name) is not None:
                expected = f"{name} for each of the topics"
                raise InvalidRequest(
                    f"{name} says nothing beside topics: give {expected}", field=name, expected=expected
                )
        if not parsed.topics:
            expected = "an object with at least one topic"
            raise InvalidRequest(f"topics must be {expected}", field="topics", expected=expected)
        return Subscribe(head.request_id, wanted_of(parsed.topics, view))
    topic = _topic(head)
    parse_key(topic)
    whole("from_seq", parsed.from_seq, U64_MAX)
    whole("partition", parsed.partition, PARTITIONS_MAX - 1)
    place = PlaceFields(from_seq=parsed.from_seq, tail=parsed.tail, partition=parsed.partition)
    return Subscribe(head.request_id, wanted_of({topic: place}, view))


def _unsubscribe(message: bytes, head: _Head) -> Unsubscribe:
    topics = json.decode(_unsubscribe_decoder, message).topics
    json.refuse_repeated_keys(message, lambda root: [("", root)])
    _refuse_both(head, topics)
    keys = tuple(topics) if topics else (_topic(head),)
    for key in keys:
        parse_key(key)
    return Unsubscribe(head.request_id, keys, head.topic)


def _refuse_both(head: _Head, topics: object) -> None:
    if head.topic is not None and topics is not None:
        expected = "topic or topics"
        raise InvalidRequest("topic and topics are both given: give one of them", field="topics", expected=expected)


def _topic(head: _Head) -> str:
    if head.topic is None:
        raise InvalidRequest("topic is required", field="topic", expected="a value")
    return head.topic
