"""Sums over queries that run, that ended, and of earlier runners."""

from __future__ import annotations

from typing import Any, cast

from topics.pipelinemodel import (
    PipelineCondition,
    PipelineKind,
    PipelineReport,
    PipelineState,
    RouteProgress,
    RunState,
)
from topics.spark.pipeline.progress import Progress
from topics.spark.pipeline.queries import Running
from topics.spark.pipeline.tally import Tally
from topics.tablemodel import TableRoute

ROUTES = tuple(TableRoute(topic="t", operation="insert", payload="key", number=number) for number in (7, 12))


def state(report: PipelineReport | None = None) -> PipelineState:
    return PipelineState(
        pipeline="routes:a",
        kind=PipelineKind.ROUTES,
        condition=PipelineCondition.WAITING,
        created_ts=1,
        changed_ts=1,
        number=1,
        digest="",
        table="a",
        report=report,
    )


def running(lag: int | None = 0, **observed: int) -> Running:
    counts = {f"routes.{name}": count for name, count in observed.items()}
    progress = Progress(batch_id=3, position="version 9", lag=lag, input_rows=10, observed=counts)
    return Running("main", cast(Any, None), ROUTES, progress)


def by_route(told: dict[str, Any]) -> list[tuple[int, int, int]]:
    return [(each.number, each.records_total, each.errors_total) for each in told["routes"]]


def test_what_ended_is_kept_and_counted_once() -> None:
    tally, first = Tally(state()), running(records0=4, errors0=1, records1=2)
    told = tally.told([first], [first], 0)
    assert (told["input_rows_total"], told["output_rows_total"], told["error_rows_total"]) == (10, 6, 1)
    assert by_route(told) == [(7, 4, 1), (12, 2, 0)]
    tally.keep([first])
    assert tally.told([first], [], 0) | {"output_rows_per_second": 0.0} == told
    again = running(records1=5)
    assert by_route(tally.told([again], [again], 0)) == [(7, 4, 1), (12, 7, 0)]


def test_what_earlier_runners_counted_goes_on() -> None:
    route = RouteProgress(topic="t", operation="insert", number=12, records_total=100, errors_total=3)
    said = PipelineReport(
        runner="r", state=RunState.STOPPED, position="version 5", input_rows_total=50, routes=(route,)
    )
    tally = Tally(state(said))
    assert tally.told([], [], 0)["position"] == "version 5", "until there is another one"
    now = running(records1=1)
    told = tally.told([now], [now], 0)
    assert (told["input_rows_total"], by_route(told)) == (60, [(7, 0, 0), (12, 101, 3)])


def test_how_long_it_has_been_behind() -> None:
    tally = Tally(state())
    assert tally.told([], [], 500)["lag_ms"] is None
    assert tally.told([running(lag=2)], [], 1000)["lag_ms"] == 0
    late = tally.told([running(lag=1)], [], 4000)
    assert (late["lag_ms"], late["lag_versions"], late["lag_records"]) == (3000, 1, None)
    assert tally.told([running(lag=0)], [], 5000)["lag_ms"] == 0
    assert tally.told([running(lag=1)], [], 6000)["lag_ms"] == 0
