from __future__ import annotations

import base64
from typing import Any

import msgspec

from topics.core.heappriorities import Bucket, Waiting
from topics.heapmodel import (
    DeadMessage,
    Enqueued,
    Failure,
    HeapConfig,
    HeapInfo,
    HeapStats,
    LostLease,
    MessageState,
    PartitionStats,
    PeekedMessage,
    PoppedMessage,
)
from topics.model import Mode
from topics.wire import heapanswers

AT_MS = 1_767_225_600_123
AT = "2026-01-01T00:00:00.123000Z"
MESSAGE: dict[str, Any] = {
    "message_id": "m",
    "topic": "jobs",
    "partition": 2,
    "payload": b"\x00\xff",
    "priority": -(2**63),
    "enqueued_ms": AT_MS,
    "attempts": 1,
    "max_retries": 3,
}
TOLD: dict[str, Any] = {
    "message_id": "m",
    "topic": "jobs",
    "partition_id": 2,
    "payload": base64.b64encode(b"\x00\xff").decode(),
    "priority": -(2**63),
    "enqueued_time": AT,
    "attempts": 1,
    "max_retries": 3,
}


def told(answer: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(answer))


def test_a_message_that_is_popped() -> None:
    message = PoppedMessage(**MESSAGE, lease_token="t", lease_deadline_ms=AT_MS)
    assert told(heapanswers.popped(message)) == TOLD | {"lease_token": "t", "lease_deadline": AT}


def test_a_payload_that_came_as_json_is_json() -> None:
    fields = MESSAGE | {"payload": b'{"a": 1.50}', "is_json": True}
    sent = {"producer_id": "p", "epoch": 1, "sequence": 0, "meta": {"k": "v"}}
    message = PoppedMessage(**fields, **sent, lease_token="t", lease_deadline_ms=AT_MS)
    answer = msgspec.json.encode(heapanswers.popped(message))
    assert b'"payload_json":{"a": 1.50}' in answer and b'"payload":' not in answer
    assert {name: told(heapanswers.popped(message))[name] for name in sent} == sent


def test_a_message_that_is_looked_at() -> None:
    ready = PeekedMessage(**MESSAGE, state=MessageState.READY)
    assert told(heapanswers.peeked(ready)) == TOLD | {"state": "ready", "is_leased": False, "in_dlq": False}
    leased = PeekedMessage(**MESSAGE, state=MessageState.LEASED, lease_deadline_ms=AT_MS)
    shown = told(heapanswers.peeked(leased))
    assert (shown["is_leased"], shown["lease_deadline"], "not_before" in shown) == (True, AT, False)
    delayed = told(heapanswers.peeked(PeekedMessage(**MESSAGE, state=MessageState.DELAYED, not_before_ms=AT_MS)))
    assert (delayed["state"], delayed["not_before"], "lease_deadline" in delayed) == ("delayed", AT, False)
    assert told(heapanswers.peeked(PeekedMessage(**MESSAGE, state=MessageState.DEAD)))["in_dlq"]


def test_a_dead_letter_and_how_it_came_to_that() -> None:
    message = DeadMessage(
        **MESSAGE,
        died_ms=AT_MS,
        reason="poison",
        history=(Failure(at_ms=AT_MS, reason="no", consumer="c"),),
        dlq_topic="jobs.dlq",
        dlq_partition=0,
        dlq_seq=7,
    )
    assert told(heapanswers.dead(message)) == TOLD | {
        "dead_time": AT,
        "reason": "poison",
        "history": [{"at": AT, "reason": "no", "consumer": "c"}],
        "dlq_topic": "jobs.dlq",
        "dlq_partition_id": 0,
        "dlq_seq": 7,
    }


def test_what_a_call_did_and_did_not() -> None:
    enqueued = Enqueued(message_id="m", partition=1, duplicate=True)
    assert heapanswers.enqueued(enqueued) == {"message_id": "m", "duplicate": True, "partition_id": 1}
    lost = (LostLease(place=2, message_id="m", reason="it is over"),)
    assert heapanswers.lost(lost, "lease_lost") == [
        {"place": 2, "message_id": "m", "code": "lease_lost", "message": "it is over"}
    ]


STATS = HeapStats(
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
    partitions=(PartitionStats(partition=0, messages=6, ready=1, in_flight=2, delayed=3),),
)


def test_a_heap_with_its_numbers_and_without() -> None:
    config = HeapConfig(mode=Mode.MAX, retention_ms=1500, visibility_timeout_ms=30_000, dlq_topic="jobs.dlq")
    info = HeapInfo(
        topic="jobs", heap_id="h", config=config, created_ms=AT_MS, updated_ms=AT_MS, warnings=("one copy",)
    )
    shown = told(heapanswers.heap_info(info))
    assert (shown["mode"], shown["retention_time"], shown["visibility_timeout_default"]) == ("MAX", 1.5, 30)
    assert shown["dlq_policy"] == {"enabled": True, "topic": "jobs.dlq", "retention_time": 0}
    assert (shown["created_at"], shown["warnings"], "stats" in shown) == (AT, ["one copy"], False)
    counted = told(heapanswers.heap_info(msgspec.structs.replace(info, stats=STATS)))["stats"]
    assert counted == told(heapanswers.heap_stats(STATS))
    assert [counted[name] for name in ("total_messages", "inflight_messages", "delayed_messages")] == [6, 2, 3]
    (part,) = counted["partition_stats"].values()
    assert (part["partition_id"], part["messages"], part["inflight"], part["is_healthy"]) == (0, 6, 2, True)


def test_what_waits_by_priority() -> None:
    assert heapanswers.bucket(Bucket(-5, 5, 9)) == {"priority_min": -5, "priority_max": 5, "count": 9}
    some = told(heapanswers.waiting(Waiting(1, 3, (), True, -7, AT_MS, 2)))
    assert some == {"partition_id": 1, "ready": 3, "best_priority": -7, "oldest_time": AT, "dead_lettered": 2}
    none = told(heapanswers.waiting(Waiting(0, 0, (), True, None, None, 0)))
    assert (none["best_priority"], none["oldest_time"]) == (None, None)
