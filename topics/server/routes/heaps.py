"""`/v1/heaps` and `/v1/stats`: heaps made, looked at, changed, emptied and deleted.

What cannot be undone is asked for twice: `?force=true` is answered with a confirmation token, and the call repeated
with it is carried out, once its line is in the audit log.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from topics.core.commands import Configure, Drop
from topics.core.heapcommands import MakeHeap, PurgeHeap
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import InvalidRequest
from topics.heapmodel import HeapStats, Purged
from topics.limits import PARTITIONS_MAX
from topics.server.answers import later, success, when_done
from topics.server.auth import check_config, check_name
from topics.server.context import Context
from topics.server.destruction import destroy
from topics.server.heapschemas import CONFIRMED, HEAP_PAGE
from topics.server.heaptotals import summed
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import EVERY_TOPIC, Operation, Route
from topics.server.shapes import PARTITION_NUMBER, TOPIC, answer, body, parameter
from topics.wire import heapanswers
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.heap import decode_change, decode_make, decode_purge
from topics.wire.query import Query

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1000
OVER: Final = "http"

Fields = Mapping[str, Any]


def make(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic, fields = decode_make(request.body)
    check_name(request.principal, topic)
    check_config(request.principal, fields)

    def made(ticket: Ticket) -> Response:
        ticket.result()
        return success(context, request, heapanswers.heap_info(host.engine.heaps.info(topic)), 201)

    when_done(context, request, reply, host.decide(MakeHeap(topic, fields)), made)


def show(context: Context, request: Request, reply: Reply) -> None:
    info = context.ready().engine.heaps.info(check_topic(request.params["topic"]))
    reply(success(context, request, heapanswers.heap_info(info)))


def listed(context: Context, request: Request, reply: Reply) -> None:
    heaps = context.ready().engine.heaps
    query = Query(request.query)
    size = min(query.whole("page_size", PAGE_DEFAULT, 2**32 - 1) or PAGE_DEFAULT, PAGE_MAX)
    token = query.text("page_token")
    found = heaps.list(query.text("prefix"), decode_cursor(token) if token else "", size)
    shown = [heapanswers.heap_info(info) for info in found if request.principal.may_touch(info.topic)]
    next_token = encode_cursor(found[-1].topic) if len(found) == size else ""
    reply(success(context, request, {"heaps": shown, "next_page_token": next_token}))


def change(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    fields = decode_change(request.body, topic, host.engine.heaps.info(topic).config.dlq_topic)
    check_config(request.principal, fields)

    def changed(ticket: Ticket) -> Response:
        ticket.result()
        return success(context, request, heapanswers.heap_info(host.engine.heaps.info(topic)))

    when_done(context, request, reply, host.decide(Configure(topic, fields, True)), changed)


def stats(context: Context, request: Request, reply: Reply) -> None:
    heaps = context.ready().engine.heaps
    query = Query(request.query)
    topic = query.text("topic")
    partition = query.whole("partition_id", None, PARTITIONS_MAX - 1)
    if topic:
        check_name(request.principal, check_topic(topic))
        found = {topic: heaps.stats(topic, partition)}
    elif partition is not None:
        raise InvalidRequest("partition_id takes a topic to be of", field="partition_id", expected="a topic")
    else:
        found = {}
        after = ""
        while page := heaps.list("", after, PAGE_MAX):
            after = page[-1].topic
            visible = (info for info in page if request.principal.may_touch(info.topic))
            found.update((info.topic, info.stats or HeapStats()) for info in visible)
    told = {
        "global_stats": heapanswers.heap_stats(summed(found.values())),
        "topic_stats": {name: heapanswers.heap_stats(each) for name, each in found.items()},
    }
    reply(success(context, request, told))


# ---- what cannot be undone


def drop(context: Context, request: Request, reply: Reply) -> None:
    async def work(host: Host, topic: str) -> Fields:
        await host.submit(Drop(topic))
        return {"topic": topic, "deleted": True}

    confirmed(context, request, reply, "delete_heap", work)


def purge(context: Context, request: Request, reply: Reply) -> None:
    partition = decode_purge(request.body)
    if partition is not None:
        # A partition that is not there is refused before anything is asked to be confirmed.
        context.ready().engine.heaps.stats(check_topic(request.params["topic"]), partition)

    async def work(host: Host, topic: str) -> Fields:
        done = await host.submit(PurgeHeap(topic, partition))
        assert isinstance(done, Purged)
        return {"topic": topic, "purged": done.purged}

    confirmed(context, request, reply, "purge_heap", work, partition=partition)


def confirmed(
    context: Context,
    request: Request,
    reply: Reply,
    action: str,
    work: Callable[[Host, str], Awaitable[Fields]],
    **detail: object,
) -> None:
    """Do what cannot be undone to the heap of the path, if the request has the token for it."""
    host = context.ready()
    topic = check_topic(request.params["topic"])
    host.engine.heaps.info(topic)
    key_id = request.principal.key_id
    life = host.engine.machine.topic(topic).epoch
    force, token = confirmation(request)
    context.confirmations.check(action, topic, life, key_id, force=force, token=token)

    async def carried_out() -> Response:
        done = await destroy(
            context,
            action,
            topic,
            request.principal,
            lambda: work(host, topic),
            over=OVER,
            request_id=request.request_id,
            **detail,
        )
        return success(context, request, done)

    later(context, request, reply, carried_out())


def confirmation(request: Request) -> tuple[bool, str]:
    """Whether it is forced, and the token that it has for that."""
    query = Query(request.query)
    return query.flag("force", False), query.text("confirmation_token")


ROUTES = (
    Route(
        "POST",
        "/v1/heaps",
        Scope.ADMIN,
        make,
        Operation(
            "Make a heap",
            "A partitioned topic that is taken from by priority. Only `topic` is needed. What was asked for and is not "
            "so on one machine, such as a replication factor above 1, is in `warnings`.",
            "heaps",
            request_body=body("MakeHeap"),
            responses={"201": answer("HeapInfo", "The heap."), "409": answer("Error", "There is such a topic.")},
        ),
    ),
    Route(
        "GET",
        "/v1/heaps",
        Scope.READ,
        listed,
        Operation(
            "List heaps",
            "In order of their names, those whose names begin with `prefix`.",
            "heaps",
            parameters=HEAP_PAGE,
            responses={"200": answer("HeapList", "A page of them.")},
        ),
        reads=EVERY_TOPIC,
    ),
    Route(
        "GET",
        "/v1/heaps/{topic}",
        Scope.READ,
        show,
        Operation(
            "Look at a heap",
            "Its config and its numbers.",
            "heaps",
            parameters=(TOPIC,),
            responses={"200": answer("HeapInfo", "The heap.")},
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
    ),
    Route(
        "PATCH",
        "/v1/heaps/{topic}",
        Scope.ADMIN,
        change,
        Operation(
            "Change a heap's config",
            "What is not named stays as it is. Mode and partitions are for ever.",
            "heaps",
            parameters=(TOPIC,),
            request_body=body("HeapChange"),
            responses={"200": answer("HeapInfo", "The heap as it is now.")},
        ),
        name_param="topic",
    ),
    Route(
        "DELETE",
        "/v1/heaps/{topic}",
        Scope.DELETE,
        drop,
        Operation(
            "Delete a heap",
            "With all its messages; dead letters stay in their topic. `?force=true` is answered with 412 and a token "
            "in `error.detail.confirmation_token`; the same call with it deletes.",
            "heaps",
            parameters=(TOPIC, *CONFIRMED),
            responses={
                "200": answer("HeapDeleted", "It is gone."),
                "412": answer("Error", "To be confirmed: repeat it with the token in `error.detail`."),
            },
        ),
        name_param="topic",
        noted=False,
    ),
    Route(
        "POST",
        "/v1/heaps/{topic}/purge",
        Scope.DELETE,
        purge,
        Operation(
            "Empty a heap",
            "All messages of it, or of one partition, go, leased ones included. Confirmed like a deletion.",
            "heaps",
            parameters=(TOPIC, *CONFIRMED),
            request_body=body("PurgeRequest", required=False),
            responses={
                "200": answer("HeapPurged", "How many went."),
                "412": answer("Error", "To be confirmed: repeat it with the token in `error.detail`."),
            },
        ),
        name_param="topic",
        noted=False,
    ),
    Route(
        "GET",
        "/v1/stats",
        Scope.READ,
        stats,
        Operation(
            "Numbers of heaps",
            "Of one heap, of one partition of it, or of all heaps that the key may see.",
            "heaps",
            parameters=(
                parameter("topic", {"type": "string"}, "The heap; all without it."),
                parameter("partition_id", PARTITION_NUMBER, "One partition of it."),
            ),
            responses={"200": answer("HeapsStats", "The numbers.")},
        ),
        reads=EVERY_TOPIC,
    ),
)
