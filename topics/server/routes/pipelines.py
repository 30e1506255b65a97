"""Pipelines: put, look at, list, pause, resume and delete them; what runners report. See docs/PIPELINES.md.

A key sees and touches a pipeline only when it may touch all of its names: its own, and every topic and table in it. The
routes of a table are whose the table is.
"""

from __future__ import annotations

from functools import partial

import msgspec

from topics.core.catalogview import KnownColumns, digest_of, pipeline_state, pipeline_states
from topics.core.names import check_pipeline
from topics.core.pipelinecommands import DropPipeline, PausePipeline, PutPipeline, ReportPipeline
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import PipelineNotFound
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, REPORT_LINES_MAX, U64_MAX
from topics.pipelinemodel import (
    PipelineConfig,
    PipelineDropped,
    PipelineOrders,
    PipelineState,
    names_of,
    own_name,
    place_in,
)
from topics.server.answers import later, success, when_done
from topics.server.auth import check_name, check_place
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.pipelineschemas import PIPELINE
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.shapes import answer, body, parameter
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.pipeline import PipelineBody, decode_pipeline, decode_report, pipeline_fields
from topics.wire.query import Query


def put(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = _named(request)
    wanted = decode_pipeline(request.body)
    _check_existing(host.engine, request.principal, name)
    later(context, request, reply, _put(context, host, request, name, wanted))


async def _put(context: Context, host: Host, request: Request, name: str, wanted: PipelineBody) -> Response:
    # With the executor comes what reads SQL, or the error that says how to install it.
    await context.sql.executor(host)
    from topics.sql.pipelinegrammar import definition

    config = definition(wanted.definition, wanted.options, KnownColumns(host.engine.machine))
    _check_names(host.engine, request.principal, config)
    if place := place_in(config):
        check_place(request.principal, place)
    state = await host.submit(PutPipeline(name, config))
    assert isinstance(state, PipelineState)
    fields = {"created": state.created} | pipeline_fields(state)
    return success(context, request, fields, 201 if state.created else 200)


def look(context: Context, request: Request, reply: Reply) -> None:
    reply(success(context, request, pipeline_fields(_found(context, request))))


def logs(context: Context, request: Request, reply: Reply) -> None:
    state = _found(context, request)
    limit = Query(request.query).whole("limit", REPORT_LINES_MAX, U64_MAX)
    known = context.ready().engine.machine.catalog.pipelines.get(state.pipeline)
    lines = [] if known is None else list(known.lines)
    shown = lines[max(0, len(lines) - limit) :]
    reply(success(context, request, {"pipeline": state.pipeline, "logs": shown}))


def drop(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = _named(request)
    _check_existing(host.engine, request.principal, name)

    def make(ticket: Ticket) -> Response:
        dropped = ticket.result()
        assert isinstance(dropped, PipelineDropped)
        return success(context, request, {"pipeline": dropped.pipeline, "deleted": dropped.deleted})

    when_done(context, request, reply, host.decide(DropPipeline(name)), make)


def pause(paused: bool, context: Context, request: Request, reply: Reply) -> None:
    name = _found(context, request).pipeline

    def make(ticket: Ticket) -> Response:
        state = ticket.result()
        assert isinstance(state, PipelineState)
        return success(context, request, pipeline_fields(state))

    when_done(context, request, reply, context.ready().decide(PausePipeline(name, paused)), make)


def report(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = _named(request)
    said, lines = decode_report(request.body)
    _check_existing(host.engine, request.principal, name)

    def make(ticket: Ticket) -> Response:
        orders = ticket.result()
        assert isinstance(orders, PipelineOrders)
        return success(context, request, msgspec.structs.asdict(orders))

    when_done(context, request, reply, host.decide(ReportPipeline(name, said, lines)), make)


def list_pipelines(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    after, prefix = decode_cursor(query.text("cursor")), query.text("prefix")
    engine = context.ready().engine
    states = [state for state in visible(engine, request.principal) if state.pipeline.startswith(prefix)]
    rest = [state for state in states if state.pipeline > after]
    fields: dict[str, object] = {
        "pipelines": [pipeline_fields(state) for state in rest[:page_size]],
        "digest": digest_of(states),
    }
    if len(rest) > page_size:
        fields["next_cursor"] = encode_cursor(rest[page_size - 1].pipeline)
    reply(success(context, request, fields))


# ---- whose a pipeline is


def visible(engine: Engine, principal: Principal) -> list[PipelineState]:
    """The pipelines that a key may see, in order of their names."""
    return [state for state in pipeline_states(engine.machine, engine.now_ms()) if _may_see(principal, state)]


def _may_see(principal: Principal, state: PipelineState) -> bool:
    names = (name for _, name in names_of(state.config))
    return principal.may_touch(own_name(state.pipeline)) and all(map(principal.may_touch, names))


def _found(context: Context, request: Request) -> PipelineState:
    engine = context.ready().engine
    state = pipeline_state(engine.machine, _named(request), engine.now_ms())
    _check_names(engine, request.principal, state.config)
    return state


def _named(request: Request) -> str:
    """The pipeline of the path, within the key's prefixes: looked at first, so that others learn nothing of it."""
    name = request.params["pipeline"]
    check_name(request.principal, own_name(name), "pipeline")
    return check_pipeline(name)


def _check_existing(engine: Engine, principal: Principal, name: str) -> None:
    """A pipeline that is there is nobody's to change who may not touch its topics and tables."""
    try:
        _check_names(engine, principal, pipeline_state(engine.machine, name, engine.now_ms()).config)
    except PipelineNotFound:
        return


def _check_names(engine: Engine, principal: Principal, config: PipelineConfig | None) -> None:
    for field, name in names_of(config):
        check_name(principal, name, field)
        # An alias is as good as the name of the topic that is meant, and no better.
        if field == "topic":
            check_name(principal, engine.machine.topics.name_of(name), field)


ROUTES = (
    Route(
        "GET",
        "/v0/pipelines",
        Scope.READ,
        list_pipelines,
        Operation(
            "List pipelines",
            "Pipelines in order of their names, a page at a time, with definition and last report; only those of which "
            "the key may touch every name. The routes of each table are among them, as `routes:<table>`. "
            "`next_cursor` is there while there are more.",
            "pipelines",
            parameters=(
                parameter("prefix", {"type": "string"}, "Only names that begin with this."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Pipelines in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "string"}, "`next_cursor` of the page before."),
            ),
            responses={"200": answer("PipelineList", "A page of pipelines.")},
        ),
    ),
    Route(
        "PUT",
        "/v0/pipelines/{pipeline}",
        Scope.ADMIN,
        put,
        Operation(
            "Create or change a pipeline",
            "Declares what a runner is to do. `definition` is what stands behind AS in CREATE PIPELINE, and is checked "
            "as there: 400 `invalid_sql` with line, column and what was expected; 404 for topics and tables that are "
            "not there. One that exists keeps its number, and with that its position.",
            "pipelines",
            parameters=(PIPELINE,),
            request_body=body("PipelineDefinition"),
            responses={
                "200": answer("PipelinePut", "The pipeline existed; this is what it does now."),
                "201": answer("PipelinePut", "The pipeline was created."),
                "501": answer("Error", "The server lacks what SQL needs."),
            },
        ),
    ),
    Route(
        "GET",
        "/v0/pipelines/{pipeline}",
        Scope.READ,
        look,
        Operation(
            "Look at a pipeline",
            "What it does, how it is, and the last that its runner said. 404 `pipeline_not_found` when there is none.",
            "pipelines",
            parameters=(PIPELINE,),
            responses={"200": answer("PipelineState", "The pipeline as it is now.")},
        ),
    ),
    Route(
        "DELETE",
        "/v0/pipelines/{pipeline}",
        Scope.ADMIN,
        drop,
        Operation(
            "Drop a pipeline",
            "Its runner stops it. What it has written stays. One that is not there answers `deleted: false`; the "
            "routes of a table are taken away by ALTER TOPIC … DROP SOURCE.",
            "pipelines",
            parameters=(PIPELINE,),
            responses={"200": answer("PipelineDropped", "Whether it was there.")},
        ),
    ),
    Route(
        "POST",
        "/v0/pipelines/{pipeline}/pause",
        Scope.ADMIN,
        partial(pause, True),
        Operation(
            "Pause a pipeline",
            "Its runner stops it as soon as it hears of that, and keeps its position.",
            "pipelines",
            parameters=(PIPELINE,),
            request_body=body("PipelineNudge", required=False),
            responses={"200": answer("PipelineState", "The pipeline as it is now.")},
        ),
    ),
    Route(
        "POST",
        "/v0/pipelines/{pipeline}/resume",
        Scope.ADMIN,
        partial(pause, False),
        Operation(
            "Resume a pipeline",
            "It goes on from where it was paused.",
            "pipelines",
            parameters=(PIPELINE,),
            request_body=body("PipelineNudge", required=False),
            responses={"200": answer("PipelineState", "The pipeline as it is now.")},
        ),
    ),
    Route(
        "POST",
        "/v0/pipelines/{pipeline}/report",
        Scope.WRITE,
        report,
        Operation(
            "Report on a pipeline",
            "What a runner has to say, every few seconds and when something changes; the answer says what it is to do. "
            "409 `pipeline_taken`, with `detail.runner`, while another runner has it.",
            "pipelines",
            parameters=(PIPELINE,),
            request_body=body("PipelineReported"),
            responses={"200": answer("PipelineOrders", "What the runner is to do now.")},
        ),
    ),
    Route(
        "GET",
        "/v0/pipelines/{pipeline}/logs",
        Scope.READ,
        logs,
        Operation(
            "Read the log of a pipeline",
            "The last lines that its runner sent, oldest first. They are in memory, and gone with a restart.",
            "pipelines",
            parameters=(
                PIPELINE,
                parameter("limit", {"type": "integer", "minimum": 0}, "As many of the last lines as this."),
            ),
            responses={"200": answer("PipelineLogs", "Lines of its log.")},
        ),
    ),
)
