from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.client.rig import on_loop, soon
from topics import errors
from topics.client.caller import may_pass
from topics.client.heartbeat import Heartbeat
from topics.client.heldmessage import HeldMessage
from topics.heapmodel import PoppedMessage

LEASE_MS = 30


def held(name: str, lease_ms: int = LEASE_MS) -> HeldMessage:
    message = PoppedMessage(
        message_id=name,
        topic="jobs",
        partition=0,
        payload=b"",
        priority=0,
        enqueued_ms=0,
        attempts=0,
        max_retries=3,
        lease_token=name,
        lease_deadline_ms=0,
    )
    return HeldMessage(message, lease_ms)


class Extends:
    """A server that extends leases, and notes which; the first calls end as it is told."""

    def __init__(self, *failures: errors.TopicsError) -> None:
        self._failures = list(failures)
        self.calls: list[set[str]] = []
        self.heartbeat = Heartbeat(self._extend, may_pass)

    async def _extend(self, many: Sequence[HeldMessage], lease_ms: int) -> None:
        self.calls.append({each.message.message_id for each in many})
        if self._failures:
            raise self._failures.pop(0)
        for each in many:
            each.extended(each.deadline_ms + 1, lease_ms)

    async def called(self, count: int) -> None:
        while len(self.calls) < count:
            await asyncio.sleep(0)


async def beats_end() -> None:
    while any(task.get_name() == "topics leases" for task in asyncio.all_tasks()):
        await asyncio.sleep(0)


@on_loop
async def test_what_is_due_at_the_same_time_is_one_call_until_it_is_let_go() -> None:
    server = Extends()
    heartbeat, first, second = server.heartbeat, held("first"), held("second")
    for each in (first, second, first):
        heartbeat.keep(each)
    await soon(server.called(1))
    assert server.calls[0] == {"first", "second"}
    second.settle()
    assert first in heartbeat and second not in heartbeat
    heartbeat.keep(second)
    assert second not in heartbeat, "what is over has no lease to keep"
    count = len(server.calls)
    await soon(server.called(count + 2))
    assert server.calls[count + 1] == {"first"}
    heartbeat.let_go(first)
    await soon(beats_end())
    count = len(server.calls)
    heartbeat.keep(first)
    await soon(server.called(count + 1))
    heartbeat.let_go(first)
    await soon(beats_end())


@on_loop
async def test_a_short_lease_is_kept_beside_a_long_one() -> None:
    server = Extends()
    long, short = held("long", 3_600_000), held("short")
    server.heartbeat.keep(long)
    await asyncio.sleep(0)
    server.heartbeat.keep(short)
    await soon(server.called(2))
    assert server.calls[:2] == [{"short"}, {"short"}]
    for each in (short, long):
        each.settle()
    await soon(beats_end())


@on_loop
async def test_with_nothing_left_to_keep_nobody_waits_for_the_next_beat() -> None:
    server = Extends()
    long = held("long", 3_600_000)
    server.heartbeat.keep(long)
    await asyncio.sleep(0)
    server.heartbeat.let_go(long)
    await soon(beats_end())
    assert server.calls == []


@on_loop
async def test_a_server_that_is_away_is_asked_again_and_nothing_is_lost() -> None:
    server = Extends(errors.ConnectionFailed("gone", sent=True), errors.TimedOut("slow", sent=False))
    message = held("one")
    server.heartbeat.keep(message)
    await soon(server.called(3))
    await asyncio.sleep(0)
    assert not message.lost and message.deadline_ms == 1
    message.settle()


@on_loop
async def test_leases_that_can_never_be_kept_are_lost_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    server = Extends(errors.Forbidden("the key was revoked"))
    messages = [held("one"), held("two")]
    for each in messages:
        server.heartbeat.keep(each)
    await soon(beats_end())
    assert all(each.lost for each in messages) and len(server.calls) == 1
    assert "the leases of 2 jobs cannot be kept any more: the key was revoked" in caplog.text


@on_loop
async def test_what_comes_late_is_extended_before_anything_is_waited_for() -> None:
    server = Extends()
    late = held("late", 3_600_000)
    late.expires_s = asyncio.get_running_loop().time()
    server.heartbeat.keep(late)
    await asyncio.sleep(0)
    assert server.calls == [{"late"}] and not late.lost
    late.settle()
    await soon(beats_end())
