"""The loop of a command, and who reads what it prints."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from topics.cli.eventloop import loop_factory, reader_of_stdout, run


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With uvloop, and where it is not installed."""
    if request.param == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)
    return str(request.param)


def test_the_standard_loop_serves_where_there_is_no_other(loop: str) -> None:
    async def name() -> str:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    assert (loop_factory() is None) == (loop == "asyncio")
    assert run(name()) == loop


@pytest.mark.usefixtures("loop")
def test_a_file_never_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch() -> bool:
        with reader_of_stdout() as gone:
            await asyncio.sleep(0)
            return gone.done()

    with (tmp_path / "out").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert run(watch()) is False


@pytest.mark.usefixtures("loop")
def test_a_pipe_that_closes_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()

    async def watch() -> None:
        with reader_of_stdout() as gone:
            os.close(reader)
            await gone

    with os.fdopen(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        with pytest.raises(BrokenPipeError):
            run(watch())
