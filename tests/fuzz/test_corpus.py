"""Every decoder answers every input that was ever worth keeping, crashes of the past among them, and a few new ones."""

from __future__ import annotations

import pytest

from proof.fuzz import corpus
from proof.fuzz.search import Search
from proof.fuzz.target import Target
from proof.fuzz.targets import TARGETS
from proof.fuzz.trial import watched, weighed

SEED = 20_240
INPUTS = 700
"""About a second of the slowest."""

every_decoder = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


@every_decoder
def test_what_was_kept_is_answered(target: Target) -> None:
    kept = corpus.read(corpus.KEPT / target.name)
    assert kept, f"no corpus: run `python -m proof fuzz {target.name}`, and then with --keep"
    with watched():
        crashes = [crash for data in (*target.seeds, *kept) if (crash := weighed(target, data)) is not None]
    assert not crashes


@every_decoder
def test_what_a_short_search_finds_is_answered(target: Target) -> None:
    search = Search(target, [*target.seeds, *corpus.read(corpus.KEPT / target.name)], SEED)
    for _ in search.run(INPUTS):
        pass
    assert search.inputs == INPUTS
    assert not search.crashes.values()


def test_nothing_else_is_in_the_corpus() -> None:
    assert {path.name for path in corpus.KEPT.iterdir()} == TARGETS.keys()
