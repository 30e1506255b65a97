from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import on_loop, soon
from topics import errors
from topics.client.held import Held
from topics.client.rotation import Rotation


@on_loop
async def test_each_partition_is_asked_in_turn_and_then_waited_at() -> None:
    asked: list[tuple[int, int]] = []

    async def claim(most: int, wait_ms: int, partition: int) -> list[Held]:
        asked.append((partition, wait_ms))
        return []

    rotation = Rotation(claim, 3)
    assert await rotation.claim(5, 0) == []
    assert await rotation.claim(5, 1000) == []
    assert asked == [(0, 0), (1, 0), (2, 0)] * 2 + [(0, 1000), (1, 1000), (2, 1000)]


@on_loop
async def test_what_ends_a_wait_in_one_partition_ends_it_in_all() -> None:
    given_up: list[int] = []

    async def claim(most: int, wait_ms: int, partition: int) -> list[Held]:
        if wait_ms and partition == 1:
            raise errors.TopicNotFound("it was dropped")
        if not wait_ms:
            return []
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(partition)
        return []

    with pytest.raises(errors.TopicNotFound, match="it was dropped"):
        await soon(Rotation(claim, 3).claim(5, 1000))
    assert given_up == [0, 2]
