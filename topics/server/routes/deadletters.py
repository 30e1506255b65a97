"""What is done to single messages of a heap, and to its dead letters, and a snapshot on demand."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from topics.core.heapcommands import CancelMessage, DeleteDead, MoveToDlq, ReplayDead, Reprioritize
from topics.core.names import check_topic
from topics.engine.deadsteps import count_letters, dead_steps
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import Unavailable
from topics.heapmodel import Cancelled, DeadFilter, MovedToDlq, Reprioritized
from topics.limits import U64_MAX
from topics.server.answers import later, success, when_done
from topics.server.context import Context
from topics.server.heapschemas import CONFIRMED, I64, MESSAGE, MOMENT
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Handler, Operation, Route
from topics.server.routes.heaps import PAGE_DEFAULT, PAGE_MAX, Fields, confirmation, confirmed
from topics.server.shapes import TOPIC, answer, body, parameter
from topics.wire import heapanswers
from topics.wire.heap import DeadRequest, decode_cancel, decode_dead, decode_move, decode_reprioritize
from topics.wire.nothing import check_nothing
from topics.wire.query import Query


def reprioritize(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    message_id, priority = decode_reprioritize(request.body)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, Reprioritized)
        return success(context, request, {"message_id": message_id, "old_priority": done.previous_priority})

    when_done(context, request, reply, host.decide(Reprioritize(topic, message_id, priority)), made)


def cancel(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    message_id = decode_cancel(request.body)

    def made(ticket: Ticket) -> Response:
        assert isinstance(ticket.result(), Cancelled)
        return success(context, request, {"message_id": message_id, "cancelled": True})

    when_done(context, request, reply, host.decide(CancelMessage(topic, message_id)), made)


def move(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    message_id, reason = decode_move(request.body)

    def made(ticket: Ticket) -> Response:
        done = ticket.result()
        assert isinstance(done, MovedToDlq)
        return success(context, request, {"message_id": message_id, "dlq_topic": done.dlq_topic})

    when_done(context, request, reply, host.decide(MoveToDlq(topic, message_id, reason)), made)


# ---- dead letters


def listed(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    query = Query(request.query)
    limit = min(query.whole("limit", PAGE_DEFAULT, U64_MAX) or PAGE_DEFAULT, PAGE_MAX)
    chosen = decode_dead(msgspec.json.encode(query.given(_CHOOSING))).chosen
    page = host.engine.heaps.dead_letters(topic, chosen, query.text("page_token"), limit)
    told = {
        "items": list(map(heapanswers.dead, page.messages)),
        "dlq_topic": page.dlq_topic,
        "next_page_token": page.next_cursor,
    }
    reply(success(context, request, told))


def show(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    found = heapanswers.dead(host.engine.heaps.dead_letter(topic, request.params["message"]))
    reply(success(context, request, {"item": found}))


def replay(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    wanted = decode_dead(request.body)
    if wanted.dry_run:
        later(context, request, reply, _counted(context, host, request, topic, wanted))
        return

    async def carried_out() -> Response:
        done = await dead_steps(
            host, lambda cursor, limit: ReplayDead(topic, wanted.chosen, cursor, limit), wanted.limit
        )
        return success(context, request, {"count": done.done_count, "skipped": done.skipped_count})

    later(context, request, reply, carried_out())


def delete(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    wanted = decode_dead(request.body)
    confirmation(request)  # Refused when it is wrong, though a dry run needs none.
    if wanted.dry_run:
        later(context, request, reply, _counted(context, host, request, topic, wanted))
        return
    _delete(context, request, reply, wanted.chosen, wanted.limit)


def delete_one(context: Context, request: Request, reply: Reply) -> None:
    host, topic = _heap(context, request)
    message_id = request.params["message"]
    host.engine.heaps.dead_letter(topic, message_id)
    _delete(context, request, reply, DeadFilter(message_ids=(message_id,)), 1)


async def _counted(context: Context, host: Host, request: Request, topic: str, wanted: DeadRequest) -> Response:
    count = await count_letters(host, topic, wanted.chosen, wanted.limit)
    return success(context, request, {"count": count, "skipped": 0})


def _delete(context: Context, request: Request, reply: Reply, chosen: DeadFilter, most: int) -> None:
    async def work(host: Host, topic: str) -> Fields:
        done = await dead_steps(host, lambda cursor, limit: DeleteDead(topic, chosen, cursor, limit), most)
        return {"count": done.done_count, "skipped": done.skipped_count}

    confirmed(context, request, reply, "delete_dead_letters", work)


def snapshot(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    check_nothing(request.body)
    taken = heapanswers.moment(host.engine.now_ms())

    async def carried_out() -> Response:
        try:
            await host.checkpoint()
        except OSError as error:
            raise Unavailable(f"nothing could be stored: {error}; see to the disk and try again") from error
        return success(context, request, {"taken_at": taken})

    later(context, request, reply, carried_out())


def _heap(context: Context, request: Request) -> tuple[Host, str]:
    return context.ready(), check_topic(request.params["topic"])


def _single(verb: str, handler: Handler, told: tuple[str, str], question: str, reply: tuple[str, str]) -> Route:
    summary, description = told
    responses: dict[str, Any] = {"200": answer(*reply)}
    return Route(
        "POST",
        f"/v1/heaps/{{topic}}/{verb}",
        Scope.WRITE,
        handler,
        Operation(summary, description, "heaps", (TOPIC,), body(question), responses),
        name_param="topic",
    )


_PATH: Final = "/v1/heaps/{topic}/dlq"
_CHOOSING: Final = ("reason", "died_from", "died_before", "priority_min", "priority_max")
"""What a list may be narrowed by."""
_DELETED: Final = {
    "200": answer("DeadLettersDone", "How many went."),
    "412": answer("Error", "To be confirmed: repeat it with the token in `error.detail`."),
}

ROUTES = (
    _single(
        "reprioritize",
        reprioritize,
        ("Change a message's priority", "Of one that nobody has; a leased one is refused with 412."),
        "ReprioritizeRequest",
        ("Reprioritized", "The priority it had."),
    ),
    _single(
        "cancel",
        cancel,
        ("Take a message back", "One that nobody has is deleted; a leased one is refused with 412."),
        "CancelRequest",
        ("Cancelled", "It is gone."),
    ),
    _single(
        "move_to_dlq",
        move,
        ("Give a message up", "It goes to the dead letters, with the reason."),
        "MoveRequest",
        ("MovedToDlq", "Where it went."),
    ),
    Route(
        "GET",
        _PATH,
        Scope.READ,
        listed,
        Operation(
            "List dead letters",
            "Oldest first; the next page begins at `next_page_token`.",
            "heaps",
            parameters=(
                TOPIC,
                parameter("limit", {"type": "integer", "default": PAGE_DEFAULT}, "How many at most."),
                parameter("page_token", {"type": "string"}, "Where to go on."),
                parameter("reason", {"type": "string"}, "Only these: the whole text, or its beginning and a `*`."),
                parameter("died_from", MOMENT, "Only those that died at this time or later."),
                parameter("died_before", MOMENT, "Only those that died before this time."),
                parameter("priority_min", I64, "Only those of this priority or a higher one."),
                parameter("priority_max", I64, "Only those of this priority or a lower one."),
            ),
            responses={"200": answer("DeadLetterList", "A page of them.")},
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
    ),
    Route(
        "GET",
        f"{_PATH}/{{message}}",
        Scope.READ,
        show,
        Operation(
            "Look at a dead letter",
            "The message as it was, why it died, and its last failures.",
            "heaps",
            parameters=(TOPIC, MESSAGE),
            responses={"200": answer("DeadLetterShown", "The dead letter.")},
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
    ),
    Route(
        "POST",
        f"{_PATH}/replay",
        Scope.READ | Scope.WRITE,
        replay,
        Operation(
            "Replay dead letters",
            "Those that the body means, or all of them, go back into the heap with no attempt counted.",
            "heaps",
            parameters=(TOPIC,),
            request_body=body("DeadLettersRequest", required=False),
            responses={"200": answer("DeadLettersDone", "How many went.")},
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
    ),
    Route(
        "POST",
        f"{_PATH}/delete",
        Scope.DELETE,
        delete,
        Operation(
            "Delete dead letters",
            "Those that the body means, or all of them. Confirmed like the deletion of a heap.",
            "heaps",
            parameters=(TOPIC, *CONFIRMED),
            request_body=body("DeadLettersRequest", required=False),
            responses=_DELETED,
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
        noted=False,
    ),
    Route(
        "DELETE",
        f"{_PATH}/{{message}}",
        Scope.DELETE,
        delete_one,
        Operation(
            "Delete a dead letter",
            "Confirmed like the deletion of a heap.",
            "heaps",
            parameters=(TOPIC, MESSAGE, *CONFIRMED),
            responses=_DELETED,
        ),
        name_param="topic",
        reads="topic",
        reads_letters=True,
        noted=False,
    ),
    Route(
        "POST",
        "/v1/snapshot",
        Scope.ADMIN,
        snapshot,
        Operation(
            "Store everything now",
            "A checkpoint of the whole directory, as the server takes by itself from time to time.",
            "operations",
            request_body=body("SnapshotRequest", required=False),
            responses={"200": answer("SnapshotTaken", "When it was taken.")},
        ),
    ),
)
