"""Tables and pipelines as users see them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec
import xxhash

from topics.core.catalog import Pipeline, Table
from topics.core.names import check_pipeline, check_table, shorten
from topics.errors import PipelineNotFound, TableNotFound
from topics.limits import REPORT_LOST_MS
from topics.pipelinemodel import (
    ROUTES_PREFIX,
    PipelineCondition,
    PipelineKind,
    PipelineState,
    RunState,
    routes_name,
)
from topics.tablemodel import TableRoute, TableState

if TYPE_CHECKING:
    from topics.core.machine import Machine
    from topics.core.source import Source

ALIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.RETRYING, RunState.PAUSED})
"""States whose runner goes on saying something."""

Routes = Mapping[str, tuple[TableRoute, ...]]
"""The routes out of each table."""

_encode = msgspec.msgpack.Encoder().encode


def find_table(machine: Machine, name: str) -> Table:
    found = machine.catalog.tables.get(name)
    if found is None:
        shown = shorten(name)
        message = f'table "{shown}" is not registered; REGISTER TABLE or `topics table register` makes it known'
        raise TableNotFound(message, table=shown)
    return found


class KnownColumns(Mapping[str, tuple[str, ...]]):
    """The names of the columns of each table of which somebody has told them. Looked up when asked for."""

    def __init__(self, machine: Machine) -> None:
        self._tables = machine.catalog.tables

    def __getitem__(self, name: str) -> tuple[str, ...]:
        columns = self._tables[name].config.columns
        if not columns:
            raise KeyError(name)
        return tuple(column.name for column in columns)

    def __iter__(self) -> Iterator[str]:
        return (name for name, table in self._tables.items() if table.config.columns)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def routes_by_table(machine: Machine) -> Routes:
    """The routes out of each table, in order of their topics: one pass for whoever looks at many tables."""
    found: dict[str, list[TableRoute]] = {}
    for topic in machine.topics.fed():
        for source in topic.sources:
            found.setdefault(source.table, []).append(_route(topic.name, source))
    return {table: tuple(routes) for table, routes in found.items()}


def routes_of(machine: Machine, table: str) -> tuple[TableRoute, ...]:
    """The routes out of one table."""
    sources = ((topic.name, source) for topic in machine.topics.fed() for source in topic.sources)
    return tuple(_route(topic, source) for topic, source in sources if source.table == table)


def _route(topic: str, source: Source) -> TableRoute:
    return TableRoute(
        topic=topic,
        operation=source.operation.value,
        payload=source.payload.value,
        where=source.where,
        partition_by=source.partition_by,
        start=source.start.value,
        start_version=source.start_version,
        declared_ms=source.declared_ms,
        number=source.number,
    )


def table_state(machine: Machine, name: str, created: bool = False, routes: Routes | None = None) -> TableState:
    """A table; `routes` are those of all tables, for whoever has them already."""
    check_table(name)
    table = find_table(machine, name)
    return TableState(
        table=table.name,
        config=table.config,
        created=created,
        created_ts=table.created_ms,
        changed_ts=table.changed_ms,
        routes=routes_of(machine, name) if routes is None else routes.get(name, ()),
    )


def pipeline_names(machine: Machine) -> list[str]:
    """All pipelines, those that are the routes of a table among them, in order."""
    declared = [name for name, pipeline in machine.catalog.pipelines.items() if pipeline.config is not None]
    fed = {source.table for topic in machine.topics.fed() for source in topic.sources}
    return sorted([*declared, *(routes_name(table) for table in fed if table in machine.catalog.tables)])


def pipeline_states(machine: Machine, now_ms: int) -> list[PipelineState]:
    """All pipelines, in order of their names."""
    routes = routes_by_table(machine)
    return [pipeline_state(machine, name, now_ms, routes=routes) for name in pipeline_names(machine)]


def pipeline_state(
    machine: Machine, name: str, now_ms: int, created: bool = False, routes: Routes | None = None
) -> PipelineState:
    """A pipeline; `routes` are those of all tables, for whoever has them already."""
    check_pipeline(name)
    pipeline = machine.catalog.pipelines.get(name)
    if name.startswith(ROUTES_PREFIX):
        table = name.removeprefix(ROUTES_PREFIX)
        own = routes_of(machine, table) if routes is None else routes.get(table, ())
        if not own or table not in machine.catalog.tables:
            raise _missing(name)
        return _state(machine, pipeline or Pipeline(name), now_ms, False, table, own)
    if pipeline is None or pipeline.config is None:
        raise _missing(name)
    return _state(machine, pipeline, now_ms, created)


def digest_of(states: list[PipelineState]) -> str:
    """Another one whenever one of these is another one, is paused or goes on, or when one comes or goes."""
    said = [(state.pipeline, state.number, state.digest, state.paused) for state in states]
    return xxhash.xxh3_64_hexdigest(_encode(said))


def _state(
    machine: Machine,
    pipeline: Pipeline,
    now_ms: int,
    created: bool,
    table: str | None = None,
    routes: tuple[TableRoute, ...] = (),
) -> PipelineState:
    config = pipeline.config
    entry = None if table is None else machine.catalog.tables.get(table)
    reads = [] if config is None else [machine.catalog.tables.get(each.table) for each in config.tables]
    known = [None if each is None else each.config for each in (*reads, entry)]
    created_ms = pipeline.created_ms if config is not None else min(route.declared_ms for route in routes)
    changed_ms = pipeline.changed_ms if config is not None else max(route.declared_ms for route in routes)
    return PipelineState(
        pipeline=pipeline.name,
        kind=PipelineKind.ROUTES if config is None else config.kind,
        condition=_condition(pipeline, now_ms),
        paused=pipeline.paused,
        created=created,
        created_ts=created_ms,
        changed_ts=changed_ms,
        number=pipeline.number,
        digest=xxhash.xxh3_64_hexdigest(_encode((pipeline.number, config, known, routes))),
        config=config,
        table=table,
        reported_ts=pipeline.reported_ms or None,
        report=pipeline.report,
    )


def _condition(pipeline: Pipeline, now_ms: int) -> PipelineCondition:
    report = pipeline.report
    if report is None:
        return PipelineCondition.PAUSED if pipeline.paused else PipelineCondition.WAITING
    if report.state in ALIVE and now_ms - pipeline.reported_ms > REPORT_LOST_MS:
        return PipelineCondition.PAUSED if pipeline.paused else PipelineCondition.LOST
    if pipeline.paused and report.state not in (RunState.STARTING, RunState.RUNNING):
        return PipelineCondition.PAUSED
    if report.state is RunState.PAUSED:
        return PipelineCondition.STARTING
    return PipelineCondition(report.state.value)


def _missing(name: str) -> PipelineNotFound:
    return PipelineNotFound(f'pipeline "{shorten(name)}" does not exist', pipeline=shorten(name))
