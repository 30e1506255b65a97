"""Heaps in process, where the engine itself says what passes; what they are to a program is in tests/contract/."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics.client.backoff import Backoff
from topics.engine import heaping


@on_loop
async def test_who_finds_too_many_waiting_gets_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heaping, "CLAIMERS_MAX", 1)
    asked_ms: list[int] = []

    def at_once(backoff: Backoff, at_least_ms: int = 0) -> float:
        asked_ms.append(at_least_ms)
        return 0.0

    monkeypatch.setattr(Backoff, "next_s", at_once)
    async with topics.open(tmp_path) as client:
        heap = client.heap("jobs")
        await heap.create()
        first = asyncio.create_task(heap.take(1, wait_ms=30_000))
        await settle()
        async with aclosing(heap.pop()) as messages:
            second = asyncio.ensure_future(anext(messages))
            while not (asked_ms or second.done()):
                await settle()
            assert asked_ms and asked_ms[0] == 1000, "as long as the engine said"
            await heap.enqueue("one")
            (message,) = await soon(first)
            await heap.enqueue("two")
            assert (message.data, (await soon(second)).data) == ("one", "two")
