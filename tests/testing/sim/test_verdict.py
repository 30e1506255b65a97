"""The simulator itself: the same seed is the same life, everything happens in it, and a failure can be seen again."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from topics.engine.engine import Engine
from topics.testing.sim import __main__ as command
from topics.testing.sim import machine, runner, verdict
from topics.testing.sim.tally import load
from topics.testing.sim.verdict import Result, live
from topics.testing.sim.world import World, furnished

SEEDS = (2, 4)
LIVES = range(1, 24)
"""So many that all which can happen to a server happens in some: what depends on an address in memory shows in few."""


def test_the_same_seed_is_the_same_life_byte_for_byte() -> None:
    first = [live(seed) for seed in LIVES]
    again = [live(seed) for seed in LIVES]
    assert [one.digest for one in first] == [one.digest for one in again]
    assert [(one.events, one.simulated_ms) for one in first] == [(one.events, one.simulated_ms) for one in again]
    assert len({one.digest for one in first}) == len(LIVES), "other seeds are other lives"


def test_same_seed_leaves_the_same_bytes_on_the_disk() -> None:
    def left() -> dict[str, bytes]:
        world = World(3, 300, now_ms=furnished().now_ms)
        world.run()
        return world.machine.disk.contents()

    assert left() == left(), "the secrets of the server come from the seed, too"


def test_a_seed_is_the_same_life_in_another_process() -> None:
    """Also when strings hash to something else there."""
    expected = live(SEEDS[0]).digest
    told = subprocess.run(
        [sys.executable, "-m", "topics.testing.sim", "--seed", str(SEEDS[0])],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        timeout=120,
    )
    assert f"history: {expected}" in told.stderr


def test_a_server_that_cannot_start_any_more_is_a_broken_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    furnished()
    starts: list[int] = []
    true = machine.recover

    def recover(*given: Any) -> Engine:
        starts.append(len(starts))
        if len(starts) > 1:
            raise OSError("no such directory")
        return true(*given)

    monkeypatch.setattr(machine, "recover", recover)
    found = live(SEEDS[0]).violations
    assert any("the server cannot start: OSError('no such directory')" in violation for violation in found), found[:3]


# ---- many seeds


def fake(monkeypatch: pytest.MonkeyPatch, broken: int = 0) -> list[int]:
    """Lives that are over at once; those that were run."""
    ran: list[int] = []

    def run(seed: int, life_ms: int = 0) -> Result:
        ran.append(seed)
        return Result(seed, ["log.lost: t"] if seed == broken else [], events=5, simulated_ms=1000)

    monkeypatch.setattr(runner, "run_seed", run)
    return ran


def test_a_run_that_was_ended_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "proof" / "simulator.json"
    ran = fake(monkeypatch)
    monkeypatch.setattr(runner, "CHUNK", 10)
    assert runner.run_many(1, 30, path, minutes=1e-9).seeds == 10, "the time is over after the first of them"
    assert runner.run_many(1, 30, path).seeds == 30
    assert ran == list(range(1, 31)), "each once"
    assert runner.run_many(1, 30, path).simulated_ms == 30_000 and len(ran) == 30


def test_two_at_a_time_tell_what_one_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "CHUNK", 2)
    heard: list[int] = []
    alone = runner.run_many(1, 5, tmp_path / "alone.json")
    both = runner.run_many(1, 5, tmp_path / "both.json", processes=2, on_done=lambda result: heard.append(result.seed))
    assert msgspec.structs.replace(both, date=alone.date) == alone, "but for midnight between them"
    assert both.seeds == 5 and not both.failures
    assert heard == [1, 2, 3, 4, 5]
    assert runner.run_many(1, 5, tmp_path / "short.json", processes=2, minutes=1e-9).seeds == 2


def test_other_code_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "simulator.json"
    ran = fake(monkeypatch)
    runner.run_many(1, 5, path)
    told = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(told | {"code": "other"}))
    assert load(path, 1).seeds == 0
    path.write_bytes(b"{")
    assert load(path, 1).seeds == 0
    runner.run_many(1, 5, path)
    assert ran == [*range(1, 6), *range(1, 6)]


def test_a_life_that_breaks_is_a_failure_among_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def live(seed: int, life_ms: int) -> Result:
        if seed == 2:
            raise AssertionError("this life does not end")
        return Result(seed)

    monkeypatch.setattr(runner, "live", live)
    tally = runner.run_many(1, 3, tmp_path / "simulator.json")
    (failure,) = tally.failures
    assert tally.seeds == 3 and failure.seed == 2
    assert failure.violations == ["simulator.broken: AssertionError: this life does not end"]


def test_who_ends_a_run_is_told_where_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = fake(monkeypatch)
    monkeypatch.setattr(runner, "CHUNK", 2)
    given = ["--seeds", "9", "--processes", "1", "--out", str(tmp_path / "out.json")]
    heard: list[tuple[int, int]] = []

    def told(done: int, wanted: int) -> None:
        heard.append((done, wanted))
        if done == 5:
            raise KeyboardInterrupt

    assert command.main(given, told) == command.EXIT_INTERRUPTED
    assert "goes on from the 4 seeds that are done" in " ".join(capsys.readouterr().err.split())
    assert heard == [(done, 9) for done in range(1, 6)]
    assert command.main(given) == 0 and ran == [*range(1, 7), *range(5, 10)]


def test_what_was_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "simulator.json"
    fake(monkeypatch, broken=3)
    runner.run_many(1, 5, path, command="the command")
    told = msgspec.json.decode(path.read_bytes())
    fields = {"date", "seeds", "first_seed", "steps", "simulated_ms", "faults", "operations", "checks", "failures"}
    assert fields | {"command"} <= told.keys()
    assert (told["seeds"], told["first_seed"], told["steps"], told["command"]) == (5, 1, 25, "the command")
    (failure,) = told["failures"]
    assert failure["seed"] == 3 and failure["command"] == "python -m topics.testing.sim --seed 3"


def test_a_failing_seed_prints_how_to_see_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, broken=3)
    given = ["--seeds", "4", "--processes", "1", "--out", str(tmp_path / "out.json")]
    assert command.main(given) == 1
    assert "python -m topics.testing.sim --seed 3" in capsys.readouterr().err
    assert command.main(["--seeds", "2", "--processes", "1", "--out", str(tmp_path / "other.json")]) == 0
    with pytest.raises(SystemExit):
        command.main(["--seeds", "0"])


def test_what_a_seed_has_broken_is_shown_and_fails() -> None:
    console = Console(file=io.StringIO(), width=200)
    assert isinstance(console.file, io.StringIO)
    assert command._one(Result(7), console) == 0
    assert command._one(Result(7, ["log.lost: [seq 3] is gone"]), console) == 1
    assert "log.lost: [seq 3] is gone" in console.file.getvalue()


@pytest.mark.parametrize("enabled", [True, False])
def test_whether_garbage_is_looked_for_is_as_before(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with verdict._without_collections():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
