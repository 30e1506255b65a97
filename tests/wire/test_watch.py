"""What a watcher asks for, from JSON to values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topics.core.cut import Shape
from topics.core.match import Match
from topics.core.view import View
from topics.errors import InvalidRequest
from topics.model import Reason, Tombstone
from topics.wire.watch import (
    Wanted,
    caught_up_text,
    decode_watch,
    parse_key,
    record_text,
    tombstone_text,
    topic_deleted_text,
)

VIEW = View(limit=0, byte_budget=262_144)


def decode(**body: Any):  # type: ignore[no-untyped-def]
    return decode_watch(msgspec.json.encode(body))


def test_the_defaults() -> None:
    found = decode(topics={"jobs": {}, "events": None})
    assert found.wanted == (Wanted(topic="jobs", view=VIEW), Wanted(topic="events", view=VIEW))
    assert (found.heartbeat_ms, found.cursor, found.view) == (15_000, None, VIEW)


def test_everything_that_can_be_said() -> None:
    found = decode(
        topics={
            "jobs": {"from_seq": 7, "partition": 2, "match": "urgent"},
            "jobs#3": {"tail": True},
            "tenant42:*": {"from_seq": 1},
        },
        node=["a", "b"],
        limit=10,
        max_batch_bytes=100,
        heartbeat_ms=2000,
        include_meta=False,
        include_tags=True,
        include_data=False,
        consistency="strong",
        match=["tag", "Glob", "x*"],
        cursor="abc",
    )
    everywhere = View(10, 100, (b"a", b"b"), Match(b"x", True), Shape(tags=True, meta=False, data=False), True)
    urgent = View(10, 100, (b"a", b"b"), Match(b"urgent", False), Shape(tags=True, meta=False, data=False), True)
    assert found.wanted == (
        Wanted(topic="jobs", partition=2, from_seq=7, view=urgent),
        Wanted(topic="jobs", partition=3, tail=True, view=everywhere),
        Wanted(topic="tenant42:", wildcard=True, from_seq=1, view=everywhere),
    )
    assert (found.heartbeat_ms, found.cursor) == (2000, "abc")


@pytest.mark.parametrize(
    ("given", "taken"), [(None, 15_000), (1, 1000), (10_000, 10_000), (999_999, 60_000), (-5, 1000)]
)
def test_heartbeats_are_clamped(given: int | None, taken: int) -> None:
    assert decode(topics={"jobs": {}}, heartbeat_ms=given).heartbeat_ms == taken


def test_no_budget_is_a_quarter_of_a_mebibyte_and_zero_is_the_engines() -> None:
    assert decode(topics={"jobs": {}}).view.byte_budget == 256 * 1024
    assert decode(topics={"jobs": {}}, max_batch_bytes=0).view.byte_budget == 0


def test_beside_a_cursor_topics_may_be_left_out() -> None:
    found = decode(cursor="abc")
    assert found.wanted == () and found.view == VIEW


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "topics"),
        ({"topics": {}}, "topics"),
        ({"topics": {"": {}}}, "topics."),
        ({"topics": {"a*b": {}}}, "topics.a*b"),
        ({"topics": {"-*": {}}}, "topics.-*"),
        ({"topics": {"jobs#": {}}}, "topics.jobs#"),
        ({"topics": {"jobs#x": {}}}, "topics.jobs#x"),
        ({"topics": {"jobs#1024": {}}}, "topics.jobs#1024"),
        ({"topics": {"jobs#1": {"partition": 1}}}, "topics.jobs#1.partition"),
        ({"topics": {"jobs*": {"partition": 1}}}, "topics.jobs*.partition"),
        ({"topics": {"jobs": {"partition": 1024}}}, "topics.jobs.partition"),
        ({"topics": {"jobs": {"partition": 1}, "jobs#1": {}}}, "topics.jobs#1"),
        ({"topics": {"jobs": {}}, "limit": -1}, "limit"),
        ({"topics": {"jobs": {}}, "max_batch_bytes": -1}, "max_batch_bytes"),
        ({"topics": {"jobs": {}}, "consistency": "later"}, "consistency"),
        ({"topics": {"jobs": {}}, "match": 3}, "match"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(**body)
    assert caught.value.detail["field"] == field


@pytest.mark.parametrize(
    "body",
    [
        b'{"topics":{"a":{}},"limit":1,"limit":2}',
        b'{"topics":{"a":{},"a":{}}}',
        b'{"topics":{"a":{"tail":true,"tail":false}}}',
    ],
)
def test_a_key_given_twice_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="twice"):
        decode_watch(body)


@pytest.mark.parametrize(
    ("key", "parsed"),
    [
        ("jobs", ("jobs", 0, False)),
        ("jobs#0", ("jobs", 0, False)),
        ("jobs#12", ("jobs", 12, False)),
        ("a:*", ("a:", 0, True)),
        ("*", ("", 0, True)),
    ],
)
def test_keys(key: str, parsed: tuple[str, int, bool]) -> None:
    assert parse_key(key) == parsed


def test_texts_are_objects_without_their_brace() -> None:
    tombstone = Tombstone(80_000, 83_000, Reason.CAP, 3001, 83_001, 88_130)
    texts = {
        record_text(b"jobs", b"", b'{"$seq":1},{"$seq":2}', 0, 2, 9): {
            "topic": "jobs",
            "records": [{"$seq": 1}, {"$seq": 2}],
            "from_seq": 0,
            "to_seq": 2,
            "head_seq": 9,
        },
        tombstone_text(b"events", b'"partition":3,', tombstone, "from_seq_too_old"): {
            "topic": "events",
            "partition": 3,
            "reason": "from_seq_too_old",
            "gap_from": 80_000,
            "gap_to": 83_000,
            "earliest_seq": 83_001,
            "head_seq": 88_130,
        },
        caught_up_text(b"jobs", b"", 5210): {"topic": "jobs", "head_seq": 5210},
        topic_deleted_text(b"jobs", b"", 12): {"topic": "jobs", "head_seq": 12, "reason": "deleted"},
    }
    for text, fields in texts.items():
        decoded = msgspec.json.decode(b"{" + text)
        assert decoded == fields and list(decoded) == list(fields)
