"""Changing sources: stored as a fact, and again the same after a restart."""

from __future__ import annotations

import pytest

from topics.core.commands import ChangeSources, Configure, Drop
from topics.core.facts import SourcesChanged, parse_meta_fact
from topics.core.machine import Machine
from topics.core.pipelinecommands import PutTable
from topics.core.source import Operation, PayloadMode, RouteStart, Source
from topics.errors import InvalidRequest, NotFound, TableNotFound, TopicNotFound
from topics.tablemodel import TableConfig, TableFormat

NOW = 1_700_000_000_000
A, B = Source("a", Operation.INSERT), Source("b", Operation.DELETE)


def machine() -> Machine:
    made = Machine()
    made.step(Configure("t", {"alias": "other"}), NOW)
    for table in ("a", "b"):
        made.step(PutTable(table, TableConfig(format=TableFormat.DELTA, location="/d", key=("id",))), NOW)
    made.step(PutTable("files", TableConfig(format=TableFormat.CSV, location="/f")), NOW)
    return made


def test_a_change_is_one_fact_with_all_that_holds_then() -> None:
    state = machine()
    outcome = state.step(ChangeSources("other", (A, B)), NOW)
    a, b = outcome.reply
    assert [(each.table, each.operation) for each in (a, b)] == [("a", "insert"), ("b", "delete")]
    assert outcome.must_sync
    (fact,) = outcome.facts
    assert parse_meta_fact(fact.body[0]) == SourcesChanged("t", (a, b))
    outcome = state.step(ChangeSources("t", dropped="a"), NOW)
    assert outcome.reply == (b,)
    replayed = machine()
    replayed.apply_meta(SourcesChanged("t", (b,)))
    assert replayed.topic("t").sources == state.topic("t").sources == (b,)
    assert replayed.next_epoch == b.number + 1
    assert [topic.name for topic in replayed.topics.fed()] == ["t"]


def test_what_changes_nothing_stores_nothing() -> None:
    state = machine()
    state.step(ChangeSources("t", (A,)), NOW)
    assert state.step(ChangeSources("t", (A,)), NOW + 5).facts == []


def test_a_source_begins_when_it_is_declared_and_keeps_its_number() -> None:
    state = machine()
    (first,) = state.step(ChangeSources("t", (A,)), NOW).reply
    assert (first.start, first.declared_ms) == (RouteStart.NOW, NOW) and first.number > 0
    full = Source("a", Operation.INSERT, PayloadMode.FULL)
    (changed,) = state.step(ChangeSources("t", (full,)), NOW + 5).reply
    assert (changed.payload, changed.number, changed.declared_ms) == (PayloadMode.FULL, first.number, NOW)


def test_a_source_with_a_start_begins_anew() -> None:
    state = machine()
    (first,) = state.step(ChangeSources("t", (A,)), NOW).reply
    version = Source("a", Operation.INSERT, start_version=7)
    (second,) = state.step(ChangeSources("t", (version,), start=RouteStart.VERSION), NOW + 5).reply
    assert (second.start, second.start_version, second.declared_ms) == (RouteStart.VERSION, 7, NOW + 5)
    assert second.number > first.number
    (third,) = state.step(ChangeSources("t", (A,)), NOW + 9).reply
    assert third == second
    both = (Source("b", Operation.INSERT), Source("b", Operation.DELETE))
    numbers = [each.number for each in state.step(ChangeSources("t", both, start=RouteStart.SNAPSHOT), NOW).reply]
    assert len(set(numbers)) == 3


def test_a_refusal_changes_nothing() -> None:
    state = machine()
    before = state.step(ChangeSources("t", (A,)), NOW).reply
    with pytest.raises(NotFound):
        state.step(ChangeSources("t", (B,), dropped="c"), NOW)
    with pytest.raises(TopicNotFound):
        state.step(ChangeSources("missing", (B,)), NOW)
    with pytest.raises(TableNotFound, match="REGISTER TABLE"):
        state.step(ChangeSources("t", (B, Source("c", Operation.INSERT))), NOW)
    with pytest.raises(InvalidRequest, match="only get rows"):
        state.step(ChangeSources("t", (Source("files", Operation.UPDATE, PayloadMode.FULL),)), NOW)
    with pytest.raises(InvalidRequest, match="has no key"):
        state.step(ChangeSources("t", (Source("files", Operation.INSERT),)), NOW)
    assert state.topic("t").sources == before


def test_a_topic_made_anew_has_none() -> None:
    state = machine()
    state.step(ChangeSources("t", (A,)), NOW)
    state.step(Drop("t"), NOW)
    assert state.topics.fed() == []
    state.step(Configure("t", {}), NOW)
    assert state.topic("t").sources == ()
