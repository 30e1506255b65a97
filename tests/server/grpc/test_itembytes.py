from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topics.heapmodel import PoppedMessage
from topics.limits import U32_MAX
from topics.proto import messages as proto
from topics.server.grpc import values
from topics.server.grpc.itembytes import items_bytes

PLAIN = PoppedMessage(
    message_id="01K9ZZZZZZ0000000000000007",
    topic="jobs",
    partition=0,
    payload=b"{}",
    priority=0,
    enqueued_ms=1_763_244_000_123,
    lease_token="lease_50000000001.0.7",
    lease_deadline_ms=1_763_244_300_000,
    attempts=0,
    max_retries=3,
    is_json=True,
)
CHANGES = [
    {},
    {"topic": "ärger"},
    {"partition": 1023, "attempts": 200, "max_retries": U32_MAX},
    {"max_retries": 0, "is_json": False},
    {"payload": b""},
    {"payload": b"x" * 70_000},
    *({"priority": priority} for priority in (1, 127, 128, 16_384, 2**63 - 1, -1, -(2**63))),
    {"enqueued_ms": 0, "lease_deadline_ms": 999},
    {"meta": {"trace": "1"}},
    {"producer_id": "p", "epoch": 0, "sequence": 2**64 - 1},
]


def by_protobuf(messages: list[PoppedMessage]) -> Any:
    return proto.WorkResponse(items=proto.WorkItems(items=map(values.message, messages)))


@pytest.mark.parametrize("changes", CHANGES)
def test_what_is_written_is_what_protobuf_reads(changes: dict[str, object]) -> None:
    message = msgspec.structs.replace(PLAIN, **changes)
    assert proto.WorkResponse.FromString(items_bytes([message])) == by_protobuf([message])


def test_many_are_one_answer() -> None:
    messages = [msgspec.structs.replace(PLAIN, **changes) for changes in CHANGES]
    written = items_bytes(messages)
    assert proto.WorkResponse.FromString(written) == by_protobuf(messages)
    assert written[:1] == b"\x12" and len(proto.WorkResponse.FromString(written).items.items) == len(CHANGES)
