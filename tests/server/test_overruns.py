from __future__ import annotations

import asyncio
import logging

import pytest

from topics.core.totals import Totals
from topics.server.overruns import Overruns


def test_each_loss_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    totals = Totals()
    overruns = Overruns(lambda: totals)
    overruns.look()
    assert not caplog.records
    totals.overrun_count, totals.overrun_topic = 5, "orders"
    overruns.look()
    overruns.look()
    totals.overrun_count = 7
    overruns.look()
    assert [vars(line)["fields"] for line in caplog.records] == [
        {"topic": "orders", "records": 5},
        {"topic": "orders", "records": 2},
    ]
    assert {line.levelno for line in caplog.records} == {logging.ERROR}


def test_nothing_is_told_before_there_is_an_engine(caplog: pytest.LogCaptureFixture) -> None:
    Overruns(lambda: None).look()
    assert not caplog.records


def test_it_looks_while_the_server_runs_and_once_more_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("topics.server.overruns.LOOK_S", 0.0)
    totals = Totals(overrun_count=1, overrun_topic="a")

    async def run() -> None:
        overruns = Overruns(lambda: totals)
        overruns.start(asyncio.get_running_loop())
        while not caplog.records:
            await asyncio.sleep(0)
        totals.overrun_count = 2
        overruns.stop()
        await asyncio.sleep(0)

    asyncio.run(run())
    assert len(caplog.records) == 2
