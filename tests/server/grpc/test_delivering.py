from __future__ import annotations

import pytest

from tests.client.rig import on_loop
from topics.errors import ShuttingDown
from topics.heapmodel import PoppedMessage, PoppedMessages
from topics.limits import MIB
from topics.server.grpc.delivering import UNDER_WAY_BYTES_MAX, UNDER_WAY_MAX, WEIGHT_UNKNOWN_BYTES, Delivering

FIRST = UNDER_WAY_BYTES_MAX // WEIGHT_UNKNOWN_BYTES


class Grants:
    def __init__(self) -> None:
        self.granted: list[int] = []
        self.closed = 0

    def grant(self, credits: int) -> None:
        self.granted.append(credits)

    def close(self) -> None:
        self.closed += 1


def messages(*payloads: bytes) -> PoppedMessages:
    made = (
        PoppedMessage(
            message_id="m",
            topic="jobs",
            partition=0,
            payload=payload,
            priority=0,
            enqueued_ms=0,
            lease_token="t",
            lease_deadline_ms=1,
            attempts=0,
            max_retries=0,
        )
        for payload in payloads
    )
    return PoppedMessages(topic="jobs", messages=tuple(made))


@on_loop
async def test_credits_pass_as_they_come_up_to_what_may_be_under_way() -> None:
    grants, delivering = Grants(), Delivering()
    delivering.add_credits(2)
    delivering.begin(grants)
    delivering.add_credits(3)
    assert grants.granted == [2, 3], "what came before the beginning counts"
    delivering.add_credits(2**32 - 1)
    assert sum(grants.granted) == FIRST, "nobody knows yet what they weigh"
    delivering.deliver(messages(b"a", b"b"))
    assert sum(grants.granted) == UNDER_WAY_MAX, "they are light"
    assert [message.payload for message in delivering.take(1, MIB)] == [b"a"]
    assert sum(grants.granted) == UNDER_WAY_MAX + 1, "it is under way until it is sent"


@on_loop
async def test_no_more_is_granted_than_may_weigh_on_the_way() -> None:
    grants, delivering = Grants(), Delivering()
    delivering.begin(grants)
    delivering.add_credits(2**32 - 1)
    delivering.deliver(messages(*[b"x" * MIB] * FIRST))
    assert sum(grants.granted) == FIRST
    while delivering.take(1, 1):
        pass
    assert sum(grants.granted) == FIRST + UNDER_WAY_BYTES_MAX // MIB
    delivering.deliver(messages(b"x" * (UNDER_WAY_BYTES_MAX + 1)))
    delivering.take(1, 1)
    assert sum(grants.granted) == FIRST + UNDER_WAY_BYTES_MAX // MIB, "three are under way, each as heavy as all"


@on_loop
async def test_one_that_weighs_too_much_alone_comes_alone() -> None:
    grants, delivering = Grants(), Delivering()
    delivering.begin(grants)
    delivering.add_credits(1)
    delivering.deliver(messages(b"x" * (UNDER_WAY_BYTES_MAX + 1)))
    delivering.add_credits(5)
    assert grants.granted == [1]
    delivering.take(1, 1)
    assert grants.granted == [1, 1]


@on_loop
async def test_what_is_taken_fits_and_is_one_at_least() -> None:
    delivering = Delivering()
    delivering.begin(Grants())
    delivering.deliver(messages(b"12345", b"678", b"9"))
    assert [message.payload for message in delivering.take(10, 1)] == [b"12345"]
    assert [message.payload for message in delivering.take(10, 4)] == [b"678", b"9"]
    assert delivering.take(10, 4) == []


@on_loop
async def test_the_end_is_told_behind_what_was_delivered() -> None:
    grants, delivering = Grants(), Delivering()
    delivering.begin(grants)
    delivering.deliver(messages(b"a"))
    delivering.ended(ShuttingDown("first"))
    delivering.ended(ShuttingDown("second"))
    assert len(delivering.take(1, MIB)) == 1
    with pytest.raises(ShuttingDown, match="first"):
        delivering.check()
    delivering.close()
    assert grants.closed == 1


@on_loop
async def test_some_grants_are_timed() -> None:
    told: list[int] = []
    delivering = Delivering(iter([0, 7, 9]).__next__, told.append)
    delivering.begin(Grants())
    delivering.add_credits(1)
    delivering.deliver(messages(b"a"))
    delivering.add_credits(1)
    delivering.add_credits(1)
    delivering.deliver(messages(b"b"))
    assert told == [7], "the one that began it, once"


def test_what_never_began_is_closed_without_harm() -> None:
    delivering = Delivering()
    delivering.close()
    delivering.close()
