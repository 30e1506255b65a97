"""What the contract leaves open: what is not said, and what nobody should say. That both ends say and read the same is
in `tests/client/grpc/test_values.py`."""

from __future__ import annotations

from typing import Any

import pytest

from topics.errors import InvalidRequest
from topics.heapmodel import DeadFilter, NewMessage, PeekedMessage
from topics.heapmodel import MessageState as State
from topics.proto import messages as proto
from topics.server.grpc import values


def duration(seconds: int, nanos: int = 0) -> Any:
    return proto.Duration(seconds=seconds, nanos=nanos)


@pytest.mark.parametrize(
    ("given", "ms"),
    [(duration(0), 0), (duration(1, 500_000_000), 1500), (duration(0, 1), 1), (duration(2, 1_000_001), 2002)],
)
def test_a_part_of_a_millisecond_counts_as_a_whole_one(given: Any, ms: int) -> None:
    assert values.milliseconds("wait_time", given) == ms


@pytest.mark.parametrize("given", [duration(-1), duration(0, -1_000_000), duration(-1, 500_000_000)])
def test_time_does_not_run_backwards(given: Any) -> None:
    with pytest.raises(InvalidRequest, match="wait_time must not be negative") as refused:
        values.milliseconds("wait_time", given)
    assert refused.value.detail["field"] == "wait_time"


def test_a_new_heap_whose_client_says_nothing() -> None:
    request = proto.MakeHeapReq(topic="jobs", visibility_timeout_default=duration(0))
    assert values.config_fields(request) == {"mode": "min", "max_retries": 0}


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="mode must be MIN or MAX, not 7"):
        values.config_fields(proto.MakeHeapReq(topic="jobs", mode=7))


def test_dead_letters_go_where_they_went_before() -> None:
    policy = proto.DLQPolicy(enabled=True)
    assert values.dlq_fields("jobs", policy, None) == {"dead_letter": "jobs.dlq"}
    assert values.dlq_fields("jobs", policy, "elsewhere") == {"dead_letter": "elsewhere"}
    policy = proto.DLQPolicy(enabled=False, retention_time=duration(5))
    assert values.dlq_fields("jobs", policy, "elsewhere") == {"dead_letter": None, "dead_letter_ttl_ms": 5000}


def test_a_message_of_the_old_contract() -> None:
    assert values.new_message(proto.EnqueueReq(topic="jobs", payload=b"x")) == NewMessage(payload=b"x")
    request = proto.EnqueueReq(
        topic="jobs",
        payload=b"x",
        priority=-7,
        partition_key="k",
        producer_id="p",
        epoch=1,
        sequence=0,
        max_retries=0,
        not_before=duration(2),
    )
    assert values.new_message(request) == NewMessage(
        payload=b"x",
        priority=-7,
        partition_key="k",
        producer_id="p",
        epoch=1,
        sequence=0,
        max_retries=0,
        delay_ms=2000,
    )
    request.not_before.seconds = -1
    with pytest.raises(InvalidRequest) as refused:
        values.new_message(request, "requests[3].")
    assert refused.value.detail["field"] == "requests[3].not_before"


def test_how_long_a_stream_keeps_what_it_gets() -> None:
    assert values.visibility_ms(proto.WorkOpen(topic="jobs")) is None
    assert values.visibility_ms(proto.WorkOpen(topic="jobs", visibility_timeout=duration(0))) is None
    assert values.visibility_ms(proto.WorkOpen(topic="jobs", visibility_timeout=duration(3))) == 3000


def test_a_filter_that_says_nothing_is_all_of_them() -> None:
    assert values.dead_filter(proto.DeadFilter()) == DeadFilter()


def test_a_message_is_shown_in_the_words_of_the_old_contract() -> None:
    message = PeekedMessage(
        message_id="m",
        topic="jobs",
        partition=1,
        payload=b"x",
        priority=5,
        enqueued_ms=1500,
        attempts=0,
        max_retries=3,
        state=State.READY,
    )
    ready = values.peek_item(message)
    assert (ready.is_leased, ready.HasField("lease_deadline"), ready.HasField("sequence")) == (False, False, False)
    assert (ready.enqueued_time.seconds, ready.enqueued_time.nanos) == (1, 500_000_000)
