"""The system tables about registered tables and pipelines, a row each, and how far each route is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from topics.core.catalogview import pipeline_states, routes_by_table
from topics.core.registry import Topic
from topics.core.source import RouteStart, Source
from topics.engine.engine import Engine
from topics.limits import SECOND_MS
from topics.pipelinemodel import (
    PipelineReport,
    PipelineState,
    RouteProgress,
    RunState,
    names_of,
    own_name,
    routes_name,
)
from topics.sqlengine.access import Access

Row = tuple[Any, ...]


def table_rows(engine: Engine, access: Access) -> Iterator[Row]:
    machine = engine.machine
    routes = routes_by_table(machine)
    for name in sorted(filter(access.may_touch, machine.catalog.tables)):
        table = machine.catalog.tables[name]
        config = table.config
        yield (
            name,
            config.format.value,
            config.location or None,
            config.location_env or None,
            config.source or None,
            _json(config.key),
            _json(config.columns),
            _json(config.options),
            len(routes.get(name, ())),
            table.created_ms,
            table.changed_ms,
        )


def routes_of(topic: Topic) -> str:
    """The routes to a topic as JSON, with the words of system.topic_routes."""
    return _json(
        [
            {
                "table_id": source.table,
                "op": source.operation.value,
                "payload_mode": source.payload.value,
                "filter_expr": source.where,
                "partition_key_expr": source.partition_by,
            }
            for source in topic.sources
        ]
    )


def pipeline_rows(engine: Engine, access: Access) -> Iterator[Row]:
    for state in pipeline_states(engine.machine, engine.now_ms()):
        if may_see(access, state):
            yield _pipeline_row(state)


def may_see(access: Access, state: PipelineState) -> bool:
    """Whether all names of a pipeline are theirs."""
    return all(map(access.may_touch, [own_name(state.pipeline), *(name for _, name in names_of(state.config))]))


def route_rows(engine: Engine, topic: Topic) -> Iterator[Row]:
    for source in topic.sources:
        found = _progress(engine, topic.name, source)
        yield (
            topic.name,
            source.table,
            source.operation.value,
            source.payload.value,
            source.where,
            source.partition_by,
            _start(source),
            found.position or None,
            found.lag_versions,
            found.lag_records,
            _seconds(found.lag_ms),
            found.records_total,
            found.errors_total,
        )


def target_of(state: PipelineState) -> str:
    """Where a pipeline writes, in words."""
    if state.config is None:
        return "topics"
    return f"topic {state.config.topic}" if state.config.topic else f"delta {state.config.path}"


def sources_of(state: PipelineState) -> list[str]:
    """What a pipeline reads, in words."""
    if state.config is None:
        return [f"table {state.table}"]
    streams = [f"topic {stream.topic}" for stream in state.config.streams]
    return [*streams, *(f"table {each.table}" for each in state.config.tables)]


def _pipeline_row(state: PipelineState) -> Row:
    report = state.report or PipelineReport(runner="", state=RunState.STARTING)
    return (
        state.pipeline,
        state.kind.value,
        state.condition.value,
        state.paused,
        target_of(state),
        _json(sources_of(state)),
        None if state.config is None else state.config.definition,
        report.position or None,
        report.lag_versions,
        report.lag_records,
        _seconds(report.lag_ms),
        report.input_rows_per_second,
        report.output_rows_per_second,
        report.input_rows_total,
        report.output_rows_total,
        report.error_rows_total,
        report.restarts,
        report.last_error,
        report.last_error_ts,
        report.spark_ui,
        report.runner or None,
        state.reported_ts,
        state.created_ts,
        state.changed_ts,
    )


def _progress(engine: Engine, topic: str, source: Source) -> RouteProgress:
    pipeline = engine.machine.catalog.pipelines.get(routes_name(source.table))
    report = None if pipeline is None else pipeline.report
    for each in () if report is None else report.routes:
        if (each.topic, each.operation, each.number) == (topic, source.operation.value, source.number):
            return each
    return RouteProgress(topic=topic, operation=source.operation.value)


def _start(source: Source) -> str:
    version = f" {source.start_version}" if source.start is RouteStart.VERSION else ""
    return f"{source.start.value}{version}"


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / SECOND_MS


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
