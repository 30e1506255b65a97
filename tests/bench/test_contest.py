from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from bench.contest import Outcome, Reading, Side, compete, figures
from bench.figure import Unit
from bench.peers.process import LeftOut


def silent(doing: str) -> None:
    pass


def test_sides_run_in_turn_each_on_an_empty_directory(tmp_path: Path) -> None:
    seen: list[str] = []

    def side(name: str) -> Side:
        def run(place: Path) -> Reading:
            assert not place.exists()
            place.mkdir()
            seen.append(name)
            return Reading(float(len(seen)))

        return Side(name, run)

    ours, theirs = compete([side("a"), side("b")], 2, tmp_path, silent, "writing")
    assert seen == ["a", "b", "a", "b"]
    assert (ours.spread(), theirs.spread()) == ((1.0, 3.0), (2.0, 4.0))
    assert list(tmp_path.iterdir()) == []


def test_a_peer_that_cannot_take_part_is_left_out_once_with_its_reason(tmp_path: Path) -> None:
    tried = count()

    def absent(place: Path) -> Reading:
        next(tried)
        raise LeftOut("it is not installed")

    outcomes = compete([Side("a", lambda place: Reading(5.0)), Side("b", absent)], 3, tmp_path, silent, "writing")
    (figure,) = figures("write", Unit.RECORDS_PER_S, outcomes, [0.7])
    assert next(tried) == 1
    assert (figure.value, figure.peer, figure.bar_ratio) == (5.0, None, None)
    assert "it is not installed" in figure.note


def outcome(name: str, *readings: Reading) -> Outcome:
    made = Outcome(name)
    made.readings += readings
    return made


def test_a_rate_is_the_best_round_and_anything_else_the_median() -> None:
    ours = outcome("ours", Reading(1.0), Reading(9.0), Reading(2.0))
    theirs = outcome("theirs", Reading(4.0), Reading(8.0), Reading(6.0))
    (rate,) = figures("write", Unit.RECORDS_PER_S, [ours, theirs], [1.0])
    (time,) = figures("wait", Unit.US, [ours, theirs], [2.0])
    assert (rate.value, rate.peer, rate.spread, rate.bar_ratio) == (9.0, 8.0, (1.0, 9.0), 9 / 8)
    assert (time.value, time.peer, time.bar_ratio) == (2.0, 6.0, 6.0)


def test_the_note_tells_the_rate_for_a_second_of_processor_time() -> None:
    ours, theirs = outcome("ours", Reading(10_000.0, 0.5)), outcome("theirs", Reading(10_000.0, 0.25))
    (figure,) = figures("write", Unit.RECORDS_PER_S, [ours, theirs], [None])
    assert "50% and 25%" in figure.note and "20.0 k/s and 40.0 k/s, 0.50 ×" in figure.note


def test_without_our_own_side_there_is_no_figure() -> None:
    with pytest.raises(RuntimeError, match="our own server"):
        figures("write", Unit.US, [Outcome("ours"), Outcome("theirs")], [None])
