from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.client.rig import on_loop, settle, soon
from topics.client.cursors import Cursor, MemoryCursors
from topics.client.keeper import Keeper

HOUR_MS = 3_600_000


class Gated(MemoryCursors):
    """Saves when it is let, and fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        self.error: Exception | None = None

    async def save(self, cursors: Mapping[str, Cursor]) -> None:
        self.begun.set()
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        await super().save(cursors)


@on_loop
async def test_with_no_time_each_note_is_saved() -> None:
    store = MemoryCursors()
    keeper = Keeper(store, 0)
    assert await keeper.load() == {}
    for seq in (1, 2):
        await keeper.done("orders", Cursor(seq, 1))
        assert store.cursors == {"orders": Cursor(seq, 1)}
    await keeper.close()
    assert store.save_count == 2


@on_loop
async def test_notes_are_saved_together_when_their_time_is_over() -> None:
    store = MemoryCursors()
    keeper = Keeper(store, 1)
    for seq in range(1, 100):
        await keeper.done("orders", Cursor(seq))
    saving = keeper._timer
    assert saving is not None and store.save_count == 0
    await soon(saving)
    assert (store.save_count, store.cursors) == (1, {"orders": Cursor(99)})
    await keeper.done("orders", Cursor(100))
    assert keeper._timer is not None
    await keeper.close()
    assert (store.save_count, store.cursors) == (2, {"orders": Cursor(100)})


@on_loop
async def test_closing_saves_the_rest_and_only_that() -> None:
    store = MemoryCursors()
    keeper = Keeper(store, HOUR_MS)
    await keeper.close()
    assert store.save_count == 0
    await keeper.done("orders", Cursor(1))
    await keeper.close()
    await keeper.close()
    assert (store.save_count, store.cursors) == (1, {"orders": Cursor(1)})


@on_loop
async def test_what_others_saved_before_stays() -> None:
    store = MemoryCursors()
    store.cursors = {"a": Cursor(5, 1), "b": Cursor(6, 1)}
    keeper = Keeper(store, 0)
    assert await keeper.load() == store.cursors
    await keeper.done("b", Cursor(7, 1))
    assert store.cursors == {"a": Cursor(5, 1), "b": Cursor(7, 1)}
    await keeper.forget("a")
    await keeper.forget("never")
    assert store.cursors == {"b": Cursor(7, 1)}


@on_loop
async def test_a_failed_save_is_raised_and_tried_again() -> None:
    store = Gated()
    keeper = Keeper(store, 1)
    store.error = OSError("no space")
    await keeper.done("orders", Cursor(1))
    assert keeper._timer is not None
    await asyncio.wait([keeper._timer])
    with pytest.raises(OSError, match="no space"):
        await keeper.done("orders", Cursor(2))
    store.error = None
    await keeper.close()
    assert store.cursors == {"orders": Cursor(1)}


@on_loop
async def test_a_save_that_is_broken_off_is_made_again() -> None:
    store = Gated()
    store.gate.clear()
    keeper = Keeper(store, 1)
    await keeper.done("orders", Cursor(1))
    await soon(store.begun.wait())
    closing = asyncio.create_task(keeper.close())
    await settle()
    store.gate.set()
    await soon(closing)
    assert (store.cursors, store.save_count) == ({"orders": Cursor(1)}, 1)
