"""The search itself: it finds what it should find, in decoders that are broken on purpose."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from proof.fuzz import corpus, search, worker
from proof.fuzz.arcs import Arcs
from proof.fuzz.ledger import Ledger
from proof.fuzz.search import Search
from proof.fuzz.shrinking import covering, shrunk, smallest_crash
from proof.fuzz.target import Target
from proof.fuzz.targets import TARGETS
from proof.fuzz.trial import attempt, tried, watched, weighed

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


def silent(data: bytes) -> None:
    """The same, and from without all steps look alike."""
    if data[:1] == b"a":
        if data[1:2] == b"b":
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


def searched(seed: int, inputs: int = 200_000, run: object = nested) -> Search:
    found = Search(target(run), [b"zzzz"], seed)
    for _ in found.run(inputs):
        if found.crashes:
            break
    return found


def test_a_bug_behind_several_steps_is_found() -> None:
    """By chance alone it would take sixteen million inputs."""
    found = searched(seed=1)
    (crash,) = found.crashes.values()
    assert crash.what == "KeyError: 'the bug'"
    assert crash.where.startswith(__name__)
    assert smallest_crash(found.target, crash).data == b"abc"


def test_it_is_found_too_when_few_inputs_are_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who refuses in a new place is traced at once; where nothing shows from without, one in so many leads there."""
    monkeypatch.setattr(search, "RARE_AFTER", 0)
    told = searched(seed=2)
    assert told.crashes and told.traced <= told.inputs // search.TRACED_EVERY + 3
    monkeypatch.setattr(search, "TRACED_EVERY", 4)
    untold = searched(seed=5, run=silent)
    assert untold.crashes and untold.traced <= untold.inputs // 4


def test_without_tracing_it_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it is the arcs that lead there, and not luck."""
    monkeypatch.setattr(search, "RARE_AFTER", 0)
    monkeypatch.setattr(search, "TRACED_EVERY", 10**9)
    blind = searched(seed=5, inputs=50_000, run=silent)
    assert not blind.crashes and blind.inputs == 50_000 and not blind.traced


def test_an_input_that_is_mended_grows_no_longer_than_it_may() -> None:
    def note(data: bytes) -> None:
        longest.append(len(data))

    longest: list[int] = []
    growing = Target(
        name="planted", run=note, errors=(), modules=(HERE,), seeds=(), mend=lambda data: data * 2, bytes_max=64
    )
    for _ in Search(growing, [b"z" * 60], 1).run(500):
        pass
    assert max(longest) == 64


def test_the_way_of_an_input_is_where_it_was_refused() -> None:
    with watched():
        ways = [attempt(target(nested), data) for data in (b"z", b"y", b"az", b"ay", b"abz")]
    assert ways[0] == ways[1] != ways[2] == ways[3] and ways[4] is None


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


def test_what_is_no_trial_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proof.fuzz.trial.CPU_S_MAX", 0.02)
    with watched():
        assert tried(target(endless), b"y") is None
        until_s = time.process_time() + 0.1
        while time.process_time() < until_s:
            sum(range(10_000))


def test_many_short_trials_are_not_one_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proof.fuzz.trial.CPU_S_MAX", 0.02)
    until_s = time.process_time() + 0.1
    with watched():
        while time.process_time() < until_s:
            assert tried(target(endless), b"y") is None


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
    ledger.of("planted").traced += done.traced
    ledger.save()
    again = Ledger(tmp_path).of("planted")
    assert (again.inputs, again.traced) == (3_000, done.traced) and 0 < done.traced <= 3_000
