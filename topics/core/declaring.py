"""Tables and pipelines declared and taken back. Everything is checked before the first change."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from topics.core import reporting
from topics.core.catalog import Pipeline
from topics.core.catalogview import find_table, pipeline_state, routes_of, table_state
from topics.core.names import check_pipeline, check_table, check_topic
from topics.core.outcome import Outcome
from topics.core.pipelinecommands import (
    CatalogCommand,
    DropPipeline,
    DropTable,
    Existing,
    PausePipeline,
    PutPipeline,
    PutTable,
    ReportPipeline,
)
from topics.core.pipelinefacts import CatalogFact, PipelineGone, PipelinePut, TableGone, TablePut
from topics.core.table import check_config
from topics.errors import InvalidRequest, NameTaken, TableInUse, Throttled, TopicNotFound
from topics.limits import PIPELINE_BYTES_MAX, PIPELINE_READS_MAX, PIPELINES_MAX, TABLES_MAX, TRIGGER_MS_MAX, U32_MAX
from topics.pipelinemodel import (
    ROUTES_PREFIX,
    PipelineConfig,
    PipelineDropped,
    PipelineKind,
    PipelineStream,
    routes_name,
)
from topics.tablemodel import TableDropped

if TYPE_CHECKING:
    from topics.core.machine import Machine


def decide(machine: Machine, command: CatalogCommand, now_ms: int) -> Outcome:
    match command:
        case PutTable():
            return _put_table(machine, command, now_ms)
        case DropTable():
            return _drop_table(machine, command)
        case PutPipeline():
            return _put_pipeline(machine, command, now_ms)
        case DropPipeline():
            return _drop_pipeline(machine, command)
        case PausePipeline():
            return reporting.pause(machine, command, now_ms)
        case ReportPipeline():
            return reporting.report(machine, command, now_ms)
        case _:
            assert_never(command)


def apply(machine: Machine, fact: CatalogFact) -> None:
    machine.catalog.apply(fact)
    if isinstance(fact, PipelinePut):
        machine.next_epoch = max(machine.next_epoch, fact.number + 1)


# ---- tables


def _put_table(machine: Machine, command: PutTable, now_ms: int) -> Outcome:
    name, config = check_table(command.table), command.config
    check_pipeline(routes_name(name), "table")
    check_config(name, config)
    existing = machine.catalog.tables.get(name)
    if existing is None and len(machine.catalog.tables) >= TABLES_MAX:
        raise Throttled(f"there are {TABLES_MAX} tables, as many as there may be", limit="tables", max=TABLES_MAX)
    if existing is not None and command.existing is not Existing.REPLACE and existing.config != config:
        if command.existing is Existing.REFUSE:
            raise NameTaken(
                f'table "{name}" is registered already, in another way; REGISTER OR REPLACE TABLE changes it',
                table=name,
            )
        return Outcome(table_state(machine, name))
    if existing is not None and existing.config == config:
        return Outcome(table_state(machine, name))
    fact = TablePut(name, config, now_ms if existing is None else existing.created_ms, now_ms)
    apply(machine, fact)
    return reporting.stored(table_state(machine, name, created=existing is None), fact)


def _drop_table(machine: Machine, command: DropTable) -> Outcome:
    name = check_table(command.table)
    if name not in machine.catalog.tables:
        return Outcome(TableDropped(table=name, deleted=False))
    topics = sorted({route.topic for route in routes_of(machine, name)})
    pipelines = sorted(
        pipeline.name
        for pipeline in machine.catalog.pipelines.values()
        if pipeline.config is not None and name in [each.table for each in pipeline.config.tables]
    )
    if topics or pipelines:
        ways = [f"ALTER TOPIC {topic} DROP SOURCE {name}" for topic in topics]
        ways += [f"DROP PIPELINE {pipeline}" for pipeline in pipelines]
        raise TableInUse(
            f'table "{name}" is still read; first {"; ".join(ways)}', table=name, topics=topics, pipelines=pipelines
        )
    fact = TableGone(name)
    apply(machine, fact)
    return reporting.stored(TableDropped(table=name, deleted=True), fact)


# ---- pipelines


def _put_pipeline(machine: Machine, command: PutPipeline, now_ms: int) -> Outcome:
    name = check_pipeline(command.pipeline)
    if name.startswith(ROUTES_PREFIX):
        raise InvalidRequest(
            f'a name that begins with "{ROUTES_PREFIX}" is that of a table\'s routes; ALTER TOPIC … ADD SOURCE makes '
            "them",
            field="pipeline",
            expected="another name",
        )
    config = _without_aliases(machine, _checked(command.config))
    _check_reads(machine, config)
    existing = machine.catalog.pipelines.get(name)
    if existing is None and len(machine.catalog.pipelines) >= PIPELINES_MAX:
        raise Throttled(
            f"there are {PIPELINES_MAX} pipelines, as many as there may be", limit="pipelines", max=PIPELINES_MAX
        )
    if existing is not None and command.existing is not Existing.REPLACE and existing.config != config:
        if command.existing is Existing.REFUSE:
            raise NameTaken(
                f'pipeline "{name}" is there already and does something else; CREATE OR REPLACE PIPELINE changes it',
                pipeline=name,
            )
        return Outcome(pipeline_state(machine, name, now_ms))
    if existing is not None and existing.config == config:
        return Outcome(pipeline_state(machine, name, now_ms))
    fact = _fact(machine, name, config, existing, now_ms)
    apply(machine, fact)
    return reporting.stored(pipeline_state(machine, name, now_ms, created=existing is None), fact)


def _fact(machine: Machine, name: str, config: PipelineConfig, existing: Pipeline | None, now_ms: int) -> PipelinePut:
    if existing is None:
        return PipelinePut(name, machine.next_epoch, config, now_ms, now_ms)
    return PipelinePut(name, existing.number, config, existing.created_ms, now_ms)


def _drop_pipeline(machine: Machine, command: DropPipeline) -> Outcome:
    name = check_pipeline(command.pipeline)
    if name.startswith(ROUTES_PREFIX):
        table = name.removeprefix(ROUTES_PREFIX)
        raise InvalidRequest(
            f"this pipeline is the routes of table {table}; ALTER TOPIC … DROP SOURCE {table} takes one away, and "
            "ALTER PIPELINE … PAUSE lets all of them rest",
            field="pipeline",
            expected="the name of a pipeline that was created",
        )
    if name not in machine.catalog.pipelines:
        return Outcome(PipelineDropped(pipeline=name, deleted=False))
    fact = PipelineGone(name)
    apply(machine, fact)
    return reporting.stored(PipelineDropped(pipeline=name, deleted=True), fact)


def _checked(config: PipelineConfig) -> PipelineConfig:
    if len(config.definition.encode()) > PIPELINE_BYTES_MAX:
        raise InvalidRequest(f"a pipeline has at most {PIPELINE_BYTES_MAX} bytes", field="definition")
    if len(config.streams) + len(config.tables) > PIPELINE_READS_MAX:
        raise InvalidRequest(f"a pipeline reads at most {PIPELINE_READS_MAX} topics and tables", field="definition")
    options = config.options
    bounds = (("trigger_ms", options.trigger_ms, TRIGGER_MS_MAX), ("max_records", options.max_records, U32_MAX))
    for field, value, most in bounds:
        if not 0 <= value <= most:
            expected = f"a whole number from 0 to {most}"
            raise InvalidRequest(f"{field} is {expected}, not {value}", field=field, expected=expected)
    if options.output_mode != "append" and config.kind is PipelineKind.APPEND:
        raise InvalidRequest("APPEND adds rows: its output_mode is append", field="output_mode", expected="append")
    return config


def _without_aliases(machine: Machine, config: PipelineConfig) -> PipelineConfig:
    streams = tuple(
        msgspec.structs.replace(stream, topic=machine.topics.name_of(stream.topic)) for stream in config.streams
    )
    return msgspec.structs.replace(config, topic=machine.topics.name_of(config.topic), streams=streams)


def _check_reads(machine: Machine, config: PipelineConfig) -> None:
    if config.kind is PipelineKind.INSERT:
        check_topic(config.topic)
    for stream in config.streams:
        _check_stream(machine, config, stream)
    for each in config.tables:
        find_table(machine, each.table)


def _check_stream(machine: Machine, config: PipelineConfig, stream: PipelineStream) -> None:
    check_topic(stream.topic)
    if machine.topics.get(stream.topic) is None:
        raise TopicNotFound(
            f'topic "{stream.topic}" does not exist; CREATE TOPIC {stream.topic} makes it', topic=stream.topic
        )
    if stream.topic == config.topic:
        raise InvalidRequest(
            f'a pipeline cannot write into the topic that it reads: "{stream.topic}" would never end',
            field="definition",
            expected="another topic",
        )
