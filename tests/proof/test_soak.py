"""The soak: parts one after the other, those that have passed left out, each within its time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proof.results import load
from proof.soak import command, searching
from proof.soak.command import EXIT_FAILED, EXIT_UNKNOWN, soak
from proof.soak.part import Part, parts
from proof.soak.progress import VARIABLE, tell
from proof.soak.running import run
from proof.soak.state import State
from proof.tree import ROOT


def part(name: str, program: str, limit_minutes: float = 1, **variables: str) -> Part:
    return Part(name, "", (sys.executable, "-c", program), limit_minutes, variables)


def test_a_part_ends_well_or_badly_or_too_late(tmp_path: Path) -> None:
    good = run(part("good", "import os; print(os.environ['WORD'])", WORD="well"), tmp_path)
    assert (good.why, good.last_words) == ("", "well")
    assert run(part("bad", "raise SystemExit(3)"), tmp_path).why == "ended with 3"
    late = run(part("late", "import threading; threading.Event().wait()", 0.02), tmp_path)
    assert late.why == "took longer than 0.02 minutes"
    assert (tmp_path / "good.log").read_text() == "well\n"


def test_a_part_says_how_far_it_is(tmp_path: Path) -> None:
    heard: set[tuple[float, float]] = set()
    heard_it = tmp_path / "heard it"
    os.mkfifo(heard_it)

    def told(done: float, total: float) -> None:
        if not heard:
            heard_it.open("w").close()
        heard.add((done, total))

    program = f"from proof.soak.progress import tell; tell(3, 200); open({str(heard_it)!r}).read()"
    assert run(part("telling", program), tmp_path, told).why == ""
    assert heard == {(3, 200)}
    assert run(part("silent", "pass"), tmp_path, told).why == "" and heard == {(3, 200)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_is_ended_takes_the_part_along(tmp_path: Path, number: int) -> None:
    held = tmp_path / "held by what the part has started"
    os.mkfifo(held)
    end = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    program = (
        "from proof.soak.progress import tell; import os, subprocess, sys, threading\n"
        f"end = os.open({str(held)!r}, os.O_WRONLY)\n"
        "wait = 'import threading; threading.Event().wait()'\n"
        "subprocess.Popen([sys.executable, '-c', wait], pass_fds=[end])\n"
        "tell(os.getpid(), 1)\n"
        "exec(wait)\n"
    )
    started: list[int] = []

    def told(pid: float, total: float) -> None:
        started.append(int(pid))
        os.kill(os.getpid(), number)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run(part("endless", program), tmp_path, told)
    assert signal.getsignal(signal.SIGTERM) is before
    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)
    os.set_blocking(end, True)
    assert os.read(end, 1) == b""
    os.close(end)


def test_nobody_is_told_outside_of_a_soak(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    tell(1, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_was_broken_off_goes_on_where_it_was(tmp_path: Path) -> None:
    tests, passed, how_far, ran = (tmp_path / name for name in ("test_some.py", "passed", "how far", "ran"))
    tests.write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('number', range(5))\n"
        "def test_some(number):\n"
        f"    open({str(ran)!r}, 'a').write(f'{{number}} ')\n"
        "    assert number != 3 or 'MENDED' in os.environ\n"
        "@pytest.fixture\n"
        "def left_over():\n"
        "    yield\n"
        "    assert 'MENDED' in os.environ\n"
        "def test_end(left_over):\n"
        f"    open({str(ran)!r}, 'a').write('end ')\n"
    )

    def run_tests(**variables: str) -> int:
        plugins = ("-p", "xdist", "-p", "proof.soak.searching")
        search = (sys.executable, "-m", "pytest", "-q", "-n", "2", *plugins, str(tests))
        told = {searching.VARIABLE: str(passed), VARIABLE: str(how_far), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        environment = os.environ | {"PYTHONPATH": str(ROOT)} | told | variables
        return subprocess.run(search, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL).returncode

    def took() -> list[str]:
        words = sorted(ran.read_text().split())
        ran.unlink()
        return words

    assert run_tests() == 1
    assert took() == ["0", "1", "2", "3", "4", "end"] and how_far.read_text() == "6 6"
    assert len(passed.read_text().splitlines()) == 4
    assert run_tests(MENDED="1") == 0
    assert took() == ["3", "end"] and how_far.read_text() == "2 2"
    assert not passed.exists(), "the next one begins anew"
    passed.write_text(
        "".join(f"test_some.py::test_some[{number}]\n" for number in range(5)) + "test_some.py::test_end\n"
    )
    assert run_tests() == 0 and not ran.exists() and not passed.exists(), "it was broken off behind the last test"


def test_what_has_passed_is_not_run_again_until_the_tree_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = tmp_path / "ran"
    program = f"open({str(ran)!r}, 'a').write('x')"
    monkeypatch.setattr(
        command, "parts", lambda minutes: (part("one", program), part("two", "raise SystemExit('[/oh] no')"))
    )
    monkeypatch.setattr(command, "tree_hash", lambda: "tree-1")
    assert soak(results=tmp_path) == EXIT_FAILED
    assert "two ended with 1:\n[/oh] no" in capsys.readouterr().out
    assert soak(only=("one",), results=tmp_path) == 0
    assert ran.read_text() == "x", "it has passed before"
    assert soak(only=("one",), again=True, results=tmp_path) == 0
    monkeypatch.setattr(command, "tree_hash", lambda: "tree-2")
    assert soak(only=("one",), results=tmp_path) == 0
    assert ran.read_text() == "xxx"
    stored = load("soak", tmp_path)
    assert stored is not None and {name: found["passed"] for name, found in stored["parts"].items()} == {
        "one": True,
        "two": False,
    }


def test_a_part_that_does_not_exist_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak(only=("kll",), results=tmp_path) == EXIT_UNKNOWN
    assert "there is no part kll; there are mutants, kill" in capsys.readouterr().out.replace("\n", " ")


def test_a_state_counts_for_its_tree_and_for_no_more_than_was_run(tmp_path: Path) -> None:
    State("a", 5, tmp_path).note("load", True, 300.0)
    for tree, minutes, passed in (("a", 5, True), ("a", 2, True), ("a", 6, False), ("a", 0, False), ("b", 5, False)):
        assert State(tree, minutes, tmp_path).passed("load") is passed, (tree, minutes)
    State("a", 0, tmp_path).note("load", True, 1800.0)
    assert State("a", 0, tmp_path).passed("load") and State("a", 99, tmp_path).passed("load")
    State("a", 0, tmp_path).note("load", False, 1.0, "ended with 1")
    assert not State("a", 0, tmp_path).passed("load")


def test_soaks_side_by_side_keep_what_the_other_has_noted(tmp_path: Path) -> None:
    one, other = State("a", 0, tmp_path), State("a", 0, tmp_path)
    one.note("kill", True, 1.0)
    other.note("load", True, 1.0)
    assert all(state.passed(name) for state in (one, other) for name in ("kill", "load"))


def test_parts_name_files_that_exist_and_take_their_minutes() -> None:
    full, short = parts(), parts(0.5)
    assert [each.name for each in full] == [each.name for each in short]
    named = [word for each in full for word in each.command if word.startswith("tests/")]
    assert named and all((ROOT / word).is_file() for word in named)
    by_name = {each.name: each for each in short}
    assert by_name["load"].variables == {"SOAK_MINUTES": "0.5"}
    assert by_name["jepsen"].variables == {"JEPSEN_MINUTES": "0.5"}
    assert by_name["fuzz"].command[-2:] == by_name["simulator"].command[-2:] == ("--minutes", "0.5")
