"""`/v1/enqueue`, `/v1/pop`, `/v1/ack` and their like: messages of heaps, one at a time or many.

A pop that waits has no task: its ticket is done when there is a message or the time is over. Somebody who asks and goes
away must not be leased anything, so a pop asks to be told.
"""

from __future__ import annotations

from typing import Any, Final

from topics.core.heapcommands import AckMessages, ExtendLeases, NackMessages, Popper
from topics.core.names import check_topic
from topics.engine.ticket import Ticket
from topics.errors import LeaseLost
from topics.heapmodel import (
    AckedMessages,
    Enqueued,
    EnqueuedBatch,
    ExtendedLeases,
    NackedMessages,
    PoppedMessages,
)
from topics.limits import HEAP_PEEK_DEFAULT, HEAP_PEEK_MAX, PARTITIONS_MAX, U64_MAX
from topics.server.answers import success, when_done, when_fresh
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Handler, Operation, Route
from topics.server.shapes import PARTITION_NUMBER, answer, body, parameter
from topics.wire import heapanswers
from topics.wire.heap import PopRequest, SettleRequest, decode_batch, decode_enqueue, decode_pop, decode_settle
from topics.wire.query import Query

LOST: Final = LeaseLost.grpc_code
NAMELESS: Final = "http"
"""Who pops without a name."""


def enqueue(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic, message = decode_enqueue(request.body)
    check_name(request.principal, topic)
    context.throttle.admit()
    began_ns = context.heap_latency.begin(topic)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, Enqueued)
        context.heap_latency.enqueued(topic, began_ns)
        return success(context, request, heapanswers.enqueued(done))

    when_done(context, request, reply, host.engine.heaps.enqueue(topic, message), made)


def enqueue_batch(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    messages, transaction_id = decode_batch(request.body)
    for topic in {topic for topic, _ in messages}:
        check_name(request.principal, topic)
    context.throttle.admit()
    began_ns = context.heap_latency.begin(messages[0][0]) if messages else 0

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, EnqueuedBatch)
        if began_ns:
            context.heap_latency.enqueued(messages[0][0], began_ns)
        told = {
            "responses": [heapanswers.enqueued(each) for each in done.messages],
            "transaction_id": done.transaction_id,
            "all_duplicates": done.all_duplicates,
        }
        return success(context, request, told)

    when_done(context, request, reply, host.engine.heaps.enqueue_batch(messages, transaction_id), made)


def pop(context: Context, request: Request, reply: Reply) -> None:
    wanted = decode_pop(request.body)
    check_name(request.principal, wanted.topic)
    when_fresh(context, request, reply, (wanted.topic,), lambda: _pop(context, request, reply, wanted))


def _pop(context: Context, request: Request, reply: Reply, wanted: PopRequest) -> None:
    host = context.ready()
    popper = Popper(wanted.consumer or request.principal.key_id or NAMELESS, wanted.max, wanted.visibility_ms)
    heaps = host.engine.heaps
    began_ns = context.heap_latency.begin_pop(wanted.topic, lambda: heaps.stats(wanted.topic).ready_messages)
    ticket = heaps.pop(wanted.topic, popper, wanted.wait_ms, wanted.partitions)

    def made(ticket: Ticket) -> Response:
        popped = ticket.result()
        assert isinstance(popped, PoppedMessages)
        context.heap_latency.popped(wanted.topic, began_ns)
        return success(context, request, {"items": list(map(heapanswers.popped, popped.messages))})

    def gone() -> None:
        if heaps.cancel(ticket):
            ticket.resolve(PoppedMessages(topic=wanted.topic, messages=()))

    request.on_gone = gone
    when_done(context, request, reply, ticket, made)


def ack(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = _settle(request)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, AckedMessages)
        return success(context, request, {"acked": done.acked, "refused": heapanswers.lost(done.lost, LOST)})

    command = AckMessages(wanted.topic, wanted.leases, wanted.strict)
    when_done(context, request, reply, host.decide(command), made)


def nack(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = _settle(request)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, NackedMessages)
        told = {
            "nacked": done.nacked,
            "dead_lettered": done.dead_lettered,
            "refused": heapanswers.lost(done.lost, LOST),
        }
        return success(context, request, told)

    command = NackMessages(
        wanted.topic, wanted.leases, wanted.backoff_ms, wanted.reason, wanted.undelivered, wanted.strict
    )
    when_done(context, request, reply, host.decide(command), made)


def extend(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = _settle(request, needs_extension=True)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, ExtendedLeases)
        told = {
            "extended": done.extended,
            "lease_deadline": heapanswers.moment(done.lease_deadline_ms),
            "refused": heapanswers.lost(done.lost, LOST),
        }
        return success(context, request, told)

    command = ExtendLeases(wanted.topic, wanted.leases, wanted.extension_ms, wanted.strict)
    when_done(context, request, reply, host.decide(command), made)


def peek(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    topic = check_topic(query.text("topic"))
    check_name(request.principal, topic)
    topics = context.ready().with_letters(topic)
    when_fresh(context, request, reply, topics, lambda: _peek(context, request, reply, query, topic))


def _peek(context: Context, request: Request, reply: Reply, query: Query, topic: str) -> None:
    heaps = context.ready().engine.heaps
    partition = query.whole("partition_id", None, PARTITIONS_MAX - 1)
    limit = min(query.whole("limit", HEAP_PEEK_DEFAULT, U64_MAX) or HEAP_PEEK_DEFAULT, HEAP_PEEK_MAX)
    found = heaps.peek(topic, partition, limit, query.flag("include_dlq", False))
    told = {"items": list(map(heapanswers.peeked, found.messages)), "has_more": found.has_more}
    reply(success(context, request, told))


def _settle(request: Request, needs_extension: bool = False) -> SettleRequest:
    wanted = decode_settle(request.body, needs_extension)
    check_name(request.principal, wanted.topic)
    return wanted


def _data(
    path: str, scope: Scope, handler: Handler, told: tuple[str, str], question: str, reply: tuple[str, str]
) -> Route:
    summary, description = told
    about: dict[str, Any] = {"200": answer(*reply)}
    return Route("POST", path, scope, handler, Operation(summary, description, "heaps", (), body(question), about))


_BATCH: Final = (
    "Enqueue messages",
    "All or none, over any heaps and partitions. Repeated with the same `transaction_id` it is answered as the first "
    "time. `/v1/enqueue:batch` and `/v1/enqueue/batch` are the same.",
)
_LEASED: Final = "One lease by `lease_token`, which is refused with 412 when it is not there any more, or many in "
_NAMED: Final = _LEASED + "`leases`, of which those that are not there are named in `refused`."

ROUTES = (
    _data(
        "/v1/enqueue",
        Scope.WRITE,
        enqueue,
        (
            "Enqueue a message",
            "With `producer_id` and `sequence` it is enqueued once, however often it is sent.",
        ),
        "EnqueueRequest",
        ("Enqueued", "Where it is; `duplicate` when it was there before."),
    ),
    _data(
        "/v1/enqueue:batch",
        Scope.WRITE,
        enqueue_batch,
        _BATCH,
        "EnqueueBatchRequest",
        ("EnqueuedBatch", "Where each is, in order."),
    ),
    _data(
        "/v1/enqueue/batch",
        Scope.WRITE,
        enqueue_batch,
        _BATCH,
        "EnqueueBatchRequest",
        ("EnqueuedBatch", "Where each is, in order."),
    ),
    _data(
        "/v1/pop",
        Scope.READ | Scope.WRITE,
        pop,
        (
            "Take the best messages",
            "Up to `max` of them, best first, leased to whoever asks. With nothing there it waits up to `wait_time`, "
            "at most 30 s; then `items` is empty.",
        ),
        "PopRequest",
        ("Popped", "The messages, with their leases."),
    ),
    _data(
        "/v1/ack",
        Scope.WRITE,
        ack,
        ("Complete messages", f"They are deleted, durably, before the answer. {_NAMED}"),
        "HeapAckRequest",
        ("HeapAcked", "How many were."),
    ),
    _data(
        "/v1/nack",
        Scope.WRITE,
        nack,
        (
            "Give messages back",
            "They rest for `backoff_override`, or longer with each attempt, or die. With `undelivered` they are ready "
            f"at once and no attempt counts. {_NAMED}",
        ),
        "HeapNackRequest",
        ("HeapNacked", "How many were, and how many of them died."),
    ),
    _data(
        "/v1/extend",
        Scope.WRITE,
        extend,
        ("Keep messages longer", f"Their leases run out `extension` from now. {_NAMED}"),
        "HeapExtendRequest",
        ("HeapExtended", "The new deadline."),
    ),
    Route(
        "GET",
        "/v1/peek",
        Scope.READ,
        peek,
        Operation(
            "Look at messages",
            "Ready ones best first, then those that are leased, delayed and leaving, then dead letters if asked for. "
            "Nothing is leased.",
            "heaps",
            parameters=(
                parameter("topic", {"type": "string"}, "The heap.") | {"required": True},
                parameter("partition_id", PARTITION_NUMBER, "One partition of it."),
                parameter(
                    "limit", {"type": "integer", "default": HEAP_PEEK_DEFAULT}, "How many at most; clamped to 1000."
                ),
                parameter("include_dlq", {"type": "boolean", "default": False}, "Whether dead letters are shown, too."),
            ),
            responses={"200": answer("Peeked", "The messages.")},
        ),
    ),
)
