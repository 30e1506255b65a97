"""Pipelines as a person sees them: a table of all, and everything about one."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from topics.cli.pretty import moment
from topics.cli.screen import printable
from topics.pipelinemodel import PipelineCondition, PipelineReport, PipelineState, RouteProgress

_STYLES = {
    PipelineCondition.RUNNING: "green",
    PipelineCondition.DONE: "green",
    PipelineCondition.RETRYING: "yellow",
    PipelineCondition.FAILED: "bold red",
    PipelineCondition.LOST: "bold red",
    PipelineCondition.PAUSED: "cyan",
}
_WHY = {
    PipelineCondition.WAITING: "no runner has taken it yet: `topics pipeline run` starts one",
    PipelineCondition.LOST: "its runner has said nothing for a while: is it still there?",
    PipelineCondition.STOPPED: "its runner has ended: `topics pipeline run` starts one",
}


def pipelines_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("pipeline", "from", "to", "state", "position"):
        table.add_column(name, overflow="fold", style="cyan" if name == "pipeline" else "")
    for name in ("waiting", "behind", "rows/s"):
        table.add_column(name, justify="right")
    return table


def add_pipeline(table: Table, state: PipelineState) -> None:
    report = state.report
    table.add_row(
        Text(state.pipeline),
        Text(_reads(state)),
        Text(_writes(state)),
        Text(state.condition.value, style=_STYLES.get(state.condition, "")),
        Text(printable(report.position) if report is not None else ""),
        _waiting(report),
        _behind(None if report is None else report.lag_ms),
        "" if report is None else f"{report.output_rows_per_second:,.0f}",
    )


def whole(state: PipelineState) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("pipeline", Text(state.pipeline, style="bold"))
    condition = Text(state.condition.value, style=_STYLES.get(state.condition, ""))
    if why := _WHY.get(state.condition):
        condition.append(f"; {why}", style="dim")
    grid.add_row("state", condition)
    grid.add_row("from", Text(_reads(state)))
    grid.add_row("to", Text(_writes(state)))
    if state.config is not None:
        grid.add_row("definition", Text(printable(" ".join(state.config.definition.split()))))
    if state.report is not None:
        _add_report(grid, state.report)
    grid.add_row("declared", moment(state.created_ts, "seconds"))
    grid.add_row("last report", moment(state.reported_ts, "seconds"))
    return grid


def _add_report(grid: Table, report: PipelineReport) -> None:
    grid.add_row("runner", Text(printable(report.runner)))
    grid.add_row("position", Text(printable(report.position or "at the beginning")))
    grid.add_row("lag", _lag(report))
    rates = f"{report.input_rows_per_second:,.1f} rows/s in, {report.output_rows_per_second:,.1f} rows/s out"
    grid.add_row("rates", rates)
    totals = f"{report.input_rows_total:,} in, {report.output_rows_total:,} out, {report.error_rows_total:,} failed"
    grid.add_row("rows", totals)
    if report.batch_id is not None:
        took = "" if report.batch_ms is None else f", took {report.batch_ms:,} ms"
        grid.add_row("last batch", f"{report.batch_id}{took}")
    if report.restarts:
        grid.add_row("restarts", f"{report.restarts:,}")
    if report.last_error is not None:
        when = f" ({moment(report.last_error_ts, 'seconds')})" if report.last_error_ts is not None else ""
        grid.add_row("last error", Text(printable(report.last_error) + when, style="red"))
    if report.spark_ui is not None:
        grid.add_row("Spark UI", Text(printable(report.spark_ui), style=f"link {report.spark_ui}"))
    for route in report.routes:
        grid.add_row("route", Text(printable(_route(route))))


def _route(route: RouteProgress) -> str:
    errors = f", {route.errors_total:,} failed" if route.errors_total else ""
    lag = _lag(route)
    behind = f", {lag} behind" if lag != "none" else ""
    return f"{route.operation} → {route.topic}: {route.position}, {route.records_total:,} written{errors}{behind}"


def _lag(report: PipelineReport | RouteProgress) -> str:
    parts = []
    if report.lag_versions:
        parts.append(f"{report.lag_versions:,} versions")
    if report.lag_records:
        parts.append(f"{report.lag_records:,} records")
    if report.lag_ms:
        parts.append(_behind(report.lag_ms))
    return ", ".join(parts) or "none"


def _waiting(report: PipelineReport | None) -> str:
    if report is None:
        return ""
    if report.lag_records is None and report.lag_versions is not None:
        return f"{report.lag_versions:,} versions"
    return "" if report.lag_records is None else f"{report.lag_records:,}"


def _behind(lag_ms: int | None) -> str:
    return f"{lag_ms / 1000:,.1f} s" if lag_ms else ""


def _reads(state: PipelineState) -> str:
    if state.config is None:
        return f"{state.table}"
    names = [*(stream.topic for stream in state.config.streams), *(each.table for each in state.config.tables)]
    return ", ".join(names)


def _writes(state: PipelineState) -> str:
    if state.config is None:
        topics = sorted({route.topic for route in state.report.routes}) if state.report is not None else []
        return ", ".join(topics) or "its routes"
    return state.config.topic or printable(state.config.path)
