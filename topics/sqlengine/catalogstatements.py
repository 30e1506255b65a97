"""Statements about tables and pipelines, each one command."""

from __future__ import annotations

from typing import TypeVar, assert_never

import msgspec

from topics.core.catalogview import find_table, pipeline_state, table_state
from topics.core.commands import Command
from topics.core.pipelinecommands import DropPipeline as Drop
from topics.core.pipelinecommands import DropTable, PutPipeline, PutTable
from topics.core.pipelinecommands import PausePipeline as Pause
from topics.engine.host import Host
from topics.errors import PipelineNotFound, TableNotFound
from topics.pipelinemodel import PipelineDropped, PipelineState, names_of
from topics.sql import rowcolumns
from topics.sql.grammar import Origin
from topics.sql.pipelinestatements import (
    CatalogStatement,
    CreatePipeline,
    DescribePipeline,
    DescribeTable,
    DropPipeline,
    PausePipeline,
    RegisterTable,
    UnregisterTable,
)
from topics.sql.statements import AddSource
from topics.sqlengine.access import Access
from topics.sqlengine.result import Result, columns
from topics.tablemodel import TableDropped, TableState

T = TypeVar("T")

_FIELDS = columns(("field", "VARCHAR"), ("value", "JSON"))


async def run(host: Host, statement: CatalogStatement, access: Access) -> Result:
    match statement:
        case RegisterTable():
            return await _register(host, statement)
        case UnregisterTable():
            return await _unregister(host, statement)
        case DescribeTable():
            return _described(table_state(host.engine.machine, statement.table))
        case CreatePipeline():
            return await _create(host, statement, access)
        case DropPipeline():
            return await _drop(host, statement, access)
        case PausePipeline():
            _touch(host, statement.pipeline, access)
            state = await _submit(host, Pause(statement.pipeline, statement.paused), PipelineState)
            return Result(message=f"pipeline {state.pipeline} {'paused' if state.paused else 'resumed'}")
        case DescribePipeline():
            return _described(_touch(host, statement.pipeline, access))
        case _:
            assert_never(statement)


def check_route(host: Host, statement: AddSource, origin: Origin) -> None:
    """Refuse expressions about columns that the table does not have, as far as its columns are known."""
    table = find_table(host.engine.machine, statement.table)
    known = [column.name for column in table.config.columns]
    for clause, expressions in (("WHERE", statement.where), ("PARTITION", statement.partition_by)):
        if known and expressions is not None:
            rowcolumns.check(expressions, clause, known, statement.table, origin)


async def _register(host: Host, statement: RegisterTable) -> Result:
    command = PutTable(statement.table, statement.config, statement.existing)
    before = host.engine.machine.catalog.tables.get(statement.table)
    state = await _submit(host, command, TableState)
    if state.created:
        return Result(message=f"table {state.table} registered")
    same = before is not None and before.config == state.config
    return Result(message=f"table {state.table} {'is registered already' if same else 'changed'}")


async def _unregister(host: Host, statement: UnregisterTable) -> Result:
    done = await _submit(host, DropTable(statement.table), TableDropped)
    if done.deleted:
        return Result(message=f"table {done.table} unregistered")
    if not statement.if_exists:
        raise TableNotFound(f'table "{done.table}" is not registered', table=done.table)
    return Result(message=f"there is no table {done.table}")


async def _create(host: Host, statement: CreatePipeline, access: Access) -> Result:
    command = PutPipeline(statement.pipeline, statement.config, statement.existing)
    machine = host.engine.machine
    before = machine.catalog.pipelines.get(statement.pipeline)
    if before is not None:
        _touch(host, statement.pipeline, access)
    for field, name in names_of(statement.config):
        # An alias is as good as the name of the topic that is meant, and no better.
        access.touch(machine.topics.name_of(name) if field == "topic" else name, field)
    config_before = None if before is None else before.config
    state = await _submit(host, command, PipelineState)
    if state.created:
        return Result(message=f"pipeline {state.pipeline} created")
    said = "is there already" if config_before == state.config else "changed"
    return Result(message=f"pipeline {state.pipeline} {said}")


async def _drop(host: Host, statement: DropPipeline, access: Access) -> Result:
    try:
        _touch(host, statement.pipeline, access)
    except PipelineNotFound:
        if not statement.if_exists:
            raise
    done = await _submit(host, Drop(statement.pipeline), PipelineDropped)
    said = f"pipeline {done.pipeline} dropped" if done.deleted else f"there is no pipeline {done.pipeline}"
    return Result(message=said)


def _touch(host: Host, pipeline: str, access: Access) -> PipelineState:
    """A pipeline, when all names in its definition are theirs who ask."""
    engine = host.engine
    state = pipeline_state(engine.machine, pipeline, engine.now_ms())
    for field, name in names_of(state.config):
        access.touch(name, field)
    return state


def _described(state: TableState | PipelineState) -> Result:
    fields = msgspec.structs.asdict(state)
    fields.pop("created")
    config = fields.pop("config", None)
    if config is not None:
        fields |= msgspec.structs.asdict(config)
    return Result(_FIELDS, [[name, msgspec.Raw(msgspec.json.encode(value))] for name, value in fields.items()])


async def _submit(host: Host, command: Command, kind: type[T]) -> T:
    reply = await host.submit(command)
    assert isinstance(reply, kind)
    return reply
