"""Images into changes: pairs by key, in an order that does not depend on how they came."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from topics.spark.pipeline.pairing import changes_of
from topics.spark.pipeline.stops import KeyBroken

ROW = pa.struct([("id", pa.int64()), ("body", pa.string())])
FEED = pa.schema(
    [
        ("id", pa.int64()),
        ("body", pa.string()),
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("ms")),
    ]
)
IMAGES = [
    (1, "a", "insert", 1),
    (2, "b", "insert", 1),
    (1, "a", "update_preimage", 2),
    (1, "A", "update_postimage", 2),
    (3, "c", "insert", 2),
    (2, "b", "delete", 2),
    # In version 3 keys move up by one: 1 becomes 2, and 3 becomes 4.
    (1, "A", "update_preimage", 3),
    (2, "A", "update_postimage", 3),
    (3, "c", "update_preimage", 3),
    (4, "c", "update_postimage", 3),
]


def feed(*images: tuple[int, str, str, int]) -> Any:
    return pa.Table.from_pylist(
        [
            {"id": id, "body": body, "_change_type": kind, "_commit_version": version, "_commit_timestamp": version}
            for id, body, kind, version in images
        ],
        schema=FEED,
    )


def told(table: Any) -> list[tuple[Any, ...]]:
    found = changes_of(table, ["id"], ROW, "t").to_pylist()
    return [(each["version"], each["at"], each["op"], _row(each["before"]), _row(each["after"])) for each in found]


def _row(row: dict[str, Any] | None) -> tuple[Any, ...] | None:
    return None if row is None else tuple(row.values())


def test_each_image_finds_its_partner_whatever_the_order() -> None:
    wanted = [
        (1, 0, "insert", None, (1, "a")),
        (1, 1, "insert", None, (2, "b")),
        (2, 0, "delete", (2, "b"), None),
        (2, 1, "update", (1, "a"), (1, "A")),
        (2, 2, "insert", None, (3, "c")),
        (3, 0, "delete", (1, "A"), None),
        (3, 1, "delete", (3, "c"), None),
        (3, 2, "insert", None, (2, "A")),
        (3, 3, "insert", None, (4, "c")),
    ]
    chance = random.Random(7)
    for _ in range(20):
        images = chance.sample(IMAGES, len(IMAGES))
        assert told(feed(*images)) == wanted


def test_what_is_removed_and_added_again_is_an_update_or_nothing() -> None:
    rewritten = [(1, "a", "delete", 5), (1, "a", "insert", 5), (2, "b", "delete", 5), (2, "B", "insert", 5)]
    others = [(3, "c", "delete", 5), (4, "d", "insert", 5), (1, "a", "delete", 6)]
    assert told(feed(*rewritten, *others)) == [
        (5, 0, "delete", (3, "c"), None),
        (5, 1, "update", (2, "b"), (2, "B")),
        (5, 2, "insert", None, (4, "d")),
        (6, 0, "delete", (1, "a"), None),
    ]


def test_rows_that_share_a_key_are_told_one_by_one() -> None:
    twice = [(1, "a", "delete", 5), (1, "b", "delete", 5), (1, "c", "insert", 5), (1, "c", "insert", 5)]
    assert [each[2] for each in told(feed(*twice))] == ["delete", "delete", "insert", "insert"]


def test_a_column_that_a_feed_lacks_is_null() -> None:
    wider = pa.struct([*ROW, pa.field("more", pa.float64())])
    found = changes_of(feed((1, "a", "insert", 1)), ["id"], wider, "t").to_pylist()
    assert found[0]["after"] == {"id": 1, "body": "a", "more": None}


def test_a_key_that_two_rows_share_is_refused() -> None:
    twice = [(1, "a", "update_preimage", 4), (1, "b", "update_preimage", 4)]
    with pytest.raises(KeyBroken, match=r'version 4 of table "t" updates 2 rows with id = 1'):
        told(feed(*twice, (1, "c", "update_postimage", 4), (1, "d", "update_postimage", 4)))


def test_images_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(KeyBroken, match=r"1 rows before and 0 after"):
        told(feed((1, "a", "update_preimage", 4)))


def test_nothing_is_nothing() -> None:
    assert told(feed()) == []
