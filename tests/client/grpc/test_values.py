"""What one end of the gRPC contract writes, the other reads as the same value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topics.client.grpc import values
from topics.client.heaptransport import NackRequest
from topics.errors import LeaseLost
from topics.heapmodel import (
    DeadFilter,
    DeadMessage,
    Enqueued,
    EnqueuedBatch,
    Failure,
    HeapConfig,
    HeapInfo,
    HeapStats,
    LeaseRef,
    LostLease,
    MessageState,
    NewMessage,
    PartitionStats,
    PeekedMessage,
    PoppedMessage,
)
from topics.model import Durability, Mode
from topics.server.grpc import values as served

AT_MS = 1_767_225_600_123
SHARED: dict[str, Any] = {
    "message_id": "m",
    "topic": "jobs",
    "partition": 2,
    "payload": b"\x00\xff",
    "priority": -(2**63),
    "enqueued_ms": AT_MS,
    "attempts": 1,
    "max_retries": 3,
}
NAMED: dict[str, Any] = {"producer_id": "p", "epoch": 0, "sequence": 2**64 - 1, "is_json": True, "meta": {"k": "v"}}


def sent(message: Any) -> Any:
    """A message as it comes out of the other end of a wire."""
    return type(message).FromString(message.SerializeToString())


@pytest.mark.parametrize(
    "message",
    [
        NewMessage(),
        NewMessage(payload=b"x", priority=2**63 - 1, partition_key="", partition=0, max_retries=0, delay_ms=1),
        NewMessage(payload=b"1", producer_id="p", epoch=3, sequence=0, is_json=True, meta={"k": "v"}),
    ],
)
def test_a_message_that_is_enqueued(message: NewMessage) -> None:
    request = sent(values.new_message("jobs", message))
    assert request.topic == "jobs" and served.rich_message(request, "") == message


def test_a_producer_is_named_only_with_a_sequence() -> None:
    request = sent(values.new_message("jobs", NewMessage(producer_id="p", epoch=3)))
    assert not request.HasField("producer_id") and not request.HasField("epoch")


@pytest.mark.parametrize(
    "fields",
    [
        {
            "mode": "max",
            "partitions": 4,
            "replication_factor": 3,
            "top_k_bound": 9,
            "max_retries": 0,
            "max_payload_bytes": 2**40,
            "compression": True,
            "retention_ms": 1500,
            "lease_ms": 30_000,
            "dead_letter": "jobs.dlq",
            "dead_letter_ttl_ms": 1,
        },
        {"mode": "min", "max_retries": 3, "retention_ms": 0, "dead_letter": None},
        {"mode": "min", "max_retries": 3, "dead_letter": "jobs.dlq", "dead_letter_ttl_ms": 0},
    ],
)
def test_a_heap_that_is_made(fields: dict[str, Any]) -> None:
    assert served.config_fields(sent(values.make_request("jobs", fields))) == fields


def test_a_heap_that_is_made_with_nothing_said() -> None:
    made = served.config_fields(sent(values.make_request("jobs", {})))
    assert made == {"mode": "min", "max_retries": HeapConfig().max_retries}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"max_retries": 0, "max_payload_bytes": 1, "compression": False},
        {"retention_ms": 0, "lease_ms": 1, "dead_letter": None},
        {"dead_letter": "elsewhere", "dead_letter_ttl_ms": 5},
    ],
)
def test_a_heap_that_is_changed(fields: dict[str, Any]) -> None:
    assert served.changed_fields(sent(values.change_request("jobs", fields)), "elsewhere") == fields


def test_to_keep_dead_letters_for_a_time_is_to_keep_them() -> None:
    changed = served.changed_fields(sent(values.change_request("jobs", {"dead_letter_ttl_ms": 5})), None)
    assert changed == {"dead_letter": "jobs.dlq", "dead_letter_ttl_ms": 5}


@pytest.mark.parametrize(
    "chosen",
    [
        DeadFilter(),
        DeadFilter(message_ids=("a", "b"), reason="", died_from_ms=0, priority_min=0),
        DeadFilter(died_before_ms=AT_MS, priority_max=-(2**63)),
    ],
)
def test_which_dead_letters(chosen: DeadFilter) -> None:
    assert served.dead_filter(sent(values.dead_filter(chosen))) == chosen


LEASES = [LeaseRef("t1", "m1"), LeaseRef("t2")]


def test_leases_that_are_settled() -> None:
    acks = sent(values.settle_acks(LEASES)).acks
    assert [(each.lease_token, each.message_id) for each in acks] == [("t1", "m1"), ("t2", "")]
    plain = sent(values.settle_nacks(NackRequest(leases=LEASES))).nacks
    assert [(each.lease_token, each.HasField("backoff_override"), each.HasField("reason")) for each in plain] == [
        ("t1", False, False),
        ("t2", False, False),
    ]
    request = NackRequest(leases=LEASES[:1], backoff_ms=0, reason="no", undelivered=True)
    (nack,) = sent(values.settle_nacks(request)).nacks
    assert nack.HasField("backoff_override") and served.milliseconds("", nack.backoff_override) == 0
    assert (nack.message_id, nack.reason, nack.undelivered) == ("m1", "no", True)
    extensions = sent(values.settle_extensions(LEASES, 1500)).extensions
    assert [(each.lease_token, served.milliseconds("", each.extension)) for each in extensions] == [
        ("t1", 1500),
        ("t2", 1500),
    ]


def test_what_was_enqueued() -> None:
    batch = EnqueuedBatch(
        messages=(
            Enqueued(message_id="a", partition=0),
            Enqueued(message_id="b", partition=7, duplicate=True),
        ),
        transaction_id="t",
    )
    assert values.enqueued_batch(sent(served.enqueued_batch(batch))) == batch


@pytest.mark.parametrize("named", [{}, NAMED])
def test_a_message_wherever_it_is_met(named: dict[str, Any]) -> None:
    popped = PoppedMessage(**SHARED, **named, lease_token="t", lease_deadline_ms=AT_MS + 1)
    assert values.popped(sent(served.message(popped))) == popped
    old = sent(served.pop_item(popped))
    assert (old.lease_token, old.priority, old.HasField("sequence")) == ("t", -(2**63), bool(named))
    for state, at in (
        (MessageState.READY, {}),
        (MessageState.LEASED, {"lease_deadline_ms": AT_MS}),
        (MessageState.DELAYED, {"not_before_ms": AT_MS}),
        (MessageState.LEAVING, {}),
        (MessageState.DEAD, {}),
    ):
        peeked = PeekedMessage(**SHARED, **named, **at, state=state)
        assert values.peeked(sent(served.peeked_message(peeked))) == peeked
        item = sent(served.peek_item(peeked))
        assert (item.is_leased, item.in_dlq) == (state is MessageState.LEASED, state is MessageState.DEAD)
    dead = DeadMessage(
        **SHARED,
        **named,
        dlq_topic="jobs.dlq",
        dlq_partition=1,
        dlq_seq=2**64 - 1,
        died_ms=AT_MS,
        reason="poison",
        history=(Failure(AT_MS, "timeout", ""), Failure(AT_MS + 1, "no", "c")),
    )
    assert values.dead_message(sent(served.dead_letter(dead))) == dead


def test_a_heap() -> None:
    stats = HeapStats(
        total_messages=6,
        ready_messages=1,
        in_flight_messages=2,
        delayed_messages=3,
        dlq_messages=4,
        total_enqueues=11,
        total_pops=12,
        total_acks=13,
        total_nacks=14,
        total_retries=15,
        total_timeouts=16,
        total_dead_lettered=17,
        partitions=(
            PartitionStats(partition=0, messages=6, ready=1, in_flight=2, delayed=3, leader_node="here"),
            PartitionStats(partition=5, messages=0, ready=0, in_flight=0, delayed=0, replica_nodes=("a", "b")),
        ),
    )
    info = HeapInfo(
        topic="jobs",
        heap_id="h",
        config=HeapConfig(
            mode=Mode.MAX,
            partitions=6,
            replication_factor=3,
            top_k_bound=9,
            retention_ms=1500,
            visibility_timeout_ms=1,
            max_retries=0,
            max_payload_bytes=2**40,
            compression=True,
            dlq_topic="jobs.dlq",
            dlq_retention_ms=5,
            durability=Durability.DISK,
        ),
        created_ms=AT_MS,
        updated_ms=AT_MS + 1,
        replicas=1,
        warnings=("one copy",),
        stats=stats,
    )
    assert values.heap_info(sent(served.heap(info))) == info
    bare = msgspec.structs.replace(info, config=HeapConfig(dlq_enabled=False), warnings=(), stats=None)
    assert values.heap_info(sent(served.heap(bare))) == msgspec.structs.replace(bare, stats=HeapStats())


def test_leases_that_were_not_there() -> None:
    over = values.all_lost(LEASES, LeaseLost("it was closed"))
    assert values.lost(sent(over).refused) == (
        LostLease(place=0, message_id="m1", reason="the stream is over: it was closed"),
        LostLease(place=1, message_id="", reason="the stream is over: it was closed"),
    )
    assert {each.code for each in over.refused} == {LeaseLost.grpc_code}
