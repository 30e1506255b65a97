"""Reports of runners: what is stored of them, whose a pipeline is, and what a runner is told."""

from __future__ import annotations

import pytest

from tests.core.catalogrig import CatalogRig, pipeline, report
from topics.core.catalogview import pipeline_state
from topics.core.pipelinecommands import ReportPipeline
from topics.errors import PipelineNotFound, PipelineTaken
from topics.limits import REPORT_LINES_MAX, REPORT_STORED_MS, REPORT_TAKEN_MS, REPORT_TEXT_CHARS_MAX
from topics.pipelinemodel import LogLine, RouteProgress, RunState


def rig() -> CatalogRig:
    made = CatalogRig()
    made.configure("orders")
    made.put("p", pipeline("orders"))
    return made


def test_a_report_is_answered_with_what_to_do() -> None:
    it = rig()
    digest = pipeline_state(it.machine, "p", it.now_ms).digest
    orders = it.report("p")
    assert (orders.exists, orders.paused, orders.digest) == (True, False, digest)
    it.pause("p")
    assert it.report("p").paused
    it.pause("p", False)
    it.put("p", pipeline("orders", into="x"))
    assert it.report("p").digest not in ("", digest)
    it.drop_pipeline("p")
    assert not it.report("p").exists and not it.report("never.there").exists


def test_a_report_is_stored_when_something_changed_and_now_and_then() -> None:
    it = rig()

    def stored(**fields: object) -> bool:
        before = len(it.facts)
        it.step(ReportPipeline("p", report(**fields)))  # type: ignore[arg-type]
        return len(it.facts) > before

    assert stored(input_rows_total=1)
    it.now_ms += 1000
    assert not stored(input_rows_total=2)
    assert stored(state=RunState.RETRYING, last_error="boom")
    assert not stored(state=RunState.RETRYING, last_error="boom", restarts=2)
    assert stored(state=RunState.RETRYING, last_error="another")
    it.now_ms += REPORT_STORED_MS
    assert stored(state=RunState.RETRYING, last_error="another")
    again = it.again().catalog.pipelines["p"]
    assert again.report == report(state=RunState.RETRYING, last_error="another")
    assert again.reported_ms == it.now_ms


def test_a_pipeline_is_one_runner_s() -> None:
    it = rig()
    it.report("p", report("r1", RunState.STARTING))
    it.now_ms += REPORT_TAKEN_MS - 1
    with pytest.raises(PipelineTaken, match="r1") as refused:
        it.report("p", report("r2", RunState.STARTING))
    assert refused.value.detail == {"pipeline": "p", "runner": "r1", "retry_after_ms": 1}
    assert it.machine.catalog.pipelines["p"].report == report("r1", RunState.STARTING)
    it.report("p", report("r1"))
    it.now_ms += REPORT_TAKEN_MS
    it.report("p", report("r2"))
    with pytest.raises(PipelineTaken, match="r2"):
        it.report("p", report("r1"))


@pytest.mark.parametrize("state", [RunState.STOPPED, RunState.DONE, RunState.FAILED])
def test_who_has_ended_lets_go(state: RunState) -> None:
    it = rig()
    it.report("p", report("r1", state))
    it.report("p", report("r2"))


def test_who_rests_does_not_let_go() -> None:
    it = rig()
    it.report("p", report("r1", RunState.PAUSED))
    with pytest.raises(PipelineTaken):
        it.report("p", report("r2"))


def test_the_log_is_the_end_of_what_was_said() -> None:
    it = rig()
    lines = [LogLine(number, "info", f"line {number}") for number in range(REPORT_LINES_MAX + 5)]
    it.report("p", None, *lines[:3])
    it.report("p", None, *lines[3:])
    assert list(it.machine.catalog.pipelines["p"].lines) == lines[5:]


def test_long_texts_are_cut() -> None:
    it = rig()
    long = "x" * (REPORT_TEXT_CHARS_MAX + 1)
    route = RouteProgress(topic="t", operation="insert", position=long)
    it.report("p", report(last_error=long, position=long, routes=(route,)), LogLine(1, "error", long))
    kept = it.machine.catalog.pipelines["p"]
    assert kept.report is not None and kept.report.last_error is not None
    texts = [kept.report.last_error, kept.report.position, kept.report.routes[0].position, kept.lines[0].message]
    assert {len(text) for text in texts} == {REPORT_TEXT_CHARS_MAX} and all(text.endswith("…") for text in texts)


def test_routes_of_a_table_are_paused_and_reported_on() -> None:
    it = rig()
    it.put_table("t")
    with pytest.raises(PipelineNotFound):
        it.pause("routes:t")
    it.route("orders", "t")
    assert it.pause("routes:t").paused
    assert it.report("routes:t").paused
    assert it.again().catalog.pipelines["routes:t"].paused
    facts = len(it.facts)
    assert it.pause("routes:t").paused and len(it.facts) == facts
    it.drop("orders")
    it.drop_table("t")
    assert "routes:t" not in it.machine.catalog.pipelines and "routes:t" not in it.again().catalog.pipelines


def test_the_first_word_about_routes_may_be_a_report() -> None:
    it = rig()
    it.put_table("t")
    it.route("orders", "t")
    orders = it.report("routes:t", report("r1"))
    assert (orders.exists, orders.paused) == (True, False)
    with pytest.raises(PipelineTaken):
        it.report("routes:t", report("r2"))
    kept = it.again().catalog.pipelines["routes:t"].report
    assert kept is not None and kept.runner == "r1"
