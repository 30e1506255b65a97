from __future__ import annotations

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.limits import REPORT_LINES_MAX, REPORT_ROUTES_MAX
from topics.pipelinemodel import (
    LogLine,
    PipelineCondition,
    PipelineKind,
    PipelineReport,
    PipelineState,
    RouteProgress,
    RunState,
)
from topics.wire.pipeline import decode_pipeline, decode_report, pipeline_fields, report_body

ROUTE = RouteProgress(topic="t", operation="insert", position="version 3", lag_versions=1)
REPORT = PipelineReport(runner="r", state=RunState.RETRYING, last_error="x", lag_ms=5, routes=(ROUTE,))
LINE = LogLine(1, "warning", "careful")


def test_a_report_goes_over_the_wire() -> None:
    assert decode_report(report_body(REPORT, (LINE,))) == (REPORT, (LINE,))
    plain = PipelineReport(runner="r", state=RunState.DONE)
    assert decode_report(b'{"runner": "r", "state": "done", "unknown": 1}') == (plain, ())


@pytest.mark.parametrize(
    ("report", "lines", "field"),
    [
        (REPORT, (LINE,) * (REPORT_LINES_MAX + 1), "logs"),
        (PipelineReport(runner="r", state=RunState.DONE, routes=(ROUTE,) * (REPORT_ROUTES_MAX + 1)), (), "routes"),
        (PipelineReport(runner="", state=RunState.DONE), (), "runner"),
        (PipelineReport(runner="r", state=RunState.DONE, lag_ms=-1), (), "lag_ms"),
        (
            PipelineReport(
                runner="r",
                state=RunState.DONE,
                routes=(ROUTE, RouteProgress(topic="t", operation="insert", errors_total=-1)),
            ),
            (),
            "routes[1].errors_total",
        ),
    ],
)
def test_a_report_has_bounds(report: PipelineReport, lines: tuple[LogLine, ...], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        decode_report(report_body(report, lines))
    assert refused.value.detail["field"] == field


def test_a_definition_and_its_options() -> None:
    found = decode_pipeline(b'{"definition": "INSERT x", "options": {"trigger_ms": 5}}')
    assert (found.definition, found.options) == ("INSERT x", {"trigger_ms": 5})
    twice = b'{"definition": "a", "definition": "b"}'
    for body in (b"{}", b'{"definition": 1}', twice, b'{"definition": "a", "options": 1}'):
        with pytest.raises(InvalidRequest):
            decode_pipeline(body)


def test_a_pipeline_is_told_whole() -> None:
    state = PipelineState(
        pipeline="routes:t",
        kind=PipelineKind.ROUTES,
        condition=PipelineCondition.RUNNING,
        created_ts=1,
        changed_ts=2,
        number=0,
        digest="d",
        table="t",
        report=REPORT,
    )
    told = msgspec.json.encode(pipeline_fields(state))
    assert msgspec.json.decode(told, type=PipelineState) == state and b'"created":' not in told


def test_a_report_in_which_a_key_is_given_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="runner is given twice"):
        decode_report(b'{"runner": "a", ' + report_body(REPORT, ())[1:])
