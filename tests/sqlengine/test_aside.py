"""A long text is read on a thread, so that it holds up nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop
from topics.sqlengine import executor
from topics.sqlengine.aside import LONG_CHARS

STEPS = ("parse_script", "needs", "tables_of")
"""All that reads a text, in the order in which it is done."""


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each step, and whether the loop had to wait for it."""
    found: list[tuple[str, bool]] = []

    def watched(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **more: Any) -> Any:
            found.append((name, threading.current_thread() is threading.main_thread()))
            return step(*args, **more)

        return run

    for name in STEPS:
        monkeypatch.setattr(executor, name, watched(name, getattr(executor, name)))
    return found


@on_loop
async def test_only_a_long_text_is_read_aside(tmp_path: Path, threads: list[tuple[str, bool]]) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("a").write_many([{"data": number} for number in range(5)])
        numbers = ", ".join(["2", "4", *(["9"] * (LONG_CHARS // 3))])
        for chosen, at_once in (("2, 4", True), (numbers, False)):
            threads.clear()
            (result,) = await client.sql(f"SELECT seq FROM a WHERE seq IN ({chosen}) ORDER BY seq")
            assert result.rows == [[2], [4]]
            assert threads == [(step, at_once) for step in STEPS]
