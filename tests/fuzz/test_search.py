"""The search itself: it finds what it should find, in decoders that are broken on purpose."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from proof.fuzz import corpus, worker
from proof.fuzz.arcs import Arcs
from proof.fuzz.ledger import Ledger
from proof.fuzz.search import Search
from proof.fuzz.shrinking import covering, shrunk, smallest_crash
from proof.fuzz.target import Target
from proof.fuzz.targets import TARGETS
from proof.fuzz.trial import tried, watched, weighed

HERE = sys.modules[__name__]


class Refused(Exception):
    pass


def nested(data: bytes) -> None:
    """Three steps, each of which only who has taken the one before comes to."""
    if data[:1] != b"a":
        raise Refused
    if data[1:2] != b"b":
        raise Refused
    if data[2:3] == b"c":
        raise KeyError("the bug")


def endless(data: bytes) -> None:
    while data.startswith(b"x"):
        pass


def greedy(data: bytes) -> None:
    bytearray(50_000_000 if data.startswith(b"x") else 1)


def deadly(data: bytes) -> None:
    if data.startswith(b"x"):
        os.kill(os.getpid(), signal.SIGKILL)


def target(run: object, *seeds: bytes) -> Target:
    assert callable(run)
    return Target(name="planted", run=run, errors=(Refused,), modules=(HERE,), seeds=seeds)


def searched(seed: int, inputs: int = 200_000) -> Search:
    search = Search(target(nested), [b"zzzz"], seed)
    for _ in search.run(inputs):
        if search.crashes:
            break
    return search


def test_a_bug_behind_several_steps_is_found() -> None:
    """By chance alone it would take sixteen million inputs."""
    search = searched(seed=1)
    (crash,) = search.crashes.values()
    assert crash.what == "KeyError: 'the bug'"
    assert crash.where.startswith(__name__)
    assert smallest_crash(search.target, crash).data == b"abc"


def test_the_same_seed_gives_the_same_inputs() -> None:
    first, second, other = searched(3, 2_000), searched(3, 2_000), searched(4, 2_000)
    assert (first.corpus, first.arcs) == (second.corpus, second.arcs)
    assert first.corpus != other.corpus


def test_what_never_ends_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proof.fuzz.trial.CPU_S_MAX", 0.05)
    with watched():
        crash = tried(target(endless), b"x")
        assert tried(target(endless), b"y") is None
    assert crash is not None and crash.what.startswith("TookTooLong")


def test_what_takes_too_much_memory_is_found() -> None:
    with watched():
        assert weighed(target(greedy), b"y") is None
        crash = weighed(target(greedy), b"x")
    assert crash is not None and crash.what.startswith("TookTooMuch")
    assert smallest_crash(target(greedy), crash).data == b"x"


def test_arcs_are_those_of_the_chosen_files() -> None:
    arcs = Arcs([__file__])
    assert arcs.of(nested, b"ab") - arcs.of(nested, b"az")
    assert arcs.of(nested, b"az") - arcs.of(nested, b"z")
    assert not Arcs(["elsewhere.py"]).of(nested, b"ab")
    assert sys.gettrace() is None or sys.gettrace() is not arcs._enter


def test_what_is_left_out_does_not_matter() -> None:
    assert shrunk(b"0123abc456", lambda data: b"abc" in data) == b"abc"
    assert shrunk(b"xyz", lambda data: len(data) == 3) == b"000"


def test_a_corpus_becomes_small_and_reaches_the_same() -> None:
    inputs = [b"a" * n for n in range(9)] + [b"ab", b"abz", b"zzz"]
    chosen = covering(target(nested), inputs, 8)
    arcs = Arcs([__file__])
    reached = [set().union(*(arcs.of(nested, data) for data in some)) for some in (inputs, chosen)]
    assert reached[0] == reached[1]
    assert len(chosen) < len(inputs)
    assert len(covering(target(nested), inputs, 2)) == 2


def test_the_death_of_a_process_is_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last = worker.LastInput(tmp_path / "last", 16)
    last.note(b"xyz")
    assert worker.LastInput.read(tmp_path / "last") == b"xyz"
    monkeypatch.setitem(TARGETS, "planted", target(deadly, b"y"))
    monkeypatch.setattr(corpus, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(corpus, "FOUND", tmp_path / "found")
    # A child by fork has what was planted here.
    monkeypatch.setattr(worker, "get_context", lambda kind: __import__("multiprocessing").get_context("fork"))
    done = worker.search_apart("planted", 1, 20_000, lambda count: None, 60)
    (crash,) = done.crashes
    assert crash.what == f"Died: the process was ended by signal {signal.SIGKILL.value}"
    assert crash.data.startswith(b"x")
    assert corpus.read(tmp_path / "kept" / "planted") == [crash.data]


def test_a_search_goes_on_where_the_last_one_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(corpus, "FOUND", tmp_path / "found")
    planted = target(nested, b"zzzz")
    done = worker.search(planted, 1, 3_000, lambda count: None, 60)
    assert done.inputs == 3_000
    assert len(worker.inputs_of(planted)) > len(planted.seeds)
    ledger = Ledger(tmp_path)
    ledger.of("planted").inputs += done.inputs
    ledger.save()
    assert Ledger(tmp_path).of("planted").inputs == 3_000
