from __future__ import annotations

import json

import pytest

from topics.core.config import build
from topics.errors import InvalidRequest
from topics.model import TopicConfig
from topics.wire.config import decode_config, encode_config


def test_a_config_survives_the_wire() -> None:
    config = build("jobs", {"type": "queue", "durable": True, "priority": 10, "dead_letter": "jobs.dlq"})
    assert build("jobs", decode_config(encode_config(config))) == config


def test_the_wire_is_the_documented_object() -> None:
    assert list(json.loads(encode_config(TopicConfig())))[:7] == [
        "type",
        "ttl_ms",
        "cap_records",
        "cap_bytes",
        "discard",
        "durable",
        "durability",
    ]


def test_an_empty_body_names_nothing() -> None:
    assert decode_config(b"") == decode_config(b"{}") == {}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[]", "the body must be object, not array"),
        (b"{", "not valid JSON"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (rb'{"a":"\ud800"}', "half of a surrogate pair"),
        (b'{"ttl_ms":1,"ttl_ms":2}', "ttl_ms is given twice"),
        (b'{"a":' + b"[" * 100_000, "at most 512 deep"),
    ],
)
def test_what_is_not_a_config(body: bytes, says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_config(body)
    assert says in caught.value.message
