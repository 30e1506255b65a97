"""Argon2id on threads: the right text, the wrong one, and too many at once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.client.rig import on_loop
from tests.server.accountrig import CHEAP
from topics.errors import Throttled
from topics.server.hashing import KEY_COST, PASSWORD_COST, THREADS, WAITING_MAX, Hashing


@on_loop
async def test_a_hash_fits_its_text_only() -> None:
    hashing = Hashing(CHEAP, CHEAP)
    hashed = await hashing.password("correct horse")
    assert hashed.startswith("$argon2id$") and "horse" not in hashed
    assert hashed != await hashing.password("correct horse")
    assert await hashing.matches(hashed, "correct horse")
    for wrong in ("correct hors", "correct horse ", "", "ü" * 300):
        assert not await hashing.matches(hashed, wrong)
    assert not await hashing.matches("no hash at all", "correct horse")
    hashing.close()


@on_loop
async def test_the_costs_are_what_the_text_says() -> None:
    hashing = Hashing()
    assert "m=65536,t=3,p=4" in await hashing.password("x")
    assert "m=19456,t=2,p=1" in await hashing.key("x")
    assert PASSWORD_COST.memory_kib > KEY_COST.memory_kib
    hashing.close()


@on_loop
async def test_only_so_many_wait() -> None:
    hashing = Hashing(CHEAP, CHEAP)
    hashed = await hashing.key("x")
    held = threading.Event()
    blocked = [asyncio.create_task(hashing._on_thread(held.wait)) for _ in range(THREADS + WAITING_MAX)]
    await asyncio.sleep(0)
    with pytest.raises(Throttled) as refused:
        await hashing.matches(hashed, "x")
    assert refused.value.detail["retry_after_ms"] > 0
    held.set()
    await asyncio.gather(*blocked)
    assert await hashing.matches(hashed, "x")
    hashing.close()


@on_loop
async def test_nobodys_password_is_hashed_once_and_compared_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    hashing = Hashing(CHEAP, CHEAP)
    compared: list[tuple[str, str]] = []
    matches = hashing.matches

    async def seen(hashed: str, text: str) -> bool:
        compared.append((hashed, text))
        return await matches(hashed, text)

    monkeypatch.setattr(hashing, "matches", seen)
    for text in ("a", "b"):
        await hashing.match_nobody(text)
    (first, _), (second, _) = compared
    assert [text for _, text in compared] == ["a", "b"]
    assert first == second and first.startswith("$argon2id$")
    hashing.close()
