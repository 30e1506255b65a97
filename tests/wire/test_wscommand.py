from __future__ import annotations

import pytest

from topics.core.view import View
from topics.errors import InvalidRequest
from topics.wire.watch import Wanted
from topics.wire.wscommand import Ping, Publish, Subscribe, Unsubscribe, decode_command, request_id_of


def wanted(command: bytes) -> tuple[Wanted, ...]:
    found = decode_command(command)
    assert isinstance(found, Subscribe)
    return found.wanted


def test_each_command() -> None:
    assert decode_command(b'{"op":"ping","request_id":"a"}') == Ping("a")
    assert decode_command(b'{"op":"ping","request_id":1}') == Ping(1)
    assert decode_command(b'{"op":"ping","request_id":"%b"}' % (b"a" * 256)) == Ping("a" * 256)
    assert decode_command(b'{"op":"publish","topic":"t","records":[]}') == Publish(None, "t", True, False)
    assert decode_command(b'{"op":"unsubscribe","topic":"t*"}') == Unsubscribe(None, ("t*",), "t*")
    assert decode_command(b'{"op":"unsubscribe","topics":["a","b#2"]}') == Unsubscribe(None, ("a", "b#2"), None)


def test_what_stands_beside_the_records_of_a_publish() -> None:
    assert decode_command(b'{"op":"publish","topic":"t","return_seqs":false}') == Publish(None, "t", False, False)
    assert decode_command(b'{"op":"publish","topic":"t","return_seqs":null}') == Publish(None, "t", True, False)
    assert decode_command(b'{"op":"publish","topic":"t","config":{}}') == Publish(None, "t", True, True)
    assert decode_command(b'{"op":"publish","topic":"t","config":null}') == Publish(None, "t", True, False)
    with_ours_in_data = b'{"op":"publish","topic":"t","records":[{"data":{"op":1,"topic":"u","request_id":2}}]}'
    assert decode_command(with_ours_in_data) == Publish(None, "t", True, False)


def test_one_topic_and_many() -> None:
    (one,) = wanted(b'{"op":"subscribe","topic":"a","from_seq":7,"partition":2,"limit":5,"node":"n"}')
    assert (one.topic, one.from_seq, one.partition, one.tail, one.wildcard) == ("a", 7, 2, False, False)
    assert (one.view.limit, one.view.nodes) == (5, (b"n",))
    two = wanted(b'{"op":"subscribe","topics":{"a":{"tail":true},"b:*":{"from_seq":3},"c#1":null},"limit":5}')
    assert [(each.topic, each.wildcard, each.partition, each.from_seq, each.tail) for each in two] == [
        ("a", False, 0, 0, True),
        ("b:", True, 0, 3, False),
        ("c", False, 1, 0, False),
    ]
    assert {each.view for each in two} == {View(limit=5, byte_budget=two[0].view.byte_budget)}


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (b'{"op":"subscribe","topic":"a","topics":{}}', "topics"),
        (b'{"op":"subscribe","topics":{}}', "topics"),
        (b'{"op":"subscribe","topics":{"a":{}},"from_seq":1}', "from_seq"),
        (b'{"op":"subscribe","topics":{"a":{}},"partition":1}', "partition"),
        (b'{"op":"subscribe","topics":{"a":{},"a":{}}}', "topics.a"),
        (b'{"op":"subscribe","topic":"a","tail":1}', "tail"),
        (b'{"op":"subscribe","topic":"a","partition":99999}', "partition"),
        (b'{"op":"subscribe","topic":"a","limit":1,"limit":2}', "limit"),
        (b'{"op":"unsubscribe","topics":["a b"]}', "topic"),
        (b'{"op":"unsubscribe","topics":[]}', "topic"),
        (b'{"op":"publish","topic":"a","t\\u006fpic":"b"}', "topic"),
        (b'{"op":"publish","topic":7}', "topic"),
        (b'{"op":"ping","request_id":"%b"}' % (b"a" * 257), "request_id"),
        (b'{"op":"ping","request_id":%b}' % (b"1" * 257), "request_id"),
        (b'{"op":"pong"}', "op"),
        (b'{"op":7}', "op"),
        (b"{}", "op"),
    ],
)
def test_what_is_wrong_is_named(command: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_command(command)
    assert caught.value.detail["field"] == field


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b'{"request_id":"a","op":[]}', "a"),
        (b'{"request_id":7}', 7),
        (b'{"request_id":[]}', None),
        (b'{"request_id":"%b"}' % (b"a" * 257), None),
        (b'{"request_id":%b}' % (b"1" * 300), None),
        (b'{"request_id":"a"', None),
        (b"[" * 5000, None),
        (b"", None),
    ],
)
def test_who_is_refused_is_named_where_that_can_be_read(message: bytes, found: object) -> None:
    assert request_id_of(message) == found
