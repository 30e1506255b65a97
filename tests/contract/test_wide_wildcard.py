"""A watch session over many topics shares the loop with everybody else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.sserig import listening
from topics.core.commands import Drop
from topics.engine.engine import Engine
from topics.server.routes import watch
from topics.server.sessions import Position
from topics.wire.streamcursor import Positions
from topics.wire.watch import Wanted


@on_loop
async def test_wildcard_adds_topics_a_slice_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "SLICE", 2)
    added: list[str] = []
    position_of = watch._position

    def noting(engine: Engine, wanted: Wanted, cursor: Positions) -> Position:
        added.append(wanted.topic)
        if len(added) == 1:
            # Done in the next turn of the loop, which comes before all topics are added.
            asyncio.get_running_loop().call_soon(engine.submit, Drop("t4"))
        return position_of(engine, wanted, cursor)

    monkeypatch.setattr(watch, "_position", noting)
    async with serving(tmp_path) as api:
        for number in range(5):
            await api.write(f"t{number}", 1)
        answer = await api.post("/v0/watch", {"topics": {"t*": {}}})
        assert added == [f"t{number}" for number in range(5)]
        assert list(answer.body["topics"]) == ["t0", "t1", "t2", "t3"], "what was dropped meanwhile is not followed"
        async with listening(api, answer.body["stream_url"]) as stream:
            assert len([await stream.until("caught-up") for _ in range(4)]) == 4
