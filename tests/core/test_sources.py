"""Changing sources: stored as a fact, and again the same after a restart."""

from __future__ import annotations

import pytest

from topics.core.commands import ChangeSources, Configure, Drop
from topics.core.facts import SourcesChanged, parse_meta_fact
from topics.core.machine import Machine
from topics.core.source import Operation, Source
from topics.errors import NotFound, TopicNotFound

NOW = 1_700_000_000_000
A, B = Source("a", Operation.INSERT), Source("b", Operation.DELETE)


def machine() -> Machine:
    made = Machine()
    made.step(Configure("t", {"alias": "other"}), NOW)
    return made


def test_a_change_is_one_fact_with_all_that_holds_then() -> None:
    state = machine()
    outcome = state.step(ChangeSources("other", (A, B)), NOW)
    assert outcome.reply == (A, B) and outcome.must_sync
    (fact,) = outcome.facts
    assert parse_meta_fact(fact.body[0]) == SourcesChanged("t", (A, B))
    outcome = state.step(ChangeSources("t", dropped="a"), NOW)
    assert outcome.reply == (B,)
    replayed = machine()
    replayed.apply_meta(SourcesChanged("t", (B,)))
    assert replayed.topic("t").sources == state.topic("t").sources == (B,)


def test_what_changes_nothing_stores_nothing() -> None:
    state = machine()
    state.step(ChangeSources("t", (A,)), NOW)
    assert state.step(ChangeSources("t", (A,)), NOW).facts == []


def test_a_refusal_changes_nothing() -> None:
    state = machine()
    state.step(ChangeSources("t", (A,)), NOW)
    with pytest.raises(NotFound):
        state.step(ChangeSources("t", (B,), dropped="c"), NOW)
    with pytest.raises(TopicNotFound):
        state.step(ChangeSources("missing", (B,)), NOW)
    assert state.topic("t").sources == (A,)


def test_a_topic_made_anew_has_none() -> None:
    state = machine()
    state.step(ChangeSources("t", (A,)), NOW)
    state.step(Drop("t"), NOW)
    state.step(Configure("t", {}), NOW)
    assert state.topic("t").sources == ()
