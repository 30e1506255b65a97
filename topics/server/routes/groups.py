"""Consumer groups by request: records for a consumer, what it says about them, and how a group stands.

Records are handed out as they are stored, text cut from the log; nothing is done a record here. A consume that waits
has no task: its ticket is done when there is something or the time is over. Somebody who waits and goes away must not
be handed anything any more, so such a request asks to be told (`Request.on_gone`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from topics.core.groupcommands import AnyGroupCommand, DropGroup, PauseGroup
from topics.core.names import check_group, check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.groupmodel import AckedGroup, GroupBatch, GroupState
from topics.limits import PARTITIONS_MAX
from topics.server.answers import elapsed_ms, failure, success, when_done
from topics.server.context import Context
from topics.server.groupschemas import GROUP
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import PARTITION, TOPIC, answer, body
from topics.wire.group import decode_ack, decode_consume, decode_extend, decode_nack, decode_reset
from topics.wire.nothing import check_nothing
from topics.wire.query import Query

_CONSUMED: Final = (
    b'{"topic":"%b",%b"group":"%b",%b"records":[%b],"count":%d,"first_seq":%d,"last_seq":%d,"claim_id":%b,'
    b'"deadline":%d,"visibility_ms":%d,"deliveries":%d,"committed_seq":%d,"head_seq":%d,"lag":%d,"tombstone":%b,'
    b'"paused":%b,'
    b'"performance":{"server_total_ms":%.3f}}'
)
_ACKED: Final = (
    b'{"topic":"%b",%b"group":"%b","acked":%d,"committed_seq":%d,"head_seq":%d,"lag":%d,'
    b'"performance":{"server_total_ms":%.3f}}'
)


def consume(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    groups = host.engine.groups
    wanted = decode_consume(*_names(request), request.body)
    context.throttle.admit()
    acked = Ticket(done=True) if wanted.ack is None else host.decide(wanted.ack)
    take = groups.consume_anywhere if wanted.anywhere else groups.consume
    ticket = take(wanted.command, wanted.wait_ms)

    def make(ticket: Ticket) -> Response:
        batch, done = ticket.result(), acked.reply
        assert isinstance(batch, GroupBatch)
        if isinstance(done, AckedGroup) and done.partition == batch.partition:
            # When this was decided the ack was not safe yet.
            batch = msgspec.structs.replace(batch, committed_seq=max(batch.committed_seq, done.committed_seq))
        return Response(200, consumed(context, host, request, batch))

    def gone() -> None:
        if groups.cancel(ticket):
            command = wanted.command
            ticket.resolve(GroupBatch(topic=command.topic, partition=command.partition, group=command.group))

    def when_acked(acked: Ticket) -> None:
        if acked.error is not None:
            reply(failure(context, request, acked.error))
        else:
            when_done(context, request, reply, ticket, make)

    if wanted.wait_ms and not ticket.done:
        request.on_gone = gone
    acked.on_done(when_acked)


def consumed(context: Context, host: Host, request: Request, batch: GroupBatch) -> bytes:
    return _CONSUMED % (
        batch.topic.encode(),
        _partition(host, batch.topic, batch.partition),
        batch.group.encode(),
        b'"consumer":%b,' % msgspec.json.encode(batch.consumer) if batch.consumer else b"",
        batch.body,
        batch.count,
        batch.first_seq,
        batch.last_seq,
        b'"%b"' % batch.claim_id.encode() if batch.claim_id else b"null",
        batch.deadline,
        batch.visibility_ms,
        batch.deliveries,
        batch.committed_seq,
        batch.head_seq,
        batch.lag,
        b"null" if batch.tombstone is None else msgspec.json.encode(batch.tombstone),
        b"true" if batch.paused else b"false",
        elapsed_ms(context, request.received_ns),
    )


def ack(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    command = decode_ack(*_names(request), request.body)

    def make(ticket: Ticket) -> Response:
        acked = ticket.result()
        assert isinstance(acked, AckedGroup)
        text = _ACKED % (
            acked.topic.encode(),
            _partition(host, acked.topic, acked.partition),
            acked.group.encode(),
            acked.acked,
            acked.committed_seq,
            acked.head_seq,
            acked.lag,
            elapsed_ms(context, request.received_ns),
        )
        return Response(200, text)

    when_done(context, request, reply, host.decide(command), make)


def nack(context: Context, request: Request, reply: Reply) -> None:
    _decide(context, request, reply, decode_nack(*_names(request), request.body))


def extend(context: Context, request: Request, reply: Reply) -> None:
    _decide(context, request, reply, decode_extend(*_names(request), request.body))


def reset(context: Context, request: Request, reply: Reply) -> None:
    _decide(context, request, reply, decode_reset(*_names(request), request.body))


def pause(context: Context, request: Request, reply: Reply) -> None:
    check_nothing(request.body)
    _decide(context, request, reply, PauseGroup(*_names(request), paused=True))


def resume(context: Context, request: Request, reply: Reply) -> None:
    check_nothing(request.body)
    _decide(context, request, reply, PauseGroup(*_names(request), paused=False))


def drop(context: Context, request: Request, reply: Reply) -> None:
    _decide(context, request, reply, DropGroup(*_names(request)))


def _decide(context: Context, request: Request, reply: Reply, command: AnyGroupCommand) -> None:
    host = context.ready()

    def make(ticket: Ticket) -> Response:
        answered = ticket.result()
        assert isinstance(answered, msgspec.Struct)
        fields = msgspec.structs.asdict(answered)
        if "partition" in fields and not _partition(host, fields["topic"], 0):
            del fields["partition"]
        return success(context, request, fields)

    when_done(context, request, reply, host.decide(command), make)


def state(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic, group = _names(request)
    partition = Query(request.query).whole("partition", 0, PARTITIONS_MAX - 1)
    found = host.engine.groups.state(topic, group, partition)
    reply(success(context, request, state_fields(host, found)))


def list_groups(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    states = [state_fields(host, found) for found in host.engine.groups.list(topic)]
    reply(success(context, request, {"topic": topic, "groups": states}))


def state_fields(host: Host, found: GroupState) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(found)
    if not _partition(host, found.topic, 0):
        del fields["partition"]
    return fields | {"lag": found.lag}


def _names(request: Request) -> tuple[str, str]:
    return check_topic(request.params["topic"]), check_group(request.params["group"])


def _partition(host: Host, topic: str, partition: int) -> bytes:
    """Who has one partition need not know that there could be more. The topic may have been deleted since."""
    found = host.engine.machine.topics.get(topic)
    return b'"partition":%d,' % partition if found is not None and found.config.partitions > 1 else b""


def _route(
    method: str,
    verb: str,
    handler: Any,
    summary: str,
    description: str,
    responses: dict[str, Any],
    scope: Scope = Scope.READ | Scope.WRITE,
    request: str | None = None,
    required: bool = True,
    parameters: tuple[dict[str, Any], ...] = (),
    reads: bool = False,
) -> Route:
    return Route(
        method,
        f"/v0/topics/{{topic}}/groups/{{group}}{verb}",
        scope,
        handler,
        Operation(
            summary,
            description,
            "groups",
            parameters=(TOPIC, GROUP, *parameters),
            request_body=None if request is None else body(request, required),
            responses=responses,
        ),
        name_param="topic",
        reads="topic" if reads else None,
    )


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/groups",
        Scope.READ,
        list_groups,
        Operation(
            "List the groups of a topic",
            "All of them, by name and partition.",
            "groups",
            parameters=(TOPIC,),
            responses={"200": answer("GroupList", "The groups.")},
        ),
        name_param="topic",
        reads="topic",
    ),
    _route(
        "GET",
        "",
        state,
        "Look at a group",
        "Its committed seq, how far it lags behind, who has which ranges, and what it lost.",
        {"200": answer("GroupState", "How it stands.")},
        Scope.READ,
        parameters=(PARTITION,),
        reads=True,
    ),
    _route(
        "DELETE",
        "",
        drop,
        "Drop a group",
        "Forgets it in all partitions. Those who wait for its records are told `group_not_found`.",
        {"200": answer("GroupDropped", "Whether there was one.")},
    ),
    _route(
        "POST",
        "/consume",
        consume,
        "Consume records",
        "Hands the next records to a consumer: nobody else gets them before `deadline`. What came back goes first, "
        "then what was never handed out. The first call makes the group and pins where it begins (`from`); later ones "
        "ignore it. Ack with `upto_seq` = `last_seq`. What was lost before it could be handed out is told as a "
        "`tombstone`, until it is acked in the same way. With `wait_ms` the answer waits for records.",
        {"200": answer("GroupBatch", "The records, and until when they are this consumer's.")},
        request="ConsumeRequest",
        required=False,
        reads=True,
    ),
    _route(
        "POST",
        "/ack",
        ack,
        "Ack records",
        "Acks the claim that holds `upto_seq`, up to it, and what was never handed out below it; with `consumer`, all "
        "its own claims up to there. What others have, or gave back, stays theirs and holds the commit back. Repeating "
        "this is safe.",
        {"200": answer("GroupAcked", "How far the group has come.")},
        request="GroupAckRequest",
    ),
    _route(
        "POST",
        "/nack",
        nack,
        "Give records back",
        "Others get them at once, or after `delay_ms`: the claim that holds `upto_seq`, or what `consumer` or "
        "`claim_id` name.",
        {"200": answer("GroupNacked", "How many were given back.")},
        request="GroupNackRequest",
    ),
    _route(
        "POST",
        "/extend",
        extend,
        "Keep records longer",
        "The claim lasts `visibility_ms` from now, whatever it was.",
        {"200": answer("GroupExtended", "Until when.")},
        request="GroupExtendRequest",
    ),
    _route(
        "POST",
        "/reset",
        reset,
        "Move a group",
        "It goes on at `to`, forwards or backwards; its claims, and its acks beyond, are void. Makes it if it is not "
        "there.",
        {"200": answer("GroupPlaced", "Where it goes on.")},
        request="GroupResetRequest",
    ),
    _route(
        "POST",
        "/pause",
        pause,
        "Pause a group",
        "Nothing is handed out until it is resumed, in no partition. What is out can be acked.",
        {"200": answer("GroupPaused", "It is paused.")},
        request="GroupPauseRequest",
        required=False,
    ),
    _route(
        "POST",
        "/resume",
        resume,
        "Resume a group",
        "Those who wait get what there is.",
        {"200": answer("GroupPaused", "It is not paused.")},
        request="GroupPauseRequest",
        required=False,
    ),
)
