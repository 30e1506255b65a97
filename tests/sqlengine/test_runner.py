from __future__ import annotations

import sys
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop
from topics import errors


@on_loop
async def test_what_is_not_installed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("topics.sqlengine.", "topics.sql."))]:
        if name not in ("topics.sqlengine.runner", "topics.sql.words"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    async with topics.open(tmp_path) as client:
        with pytest.raises(errors.NotInstalled) as refused:
            await client.sql("SELECT 1")
        assert refused.value.detail == {"install": "pip install 'topics[sql]'"}
        assert refused.value.message.startswith("SQL needs duckdb, which is not installed where the engine runs")
        await client.topic("orders").write(1)


@on_loop
async def test_a_client_that_was_closed_and_opened_again_has_it(tmp_path: Path) -> None:
    client = topics.open(tmp_path)
    for _ in range(2):
        async with client:
            (result,) = await client.sql("SELECT 1 AS one")
            assert result.rows == [[1]]


@on_loop
async def test_what_is_broken_is_not_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "topics.sqlengine.executor", raising=False)
    monkeypatch.setitem(sys.modules, "topics.sqlengine.selecting", None)
    async with topics.open(tmp_path) as client:
        with pytest.raises(ModuleNotFoundError) as raised:
            await client.sql("SELECT 1")
        assert raised.value.name == "topics.sqlengine.selecting"
