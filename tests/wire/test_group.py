from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from topics.core.groupcommands import AckGroup, Consume, ExtendGroup, NackGroup, ResetGroup
from topics.errors import InvalidRequest
from topics.groupmodel import EARLIEST, LATEST, Start, at_seq, at_ts
from topics.limits import PARTITIONS_MAX, U64_MAX
from topics.wire import group
from topics.wire.group import ConsumeRequest, parse_start, start_fields


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def consume(**fields: object) -> ConsumeRequest:
    return group.decode_consume("t", "g", body(**fields))


def refused(verb: str, text: bytes) -> InvalidRequest:
    decode: Callable[[str, str, bytes], object] = getattr(group, f"decode_{verb}")
    with pytest.raises(InvalidRequest) as caught:
        decode("t", "g", text)
    return caught.value


@pytest.mark.parametrize("text", [b"", b"{}", b'{"partition":null,"limit":null,"from":null}'])
def test_a_consume_that_says_nothing(text: bytes) -> None:
    assert group.decode_consume("t", "g", text) == ConsumeRequest(Consume("t", "g"), 0, None, False)


def test_a_consume_that_says_everything() -> None:
    found = consume(
        **{"from": {"ts": 9}},
        limit=5,
        wait_ms=7,
        partition=3,
        consumer="c",
        visibility_ms=100,
        max_batch_bytes=4096,
        include_tags=True,
        ack_upto_seq=8,
        ack_claim_id="x",
    )
    assert found == ConsumeRequest(
        Consume("t", "g", 3, at_ts(9), 5, "c", 4096, 100, True),
        7,
        AckGroup("t", "g", 8, 3, "c", claim_id="x"),
        False,
    )


def test_what_is_acked_before_may_be_of_another_partition() -> None:
    anywhere = consume(partition="any", ack_upto_seq=1, ack_partition=2)
    assert (anywhere.anywhere, anywhere.command.partition) == (True, 0)
    assert anywhere.ack == AckGroup("t", "g", 1, 2)
    assert consume(partition="any", ack_upto_seq=1).ack == AckGroup("t", "g", 1, 0)


def test_what_is_done_with_a_claim() -> None:
    fields: dict[str, Any] = {"upto_seq": 9, "from_seq": 5, "partition": 2, "consumer": "c", "claim_id": "x"}
    assert group.decode_ack("t", "g", body(**fields)) == AckGroup("t", "g", 9, 2, "c", 5, "x")
    assert group.decode_nack("t", "g", body(**fields, delay_ms=3)) == NackGroup("t", "g", 9, 2, "c", 5, "x", 3)
    assert group.decode_extend("t", "g", body(**fields, visibility_ms=3)) == ExtendGroup("t", "g", 9, 2, "c", 5, "x", 3)
    assert group.decode_nack("t", "g", b"") == NackGroup("t", "g")
    assert group.decode_extend("t", "g", b"") == ExtendGroup("t", "g")
    assert group.decode_reset("t", "g", body(to="latest", partition=1)) == ResetGroup("t", "g", LATEST, 1)


@pytest.mark.parametrize(
    ("given", "start"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        (0, at_seq(0)),
        (U64_MAX, at_seq(U64_MAX)),
        ({"ts": 0}, at_ts(0)),
        ({"ts": U64_MAX}, at_ts(U64_MAX)),
    ],
)
def test_where_a_group_begins_is_read_and_told_the_same(given: object, start: Start) -> None:
    assert parse_start("from", given) == start
    assert start_fields(start) == given


@pytest.mark.parametrize(
    "given",
    [
        "Earliest",
        True,
        -1,
        U64_MAX + 1,
        1.0,
        [],
        {},
        {"ts": True},
        {"ts": "1"},
        {"ts": -1},
        {"ts": U64_MAX + 1},
        {"ts": 1, "seq": 1},
        None,
    ],
)
def test_where_no_group_begins(given: object) -> None:
    found = refused("reset", body(to=given))
    assert found.detail["field"] == "to" and '"earliest", "latest", a seq, or {"ts"' in found.message


@pytest.mark.parametrize(
    ("verb", "text", "field"),
    [
        ("consume", body(partition="all"), "partition"),
        ("consume", body(partition=True), "partition"),
        ("consume", body(partition=1.5), "partition"),
        ("consume", body(partition=PARTITIONS_MAX), "partition"),
        ("consume", body(partition=-1), "partition"),
        ("consume", body(**{"from": 1.5}), "from"),
        ("consume", body(limit=-1), "limit"),
        ("consume", body(wait_ms=-1), "wait_ms"),
        ("consume", body(visibility_ms=-1), "visibility_ms"),
        ("consume", body(max_batch_bytes="1"), "max_batch_bytes"),
        ("consume", body(ack_upto_seq=-1), "ack_upto_seq"),
        ("consume", body(ack_upto_seq=1, ack_partition=-1), "ack_partition"),
        ("consume", body(ack_partition=-1), "ack_partition"),
        ("ack", b"", "upto_seq"),
        ("ack", body(upto_seq=-1), "upto_seq"),
        ("ack", body(upto_seq=1, from_seq=-1), "from_seq"),
        ("nack", body(delay_ms=-1), "delay_ms"),
        ("extend", body(visibility_ms=-1), "visibility_ms"),
        ("reset", b"{}", "to"),
        ("reset", b'{"to":1,"to":2}', "to"),
        ("consume", b'{"from":1,"from":2}', "from"),
        ("consume", b'{"from":1,"fr\\u006fm":2}', "from"),
    ],
)
def test_what_is_wrong_is_named(verb: str, text: bytes, field: str) -> None:
    assert refused(verb, text).detail["field"] == field


def test_a_key_as_a_value_and_escapes_in_values_are_no_repetition() -> None:
    assert group.decode_nack("t", "g", body(consumer="consumer")).consumer == "consumer"
    assert group.decode_nack("t", "g", b'{"consumer":"\\u0063\\"onsumer"}').consumer == 'c"onsumer'
