"""Watching in JSON: what a watcher asks for, and the text of what it is told.

What is told is one JSON object an event. Its text is made once for everybody, without the opening brace, so that each
protocol can put its own beginning in front: `data: {` on an event stream, `{"op":"record",` on a WebSocket.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topics.core.cut import Shape
from topics.core.match import Match, parse_match
from topics.core.names import check_topic, shorten
from topics.core.view import View
from topics.errors import InvalidRequest
from topics.limits import (
    BATCH_BYTES_DEFAULT,
    HEARTBEAT_MS_DEFAULT,
    HEARTBEAT_MS_MAX,
    HEARTBEAT_MS_MIN,
    PARTITIONS_MAX,
    U64_MAX,
)
from topics.model import Tombstone
from topics.wire import json
from topics.wire.numbers import whole

PARTITION_MARK = "#"
"""In a key: `jobs#2` is partition 2 of `jobs`. No topic's name has one."""
WILDCARD = "*"
"""At the end of a key: every topic whose name begins with what stands before it."""

CONSISTENCIES = ("eventual", "strong")

_RECORD = b'"topic":"%b",%b"records":[%b],"from_seq":%d,"to_seq":%d,"head_seq":%d}'
_TOMBSTONE = b'"topic":"%b",%b"reason":"%b","gap_from":%d,"gap_to":%d,"earliest_seq":%d,"head_seq":%d}'
_CAUGHT_UP = b'"topic":"%b",%b"head_seq":%d}'
_TOPIC_DELETED = b'"topic":"%b",%b"head_seq":%d,"reason":"deleted"}'


class PlaceFields(msgspec.Struct):
    """Where to begin in a topic, as a client says it."""

    from_seq: int | None = None
    tail: bool | None = None
    partition: int | None = None
    match: Any = None


class ViewFields(msgspec.Struct, kw_only=True):
    """What to show and in which portions, as a client says it."""

    node: str | list[str] | None = None
    limit: int | None = None
    max_batch_bytes: int | None = None
    include_meta: bool | None = None
    include_tags: bool | None = None
    include_data: bool | None = None
    consistency: str | None = None
    match: Any = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One topic to follow, or with `wildcard` all whose names begin with `topic`."""

    topic: str
    wildcard: bool = False
    partition: int = 0
    from_seq: int = 0
    tail: bool = False
    view: View


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True):
    wanted: tuple[Wanted, ...]
    view: View
    """For topics that only the cursor names."""
    heartbeat_ms: int
    cursor: str | None
    """A composite id that says where to go on."""


class _Body(ViewFields, kw_only=True):
    topics: dict[str, PlaceFields | None] | None = None
    heartbeat_ms: int | None = None
    cursor: str | None = None


_decoder = msgspec.json.Decoder(_Body)


def decode_watch(body: bytes) -> WatchRequest:
    """The watch a body asks for, or `InvalidRequest` naming the field that is wrong."""
    parsed = json.decode(_decoder, body)
    json.refuse_repeated_keys(body, objects_of)
    view = view_of(parsed)
    if not parsed.topics and parsed.cursor is None:
        expected = "an object with at least one topic"
        raise InvalidRequest(f"topics must be {expected}", field="topics", expected=expected)
    heartbeat_ms = HEARTBEAT_MS_DEFAULT
    if parsed.heartbeat_ms is not None:
        heartbeat_ms = min(max(parsed.heartbeat_ms, HEARTBEAT_MS_MIN), HEARTBEAT_MS_MAX)
    return WatchRequest(
        wanted=wanted_of(parsed.topics or {}, view), view=view, heartbeat_ms=heartbeat_ms, cursor=parsed.cursor
    )


def objects_of(root: json.Pairs) -> list[tuple[str, json.Pairs]]:
    """The objects of a request in which no key may be given twice, with their paths."""
    found = [("", root)]
    topics = root.last("topics")
    if isinstance(topics, json.Pairs):
        found.append(("topics", topics))
        found += [(f"topics.{name}", fields) for name, fields in topics if isinstance(fields, json.Pairs)]
    return found


def view_of(fields: ViewFields) -> View:
    """A limit or a budget of 0 is the engine's default; the engine clamps what is above its own."""
    if fields.consistency is not None and fields.consistency not in CONSISTENCIES:
        expected = " or ".join(CONSISTENCIES)
        shown = shorten(fields.consistency)
        raise InvalidRequest(
            f'consistency must be {expected}, not "{shown}"', field="consistency", value=shown, expected=expected
        )
    nodes = fields.node if isinstance(fields.node, list) else [fields.node] if fields.node is not None else []
    budget = fields.max_batch_bytes
    return View(
        limit=whole("limit", fields.limit, U64_MAX),
        byte_budget=BATCH_BYTES_DEFAULT if budget is None else whole("max_batch_bytes", budget, U64_MAX),
        nodes=tuple(node.encode() for node in nodes),
        match=None if fields.match is None else parse_match(fields.match),
        shape=Shape(
            tags=bool(fields.include_tags),
            meta=fields.include_meta is not False,
            data=fields.include_data is not False,
        ),
        strong=fields.consistency == "strong",
    )


def wanted_of(topics: dict[str, PlaceFields | None], view: View) -> tuple[Wanted, ...]:
    """What a map of topics asks for, each log once."""
    found: dict[tuple[str, bool, int], Wanted] = {}
    for key, given in topics.items():
        wanted = _wanted(key, given or PlaceFields(), view)
        twin = (wanted.topic, wanted.wildcard, wanted.partition)
        if twin in found:
            field = f"topics.{key}"
            message = f"{field} names partition {wanted.partition} of {wanted.topic} a second time"
            raise InvalidRequest(message, field=field, expected="each partition once")
        found[twin] = wanted
    return tuple(found.values())


def _wanted(key: str, given: PlaceFields, view: View) -> Wanted:
    field = f"topics.{shorten(key)}"
    topic, partition, wildcard = parse_key(key, field)
    if given.partition is not None:
        if wildcard or PARTITION_MARK in key:
            expected = "no partition beside a wildcard or a key that names one"
            where = f"{field}.partition"
            raise InvalidRequest(f"{where}: expected {expected}", field=where, expected=expected)
        partition = whole(f"{field}.partition", given.partition, PARTITIONS_MAX - 1)
    match: Match | None = view.match
    if given.match is not None:
        match = parse_match(given.match, f"{field}.match")
    return Wanted(
        topic=topic,
        wildcard=wildcard,
        partition=partition,
        from_seq=whole(f"{field}.from_seq", given.from_seq, U64_MAX),
        tail=bool(given.tail),
        view=View(view.limit, view.byte_budget, view.nodes, match, view.shape, view.strong),
    )


def parse_key(key: str, field: str = "topic") -> tuple[str, int, bool]:
    """Topic, partition, and whether it is a wildcard: of `jobs`, `jobs#2` or `tenant42:*`."""
    if key.endswith(WILDCARD):
        prefix = key.removesuffix(WILDCARD)
        if prefix:
            check_topic(prefix, field)
        return prefix, 0, True
    topic, mark, number = key.partition(PARTITION_MARK)
    check_topic(topic, field)
    if not mark:
        return topic, 0, False
    if not (number.isascii() and number.isdecimal() and len(number) <= 4 and int(number) < PARTITIONS_MAX):
        expected = f"a partition from 0 to {PARTITIONS_MAX - 1} behind {PARTITION_MARK}"
        raise InvalidRequest(f'{field} "{shorten(key)}": expected {expected}', field=field, expected=expected)
    return topic, int(number), False


# ---- what is told


def record_text(topic: bytes, partition: bytes, body: bytes, from_seq: int, to_seq: int, head_seq: int) -> bytes:
    """`partition` is its whole field, with a comma, and empty for a topic that has only one."""
    return _RECORD % (topic, partition, body, from_seq, to_seq, head_seq)


def tombstone_text(topic: bytes, partition: bytes, tombstone: Tombstone, reason: str) -> bytes:
    gap = (tombstone.gap_from, tombstone.gap_to, tombstone.earliest_seq, tombstone.head_seq)
    return _TOMBSTONE % (topic, partition, reason.encode(), *gap)


def caught_up_text(topic: bytes, partition: bytes, head_seq: int) -> bytes:
    return _CAUGHT_UP % (topic, partition, head_seq)


def topic_deleted_text(topic: bytes, partition: bytes, head_seq: int) -> bytes:
    return _TOPIC_DELETED % (topic, partition, head_seq)
