"""Counting finds what looking at every object finds, in bodies made by chance."""

from __future__ import annotations

import json
import random
from typing import Any

from topics.errors import InvalidRequest
from topics.wire.heap import decode_batch
from topics.wire.json import refuse_repeated_keys

VALUES = {
    "priority": ["1", "null", '"2"'],
    "payload_json": ['{"topic":"priority"}', '"topic"', '{"a":1,"a":2}', '"\\"topic\\""'],
    "partition_key": ['"topic"', '"k"', "null"],
    "meta": ['{"priority":"topic"}', "null"],
    "mine": ['{"topic":1,"topic":2}', "[]"],
}


def message_text(chance: random.Random) -> str:
    names = ["topic", *chance.choices(list(VALUES), k=chance.randrange(4))]
    chance.shuffle(names)
    fields = [(name, chance.choice(VALUES.get(name, ['"jobs"']))) for name in names]
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields) + "}"


def is_refused(body: bytes) -> bool:
    try:
        decode_batch(body)
    except InvalidRequest as error:
        assert "is given twice" in error.message
        return True
    return False


def is_repeated(body: bytes) -> bool:
    """Whether a key of ours is; one that nobody knows is passed over, once or twice."""

    def ours(root: Any) -> Any:
        known = [[pair for pair in each if pair[0] != "mine"] for each in root.last("messages")]
        return [("", root), *(("", each) for each in known)]

    try:
        refuse_repeated_keys(body, ours)
    except InvalidRequest:
        return True
    return False


def test_counting_finds_what_looking_finds() -> None:
    chance = random.Random(7)
    seen = {True: 0, False: 0}
    for _ in range(3000):
        texts = [message_text(chance) for _ in range(chance.randrange(1, 4))]
        body = ('{"messages":[' + ",".join(texts) + "]}").encode()
        repeated = is_repeated(body)
        seen[repeated] += 1
        # A key that nobody knows is noticed only when a body is looked at exactly.
        assert is_refused(body) or not repeated
        if body.count(b'"mine"') == 0:
            assert is_refused(body) == repeated
    assert min(seen.values()) > 300
