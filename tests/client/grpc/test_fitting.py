"""What does not fit into a message of the contract is refused by name, value and range, and nothing is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import topics
from tests.client.rig import closed_port, on_loop
from topics import errors
from topics.client.grpc.fitting import fitting
from topics.proto import messages as proto

I64 = f"a whole number from {-(2**63)} to {2**63 - 1}"
U32 = f"a whole number from 0 to {2**32 - 1}"
MS = f"a whole number from 0 to {2**53}"
TEXT = "text in UTF-8"

Misuse = Callable[[topics.Heap], Awaitable[Any]]
MISUSES: list[tuple[Misuse, str, str, str]] = [
    (lambda heap: heap.enqueue(1, priority=2**70), "priority", I64, str(2**70)),
    (lambda heap: heap.enqueue(1, priority=True), "priority", I64, "True"),
    (lambda heap: heap.enqueue(1, priority=10**5000), "priority", I64, "a number of thousands of digits"),
    (lambda heap: heap.enqueue(1, partition=-1), "partition", U32, "-1"),
    (lambda heap: heap.enqueue(1, max_retries=2**32), "max_retries", U32, str(2**32)),
    (lambda heap: heap.enqueue(1, delay_ms=-1), "delay_ms", MS, "-1"),
    (lambda heap: heap.enqueue(1, priority="x" * 200), "priority", I64, "'" + 99 * "x" + "…"),  # type: ignore[arg-type]
    (lambda heap: heap.enqueue(1, key=5), "key", TEXT, "5"),  # type: ignore[arg-type]
    (lambda heap: heap.enqueue(1, meta={"a": 5}), "meta", f"names and values, {TEXT}", "{'a': 5}"),  # type: ignore[dict-item]
    (lambda heap: heap.enqueue_many([{}, {"priority": 2**63}]), "messages[1].priority", I64, str(2**63)),
    (lambda heap: heap.enqueue_many([{}, {"delay_ms": 2**80}]), "messages[1].delay_ms", MS, str(2**80)),
    (lambda heap: heap.take(visibility_ms=2**80, wait_ms=1), "visibility_ms", MS, str(2**80)),
    (lambda heap: heap.take(visibility_ms=1, wait_ms=-1), "wait_ms", MS, "-1"),
    (lambda heap: heap.take(visibility_ms=1, partitions=[0, -1]), "partitions[1]", U32, "-1"),
    (lambda heap: anext(heap.pop(partitions=[2**40])), "partitions[0]", U32, str(2**40)),
    (lambda heap: anext(heap.pop(visibility_ms=-1)), "visibility_ms", MS, "-1"),
    (lambda heap: heap.ack(["t", 5]), "leases[1].lease_token", TEXT, "5"),  # type: ignore[list-item]
    (lambda heap: heap.nack(["t"], backoff_ms=-1), "backoff_ms", MS, "-1"),
    (lambda heap: heap.nack(["t"], reason="\ud800"), "leases[0].reason", TEXT, r"'\ud800'"),
    (lambda heap: heap.extend(["t"], 2**80), "ms", MS, str(2**80)),
    (lambda heap: heap.peek(-1), "limit", U32, "-1"),
    (lambda heap: heap.peek(partition=-1), "partition", U32, "-1"),
    (lambda heap: heap.purge(partition=2**32), "partition", U32, str(2**32)),
    (lambda heap: heap.reprioritize("m", 2**70), "priority", I64, str(2**70)),
    (lambda heap: heap.cancel(5), "message_id", TEXT, "5"),  # type: ignore[arg-type]
    (lambda heap: heap.replay(limit=-1), "limit", U32, "-1"),
]


@pytest.mark.parametrize(("misuse", "field", "expected", "shown"), MISUSES)
@on_loop
async def test_what_does_not_fit_is_refused_by_name(misuse: Misuse, field: str, expected: str, shown: str) -> None:
    # Nobody is there, so an answer can only come from here.
    async with topics.connect(grpc=closed_port(), attempts_max=1) as client:
        with pytest.raises(errors.InvalidRequest) as refused:
            await misuse(client.heap("jobs"))
    assert refused.value.message == f"{field} must be {expected}, not {shown}"
    assert refused.value.detail == {"field": field, "value": shown, "expected": expected}


@pytest.mark.parametrize("consumer", ["ü", "a\nb"])
@on_loop
async def test_a_name_that_no_header_takes_is_refused(consumer: str) -> None:
    async with topics.connect(grpc=closed_port(), attempts_max=1) as client:
        heap = client.heap("jobs", consumer=consumer)
        with pytest.raises(errors.InvalidRequest, match="consumer must be printable ASCII over gRPC, not "):
            await heap.take(visibility_ms=1)


def test_what_fits_is_made_as_ever() -> None:
    made = fitting(proto.PopReq, topic="jobs", max=2, partition_ids=[0, 1], visibility_timeout=None)
    assert made == proto.PopReq(topic="jobs", max=2, partition_ids=[0, 1])
