"""Atomic batches: records are staged, and stages published together or aborted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from topics.core.commands import Abort, Publish, Stage
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import Throttled
from topics.limits import U64_MAX
from topics.model import Aborted, Published, StageState, Written
from topics.server.answers import later, success, when_done
from topics.server.arrow import or_arrow, sends_arrow, with_codecs
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.records import partition_for
from topics.server.shapes import TOPIC, answer, body
from topics.server.tenants import Tenant, producer_of
from topics.wire.batch import StageRequest, decode_abort, decode_publish, decode_stage, stage_request
from topics.wire.query import Query


def stage(context: Context, request: Request, reply: Reply) -> None:
    if sends_arrow(request):
        with_codecs(_stage_arrow, context, request, reply)
    else:
        context.ready()
        _stage(context, request, reply, decode_stage(request.body, context.record_limits))


def _stage_arrow(context: Context, request: Request, reply: Reply) -> None:
    from topics.wire.arrowbody import decode_arrow_write

    context.ready()
    query = Query(request.query)
    batch = decode_arrow_write(request.body, query, context.record_limits)
    at = query.whole("at", None, U64_MAX)
    _stage(context, request, reply, stage_request(query.text("stage"), batch, at))


def _stage(context: Context, request: Request, reply: Reply, wanted: StageRequest) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    if not wanted.batch.disable_backpressure:
        context.throttle.admit()
    tenant = Tenant.of(request.principal)
    partition = partition_for(host, topic, wanted.batch)
    name = tenant.stored(wanted.stage)
    command = Stage(name, topic, wanted.batch.records, partition, wanted.at, wanted.waits)

    def make(ticket: Ticket) -> Response:
        state = ticket.result()
        assert isinstance(state, StageState)
        return success(context, request, msgspec.structs.asdict(state) | {"stage": wanted.stage})

    try:
        with tenant.naming((wanted.stage,)):
            ticket = host.decide(command)
    except Throttled as error:
        if not wanted.batch.disable_backpressure or "retry_after_ms" not in error.detail:
            raise
        later(context, request, reply, _stage_patiently(host, command, make))
        return
    when_done(context, request, reply, ticket, make)


async def _stage_patiently(host: Host, command: Stage, make: Callable[[Ticket], Response]) -> Response:
    ticket = await host.admit(command)
    if not ticket.done:
        await host.answer(ticket)
    return make(ticket)


def publish(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = decode_publish(request.body)
    principal, batches = request.principal, host.engine.machine.batches
    tenant, names = Tenant.of(principal), (*wanted.stages, wanted.producer_id)

    def make(ticket: Ticket) -> Response:
        published = ticket.result()
        assert isinstance(published, Published)
        fields = {"written": [part_of(written) for written in published.written], "deduped": published.deduped}
        return success(context, request, fields)

    with tenant.naming(names):
        producer = producer_of(principal, batches, wanted.producer_id, wanted.epoch)
        command = Publish(tuple(map(tenant.stored, wanted.stages)), producer, wanted.epoch)
        ticket = host.decide(command)
    ticket.on_done(partial(_rename, tenant, names))
    when_done(context, request, reply, ticket, make)


def abort(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    stages = decode_abort(request.body)
    tenant = Tenant.of(request.principal)
    given = {tenant.stored(stage): stage for stage in stages}

    def make(ticket: Ticket) -> Response:
        aborted = ticket.result()
        assert isinstance(aborted, Aborted)
        return success(context, request, {"stages": [given[stage] for stage in aborted.stages]})

    with tenant.naming(stages):
        ticket = host.decide(Abort(tuple(given)))
    when_done(context, request, reply, ticket, make)


def _rename(tenant: Tenant, names: Iterable[str], ticket: Ticket) -> None:
    if ticket.error is not None:
        tenant.rename(ticket.error, names)


def part_of(written: Written) -> dict[str, object]:
    return {
        "topic": written.topic,
        "partition": written.partition,
        "first_seq": written.first_seq,
        "last_seq": written.last_seq,
        "head_seq": written.head_seq,
        "count": written.count,
    }


ROUTES = (
    Route(
        "POST",
        "/v0/topics/{topic}/stage",
        Scope.WRITE,
        stage,
        Operation(
            "Stage records",
            "Puts records aside for a topic: durable, seen by nobody, and gone at `expires_ts` unless their stage is "
            "published. A stage takes records until then, all for one partition of one topic. A repeated request adds "
            "its records again, unless it says at which place in the stage they belong (`at`); use a fresh stage name "
            "for each attempt and abort the others. Jobs may wait, all of them or each by itself: `delay_ms` counts "
            "from the publish. The body may be an Arrow stream, as that of a write; `stage` is then a parameter of the "
            "query.",
            "batches",
            parameters=(TOPIC,),
            request_body=or_arrow(body("StageRequest")),
            responses={"200": answer("StageState", "What the stage holds now.")},
        ),
        name_param="topic",
    ),
    Route(
        "POST",
        "/v0/publish",
        Scope.WRITE,
        publish,
        Operation(
            "Publish stages",
            "Makes the records of all named stages visible in one commit, in the order named: all or nothing, also "
            "over several topics. Publishing the same `producer_id` and `epoch` again gives the first answer; an older "
            "epoch is refused.",
            "batches",
            request_body=body("PublishRequest"),
            responses={"200": answer("Published", "What was written, a part for each stage.")},
        ),
    ),
    Route(
        "POST",
        "/v0/abort",
        Scope.WRITE,
        abort,
        Operation(
            "Abort stages",
            "Forgets staged records. A stage that is not there is no error; one that is being published is.",
            "batches",
            request_body=body("AbortRequest"),
            responses={"200": answer("Aborted", "The stages that were there and are gone.")},
        ),
    ),
)
