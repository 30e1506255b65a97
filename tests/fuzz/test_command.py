"""`python -m proof fuzz`: decoders take turns until each has had its inputs, and a run goes on where one left off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from proof.fuzz import command
from proof.fuzz.command import fuzz
from proof.fuzz.ledger import Ledger
from proof.fuzz.targets import TARGETS
from proof.results import today

DECODERS = ("cursors", "frames")
INPUTS = 600


@pytest.fixture
def ledgers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what was done is kept."""
    monkeypatch.setattr(command, "Ledger", lambda: Ledger(tmp_path))
    monkeypatch.setattr(command, "ROUND_INPUTS", INPUTS)
    return tmp_path


def test_each_decoder_gets_its_inputs_and_no_more(ledgers: Path) -> None:
    assert fuzz(*DECODERS, inputs=INPUTS, processes=2) == 0
    entries = Ledger(ledgers).entries
    assert {name: (entry.inputs, entry.seeds, entry.crashes) for name, entry in entries.items()} == dict.fromkeys(
        DECODERS, (INPUTS, 1, 0)
    )
    # The next run leaves out what has had enough, and goes on with another seed.
    assert fuzz("cursors", inputs=INPUTS, processes=2) == 0
    assert Ledger(ledgers).of("cursors") == entries["cursors"]
    assert fuzz("frames", inputs=2 * INPUTS, processes=2) == 0
    assert (Ledger(ledgers).of("frames").inputs, Ledger(ledgers).of("frames").seeds) == (2 * INPUTS, 2)


def test_a_decoder_that_was_changed_is_searched_again(ledgers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fuzz("cursors", inputs=INPUTS, processes=1) == 0
    first = Ledger(ledgers).of("cursors")
    assert first.code == TARGETS["cursors"].code and first.date == today()
    other = replace(TARGETS["cursors"], modules=TARGETS["frames"].modules)
    assert other.code == TARGETS["frames"].code != first.code
    monkeypatch.setitem(TARGETS, "cursors", other)
    for _ in range(2):  # Once for a change, not each time.
        assert fuzz("cursors", inputs=INPUTS, processes=1) == 0
    again = Ledger(ledgers).of("cursors")
    assert (again.inputs, again.seeds, again.code) == (2 * INPUTS, 2, other.code)


def test_a_run_ends_when_its_minutes_are_over(ledgers: Path) -> None:
    assert fuzz("cursors", minutes=1e-9) == 0
    assert Ledger(ledgers).of("cursors").inputs == 0


def test_a_decoder_that_there_is_not_is_named_with_those_that_there_are(
    ledgers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz("cursor") == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "there is no decoder cursor; there are" in said and "cursors" in said
