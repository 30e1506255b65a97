from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from topics.errors import InvalidRequest
from topics.heapmodel import DeadFilter, LeaseRef, NewMessage
from topics.wire.heap import (
    I64_MAX,
    I64_MIN,
    PopRequest,
    decode_batch,
    decode_cancel,
    decode_change,
    decode_dead,
    decode_enqueue,
    decode_make,
    decode_move,
    decode_pop,
    decode_purge,
    decode_reprioritize,
    decode_settle,
)


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_a_heap_is_named_and_its_config_is_that_of_a_topic() -> None:
    assert decode_make(body(topic="jobs")) == ("jobs", {})
    made = decode_make(
        body(
            topic="jobs",
            mode=1,
            partitions=4,
            retention_time=60,
            visibility_timeout_default="1.5s",
            max_retries_default=0,
            max_payload_bytes="1048576",
            compression_enabled=True,
            dlq_policy={"enabled": False, "retention_time": 5},
        )
    )
    assert made[1] == {
        "mode": "max",
        "partitions": 4,
        "retention_ms": 60_000,
        "lease_ms": 1500,
        "max_retries": 0,
        "max_payload_bytes": 1 << 20,
        "compression": True,
        "dead_letter": None,
        "dead_letter_ttl_ms": 5000,
    }


@pytest.mark.parametrize("mode", [2, "up", "Min", "x" * 10_000])
def test_another_mode_is_refused(mode: object) -> None:
    with pytest.raises(InvalidRequest, match="mode must be MIN or MAX, not") as refused:
        decode_make(body(topic="jobs", mode=mode))
    assert refused.value.detail["field"] == "mode" and len(refused.value.message) < 200


def test_dead_letters_go_on_going_where_they_went() -> None:
    policy = body(dlq_policy={"enabled": True})
    assert decode_change(policy, "jobs", "elsewhere") == {"dead_letter": "elsewhere"}
    assert decode_change(policy, "jobs", None) == {"dead_letter": "jobs.dlq"}
    assert decode_change(b"{}", "jobs", "elsewhere") == {}


def test_a_message_has_one_payload() -> None:
    assert decode_enqueue(body(topic="jobs")) == ("jobs", NewMessage())
    _, message = decode_enqueue(b'{"topic":"jobs","payload_json": {"a" : 1.50},"priority":"-7","not_before":"2s"}')
    assert (message.payload, message.is_json, message.priority, message.delay_ms) == (b'{"a" : 1.50}', True, -7, 2000)
    assert decode_enqueue(b'{"topic":"jobs","payload_json":null}')[1].payload == b"null"
    with pytest.raises(InvalidRequest, match="give one of them"):
        decode_enqueue(body(topic="jobs", payload="AA==", payload_json=1))


def test_what_is_wrong_with_a_message_of_a_batch_is_named_by_its_place() -> None:
    messages, transaction_id = decode_batch(body(requests=[{"topic": "jobs"}], transaction_id="t"))
    assert (len(messages), transaction_id) == (1, "t")
    for bad, field in (
        ({"priority": "x"}, "messages[1].priority"),
        ({"priority": 2**63}, "messages[1].priority"),
        ({"sequence": -1}, "messages[1].sequence"),
        ({"epoch": "1e3"}, "messages[1].epoch"),
        ({"not_before": "soon"}, "messages[1].not_before"),
        ({"payload": 7}, "messages[1].payload"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            decode_batch(body(messages=[{"topic": "jobs"}, {"topic": "jobs", **bad}]))
        assert refused.value.detail["field"] == field


def test_a_batch_has_messages() -> None:
    with pytest.raises(InvalidRequest, match="messages is required"):
        decode_batch(body(transaction_id="t"))
    assert decode_batch(body(messages=[])) == ([], "")


@pytest.mark.parametrize("field", ["priority", "epoch", "sequence", "not_before"])
@pytest.mark.parametrize("value", ["9" * 10_000, 10**4000, "x" * 10_000])
def test_a_long_value_is_not_sent_back_whole(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        decode_enqueue(body(topic="jobs", **{field: value}))
    assert refused.value.detail["field"] == field
    assert len(refused.value.message) < 300 and len(refused.value.detail["value"]) < 100


def test_a_pop_and_what_it_leaves_out() -> None:
    assert decode_pop(body(topic="jobs")) == PopRequest("jobs", 1, 0, None, (), "")
    asked = body(topic="jobs", max=9, wait_time=1.5, visibility_timeout=0, partition_ids=[1, 2], consumer="me")
    assert decode_pop(asked) == PopRequest("jobs", 9, 1500, None, (1, 2), "me")
    with pytest.raises(InvalidRequest, match=r"partition_ids\[0\]"):
        decode_pop(body(topic="jobs", partition_ids=[-1]))


def test_leases_are_named_one_by_one_or_many_at_once() -> None:
    one = decode_settle(body(topic="jobs", message_id="m", lease_token="t", backoff_override=1, reason="why"))
    assert (one.leases, one.strict, one.backoff_ms, one.reason) == ([LeaseRef("t", "m")], True, 1000, "why")
    many = decode_settle(body(topic="jobs", leases=[{"lease_token": "a"}, {"lease_token": "b", "message_id": "m"}]))
    assert (many.leases, many.strict) == ([LeaseRef("a"), LeaseRef("b", "m")], False)
    with pytest.raises(InvalidRequest, match="extension is required"):
        decode_settle(body(topic="jobs", lease_token="t"), needs_extension=True)
    assert decode_settle(body(topic="jobs", lease_token="t", extension=2), needs_extension=True).extension_ms == 2000
    with pytest.raises(InvalidRequest, match="lease_token and leases both say which"):
        decode_settle(body(topic="jobs", lease_token="t", leases=[]))
    for token in (None, ""):
        with pytest.raises(InvalidRequest, match="lease_token is required"):
            decode_settle(body(topic="jobs", message_id="m", lease_token=token))


def test_single_messages_are_named_by_their_ids() -> None:
    assert decode_move(body(message_id="m", reason="poison")) == ("m", "poison")
    assert decode_move(body(message_id="m")) == ("m", "")
    assert decode_cancel(body(message_id="m")) == "m"
    for priority in (I64_MIN, I64_MAX):
        assert decode_reprioritize(body(message_id="m", priority=priority)) == ("m", priority)
        assert decode_reprioritize(body(message_id="m", priority=str(priority))) == ("m", priority)
    for priority in (I64_MIN - 1, I64_MAX + 1, "--1", "+1", "٣", ""):
        with pytest.raises(InvalidRequest, match="priority must be a whole number"):
            decode_reprioritize(body(message_id="m", priority=priority))
    for decode in (decode_move, decode_cancel, decode_reprioritize):
        with pytest.raises(InvalidRequest, match="message_id is required"):
            decode(body(priority=1))


def test_dead_letters_are_chosen_by_what_is_true_of_them() -> None:
    assert decode_dead(b"").chosen == DeadFilter()
    asked = decode_dead(
        body(message_ids=["a"], reason="time*", died_from="2026-01-01T00:00:00Z", priority_min="-3", limit=5)
    )
    assert asked.limit == 5
    assert asked.chosen == DeadFilter(
        message_ids=("a",), reason="time*", died_from_ms=1_767_225_600_000, priority_min=-3
    )
    with pytest.raises(InvalidRequest):
        decode_dead(body(died_from="2026-01-01T00:00:00"))


def test_an_empty_purge_is_all_of_it() -> None:
    assert (decode_purge(b""), decode_purge(b"{}"), decode_purge(body(partition_id=3))) == (None, None, 3)


@pytest.mark.parametrize(
    ("decode", "text", "field"),
    [
        (decode_make, b'{"topic":"a","topic":"b"}', "topic"),
        (decode_make, b'{"topic":"a","dlq_policy":{"enabled":false,"enabled":true}}', "dlq_policy.enabled"),
        (decode_enqueue, b'{"topic":"a","priority":1,"priority":null}', "priority"),
        (decode_enqueue, b'{"topic":"a","payload_json":{"topic":1,"topic":2},"payload_json":{}}', "payload_json"),
        (decode_enqueue, rb'{"topic":"a","t\u006fpic":"b"}', "topic"),
        (decode_batch, b'{"messages":[],"messages":[{"topic":"a"}]}', "messages"),
        (
            decode_batch,
            b'{"messages":[{"topic":"a","priority":1,"priority":2},{"topic":"b"}]}',
            "messages[0].priority",
        ),
        (decode_batch, b'{"requests":[{"topic":"a"},{"topic":"b","epoch":1,"epoch":2}]}', "requests[1].epoch"),
        (
            decode_batch,
            b'{"messages":[{"topic":"a","topic":"b","payload_json":"topic"}]}',
            "messages[0].topic",
        ),
        (decode_pop, b'{"topic":"a","max":1,"max":2}', "max"),
        (decode_settle, b'{"topic":"a","lease_token":"t","lease_token":"u"}', "lease_token"),
        (
            decode_settle,
            b'{"topic":"a","leases":[{"lease_token":"t"},{"lease_token":"u","lease_token":"v"}]}',
            "leases[1].lease_token",
        ),
        (decode_move, b'{"message_id":"a","message_id":"b"}', "message_id"),
        (decode_reprioritize, b'{"message_id":"a","priority":1,"priority":2}', "priority"),
        (decode_cancel, b'{"message_id":"a","message_id":"a"}', "message_id"),
        (decode_purge, b'{"partition_id":1,"partition_id":2}', "partition_id"),
        (decode_dead, b'{"limit":1,"limit":2}', "limit"),
    ],
)
def test_a_key_given_twice_is_refused(decode: Callable[[bytes], object], text: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode(text)
    assert (caught.value.detail["field"], caught.value.message) == (field, f"{field} is given twice")


def test_a_change_in_which_a_key_is_given_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="max_retries_default is given twice"):
        decode_change(b'{"max_retries_default":1,"max_retries_default":2}', "jobs", None)


def test_keys_of_ours_in_what_is_the_clients_own_are_not_repeated() -> None:
    own = {"topic": 1, "priority": 2, "payload_json": {"topic": 3}}
    _, message = decode_enqueue(body(topic="topic", payload_json=own, meta={"priority": "priority"}, priority=None))
    assert json.loads(message.payload) == own
    assert message.meta == {"priority": "priority"}
    asked = decode_settle(
        body(topic="jobs", leases=[{"lease_token": "lease_token", "message_id": ""}, {"lease_token": "t"}])
    )
    assert asked.leases == [LeaseRef("lease_token", ""), LeaseRef("t", "")]
