"""How a pipeline is, seen from outside, and when its digest is another one."""

from __future__ import annotations

import pytest

from tests.core.catalogrig import CatalogRig, pipeline, report, table
from topics.core.catalogview import (
    KnownColumns,
    digest_of,
    pipeline_names,
    pipeline_state,
    pipeline_states,
    routes_by_table,
    table_state,
)
from topics.core.source import Operation
from topics.errors import InvalidRequest, PipelineNotFound, TableNotFound
from topics.limits import REPORT_LOST_MS
from topics.pipelinemodel import PipelineCondition, PipelineKind, PipelineState, RunState
from topics.tablemodel import TableColumn


def rig() -> CatalogRig:
    made = CatalogRig()
    made.configure("orders")
    made.configure("others")
    made.put_table("t")
    made.put("p", pipeline("orders", tables=("t",)))
    return made


def state(it: CatalogRig, name: str = "p") -> PipelineState:
    return pipeline_state(it.machine, name, it.now_ms)


@pytest.mark.parametrize("said", list(RunState))
def test_the_condition_is_what_the_runner_says(said: RunState) -> None:
    it = rig()
    assert state(it).condition is PipelineCondition.WAITING
    it.report("p", report(state=said))
    expected = "starting" if said is RunState.PAUSED else said.value
    assert state(it).condition == expected
    it.now_ms += REPORT_LOST_MS + 1
    alive = said in (RunState.STARTING, RunState.RUNNING, RunState.RETRYING, RunState.PAUSED)
    assert state(it).condition == ("lost" if alive else said.value)
    assert state(it).reported_ts == it.now_ms - REPORT_LOST_MS - 1


def test_one_that_is_to_rest_is_paused_as_soon_as_it_rests() -> None:
    it = rig()
    it.pause("p")
    assert state(it).condition is PipelineCondition.PAUSED
    it.report("p", report(state=RunState.RUNNING))
    assert state(it).condition is PipelineCondition.RUNNING, "its runner has not heard of it yet"
    it.report("p", report(state=RunState.PAUSED))
    assert state(it).condition is PipelineCondition.PAUSED
    it.now_ms += REPORT_LOST_MS + 1
    assert state(it).condition is PipelineCondition.PAUSED


def test_the_digest_follows_what_has_to_be_done() -> None:
    it = rig()
    seen = {state(it).digest}

    def changes(expected: bool) -> None:
        assert (state(it).digest not in seen) is expected
        seen.add(state(it).digest)

    it.report("p")
    it.pause("p")
    changes(False)
    it.put("p", pipeline("others", tables=("t",)))
    changes(True)
    it.put_table("t", table(location="/moved"))
    changes(True)
    it.put_table("unrelated")
    changes(False)


def test_the_routes_of_a_table_are_a_pipeline() -> None:
    it = rig()
    assert pipeline_names(it.machine) == ["p"]
    it.route("orders", "t")
    it.now_ms += 7
    it.route("others", "t", Operation.DELETE)
    assert pipeline_names(it.machine) == ["p", "routes:t"]
    found = state(it, "routes:t")
    assert (found.kind, found.table, found.config, found.number) == (PipelineKind.ROUTES, "t", None, 0)
    assert found.changed_ts - found.created_ts == 7
    assert [(route.topic, route.operation) for route in table_state(it.machine, "t").routes] == [
        ("orders", "insert"),
        ("others", "delete"),
    ]
    it.drop("others")
    assert state(it, "routes:t").digest != found.digest


def test_whoever_looks_at_many_sees_what_a_look_at_each_one_shows() -> None:
    it = rig()
    it.put_table("u")
    it.put_table("idle")
    it.route("orders", "t")
    it.route("others", "t", Operation.DELETE)
    it.route("others", "u")
    routes = routes_by_table(it.machine)
    assert {name: [route.topic for route in found] for name, found in routes.items()} == {
        "t": ["orders", "others"],
        "u": ["others"],
    }
    for name in ("t", "u", "idle"):
        assert table_state(it.machine, name, routes=routes) == table_state(it.machine, name)
    names = ["p", "routes:t", "routes:u"]
    assert pipeline_states(it.machine, it.now_ms) == [state(it, name) for name in names]


def test_columns_are_known_of_tables_that_have_told_them() -> None:
    it = rig()
    known = KnownColumns(it.machine)
    assert (dict(known), "t" in known, "x" in known) == ({}, False, False)
    it.put_table("u", table(columns=(TableColumn("id", "int"), TableColumn("b", "int"))))
    assert dict(known) == {"u": ("id", "b")} and len(known) == 1


def test_the_digest_of_a_list() -> None:
    it = rig()
    first = digest_of([state(it)])
    assert digest_of([state(it)]) == first != digest_of([])
    it.pause("p")
    assert digest_of([state(it)]) != first


def test_what_is_not_there() -> None:
    it = rig()
    with pytest.raises(PipelineNotFound):
        state(it, "missing")
    with pytest.raises(PipelineNotFound):
        state(it, "routes:t")
    with pytest.raises(InvalidRequest):
        state(it, "a b")
    with pytest.raises(TableNotFound):
        table_state(it.machine, "missing")
