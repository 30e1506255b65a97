"""Writing records: the hottest path of the server.

One decode, one command, one ticket; the answer is formatted by hand when the ticket is done. A task is made only for a
write that must not be refused (`disable_backpressure`) while the disk is behind. Plain writes rarely come here: those
of one turn are stored together, see `lane.py`. A body may be an Arrow stream, see `arrow.py`.
"""

from __future__ import annotations

from topics.core import config as configs
from topics.core.commands import Append
from topics.core.dedupe import DedupeKey, check_idempotency_key
from topics.core.partition import partition_of
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import Throttled
from topics.server.answers import NS_PER_MS, later, when_done
from topics.server.arrow import or_arrow, sends_arrow, with_codecs
from topics.server.auth import check_config
from topics.server.context import Context
from topics.server.intake.order import APPEND
from topics.server.message import Reply, Request, Response
from topics.server.principal import EVERYBODY, Scope
from topics.server.route import Operation, Route
from topics.server.shapes import TOPIC, answer, body, flag_parameter
from topics.server.written import Timing, written_response
from topics.wire.query import Query
from topics.wire.records import WriteBatch, decode_write


def write(context: Context, request: Request, reply: Reply) -> None:
    if sends_arrow(request):
        with_codecs(_write_arrow, context, request, reply)
    else:
        context.ready()
        _write(context, request, reply, decode_write(request.body, context.record_limits))


def _write_arrow(context: Context, request: Request, reply: Reply) -> None:
    from topics.wire.arrowbody import decode_arrow_write

    context.ready()
    batch = decode_arrow_write(request.body, Query(request.query), context.record_limits)
    _write(context, request, reply, batch)


def _write(context: Context, request: Request, reply: Reply, batch: WriteBatch) -> None:
    host = context.ready()
    if not batch.disable_backpressure:
        context.throttle.admit()
    command = _command(host, request, batch)
    with_seqs = not request.query or Query(request.query).flag("return_seqs", True)
    submitted_ns = context.clock.ticks_ns()
    try:
        ticket = host.engine.submit(command)
    except Throttled as error:
        if not batch.disable_backpressure or "retry_after_ms" not in error.detail:
            raise
        later(context, request, reply, _write_patiently(context, host, request, command, with_seqs))
        return
    request.decided = True

    def make(ticket: Ticket) -> Response:
        return written_response(context, ticket, Timing(request.received_ns, submitted_ns), with_seqs)

    when_done(context, request, reply, ticket, make)


async def _write_patiently(
    context: Context, host: Host, request: Request, command: Append, with_seqs: bool
) -> Response:
    began_ns = context.clock.ticks_ns()
    ticket = await host.admit(command)
    submitted_ns = context.clock.ticks_ns()
    if not ticket.done:
        await host.answer(ticket)
    timing = Timing(request.received_ns, submitted_ns, (submitted_ns - began_ns) / NS_PER_MS)
    return written_response(context, ticket, timing, with_seqs)


def _command(host: Host, request: Request, batch: WriteBatch) -> Append:
    topic = request.params["topic"]
    dedupe_key = batch.dedupe_key
    if dedupe_key is None and (header := request.headers.get("idempotency-key")) is not None:
        dedupe_key = check_idempotency_key(header)
    if batch.config is not None and request.principal is not EVERYBODY:
        check_config(request.principal, batch.config)
    return append_of(host, topic, batch, dedupe_key)


def append_of(host: Host, topic: str, batch: WriteBatch, dedupe_key: DedupeKey | None) -> Append:
    """The command that a write is."""
    return Append(
        topic,
        batch.records,
        partition_for(host, topic, batch),
        dedupe_key,
        batch.create,
        batch.config,
        batch.delay_ms,
        batch.not_before_ms,
        batch.waits,
    )


def partition_for(host: Host, topic: str, batch: WriteBatch) -> int:
    """The partition a write goes to; a topic that does not exist yet has as many as the config gives it."""
    if batch.key is None:
        return batch.partition or 0
    found = host.engine.machine.topics.get(topic)
    config = found.config if found is not None else configs.build(topic, batch.config or {})
    return partition_of(batch.key, config.partitions)


ROUTES = (
    Route(
        "POST",
        "/v0/topics/{topic}",
        Scope.WRITE,
        write,
        Operation(
            "Append records",
            "Appends 1 or more records as one atomic write; the server assigns their seqs. A topic that does not exist "
            "is created, with `config`, unless `create` is false. A write with an idempotency key (the field, or the "
            "header `Idempotency-Key`) is safe to repeat within the topic's window. The body may be an Arrow stream "
            "(`Content-Type: application/vnd.apache.arrow.stream`) with the columns `data` (JSON text), and if wanted "
            "`tag`, `node`, `meta`, and `delay_ms` or `not_before`; the other fields but `config` are then parameters "
            "of the query.",
            "records",
            parameters=(
                TOPIC,
                flag_parameter("return_seqs", True, "Whether the answer lists every seq."),
                {
                    "name": "Idempotency-Key",
                    "in": "header",
                    "description": "Same as `idempotency_key` in the body, which goes first.",
                    "schema": {"type": "string", "minLength": 1, "maxLength": 256},
                },
            ),
            request_body=or_arrow(body("WriteRequest")),
            responses={
                "200": answer("Written", "The records are in the log, as safe as the topic's class asks for."),
                "201": answer("Written", "The same, and this write created the topic."),
            },
        ),
        name_param="topic",
        order=APPEND,
    ),
)
