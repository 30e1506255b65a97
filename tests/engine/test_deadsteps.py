"""Heaps on a loop: dead letters dealt with in many steps, and pops that wait."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.engine.test_host import opened, run
from topics.core.heapcommands import DeleteDead, Enqueue, MakeHeap, NackMessages, Popper, ReplayDead
from topics.engine import deadsteps
from topics.engine.deadsteps import count_letters, dead_steps
from topics.engine.host import Host
from topics.heapmodel import EVERY_LETTER, DeadFilter, DeadStep, LeaseRef, NewMessage


async def bury(host: Host, count: int) -> None:
    """A heap whose messages have all died, the first with priority 0."""
    await host.submit(MakeHeap("h", {"max_retries": 0}))
    await host.submit(Enqueue("h", [NewMessage(payload=b"x", priority=number) for number in range(count)], 0))
    popped = await host.pop("h", Popper("c", count), wait_ms=30_000)
    refs = [LeaseRef(message.lease_token, message.message_id) for message in popped.messages]
    await host.submit(NackMessages("h", refs))


def test_all_that_are_meant_are_counted_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadsteps, "STEP_MAX", 2)

    async def test() -> None:
        async with opened(tmp_path) as host:
            await bury(host, 5)
            assert [await count_letters(host, "h", EVERY_LETTER, limit) for limit in (0, 1, 3, 9)] == [5, 1, 3, 5]
            assert await count_letters(host, "h", DeadFilter(priority_min=3)) == 2
            assert await count_letters(host, "h", DeadFilter(priority_min=9)) == 0

    run(test)


def test_steps_go_on_until_enough_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadsteps, "STEP_MAX", 2)

    async def test() -> None:
        async with opened(tmp_path) as host:
            await bury(host, 7)
            replayed = await dead_steps(host, lambda cursor, most: ReplayDead("h", cursor=cursor, limit=most), 3)
            assert replayed.done_count == 3
            assert [message.priority for message in host.engine.heaps.peek("h").messages] == [0, 1, 2]
            deleted = await dead_steps(host, lambda cursor, most: DeleteDead("h", cursor=cursor, limit=most))
            assert deleted == DeadStep(topic="h", done_count=4)
            assert await count_letters(host, "h", EVERY_LETTER) == 0

    run(test)


def test_a_pop_waits_for_a_message_and_takes_none_when_it_is_given_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(MakeHeap("h", {}))
            assert not (await host.pop("h", Popper("a"), wait_ms=1)).messages
            gone = asyncio.create_task(host.pop("h", Popper("a"), wait_ms=30_000))
            await asyncio.sleep(0)
            gone.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gone
            waiting = asyncio.create_task(host.pop("h", Popper("b"), wait_ms=30_000))
            await asyncio.sleep(0)
            await host.submit(Enqueue("h", [NewMessage(payload=b"1")], 0))
            assert [message.payload for message in (await waiting).messages] == [b"1"]

    run(test)
