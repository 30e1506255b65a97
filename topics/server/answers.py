"""Answers: success and error bodies, and the ways a handler gives one that is not ready yet.

Every body is one JSON object with a `performance` object in it. An error is `{"error": {code, message, detail}}`;
what a program must know of it is in `detail`, and what HTTP wants to know of it is in headers made from `detail`. On
`/v1`, whose clients know gRPC, `code` is the canonical one and ours is `reason`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from topics.engine.ticket import Ticket
from topics.errors import (
    Internal,
    MethodNotAllowed,
    Throttled,
    TopicsError,
    Unauthorized,
    Unavailable,
    UpgradeRequired,
)
from topics.limits import SECOND_MS
from topics.server.context import Context
from topics.server.logs import fields as line_fields
from topics.server.message import Reply, Request, Response

NS_PER_MS = 1e6
DIGITS = 3
CANONICAL_PATHS = "/v1/"
PRECONDITION = "FAILED_PRECONDITION"
PRECONDITION_STATUS = 412
"""Of an error on `/v1`; on `/v0` it is a 409."""

log = logging.getLogger(__name__)

Headers = tuple[tuple[bytes, bytes], ...]


def elapsed_ms(context: Context, since_ns: int) -> float:
    return (context.clock.ticks_ns() - since_ns) / NS_PER_MS


def success(
    context: Context, request: Request, fields: Mapping[str, Any], status: int = 200, **measured: float
) -> Response:
    """An answer made of fields; `measured` goes into its `performance`."""
    return Response(status, msgspec.json.encode({**fields, "performance": _performance(context, request, measured)}))


PRIVATE_HEADERS: Headers = ((b"Cache-Control", b"no-store"), (b"X-Content-Type-Options", b"nosniff"))


def private(context: Context, request: Request, fields: Mapping[str, Any], status: int = 200) -> Response:
    """The same for what is about people and keys: no cache keeps it, and no browser takes it for anything else."""
    response = success(context, request, fields, status)
    response.headers = PRIVATE_HEADERS
    return response


def failure(context: Context, request: Request, error: TopicsError) -> Response:
    if isinstance(error, Internal):
        log.error("%s %s failed: %s", request.method, request.path, error.message, extra=_about(request))
    status, body = _refused(request, error)
    context.traffic.refused(status, error.code)
    if error.detail:
        body["detail"] = error.detail
    envelope = {"error": body, "performance": _performance(context, request, {})}
    encoded = msgspec.json.encode(envelope)
    return Response(status, encoded, headers=_headers(error))


def _refused(request: Request, error: TopicsError) -> tuple[int, dict[str, Any]]:
    if not request.path.startswith(CANONICAL_PATHS):
        return error.http_status, {"code": error.code, "message": error.message}
    status = PRECONDITION_STATUS if error.grpc_code == PRECONDITION else error.http_status
    return status, {"code": error.grpc_code, "reason": error.code, "message": error.message}


def bug(context: Context, request: Request, error: BaseException) -> Response:
    """The answer to what should not have happened. The log gets the error, the client does not."""
    log.error("%s %s failed", request.method, request.path, exc_info=error, extra=_about(request))
    context.traffic.refused(Internal.http_status, Internal.code)
    where = f"; the server's log has it under request id {request.request_id}" if request.request_id else ""
    _, body = _refused(request, Internal(f"an internal error{where}"))
    envelope = {"error": body, "performance": _performance(context, request, {})}
    return Response(Internal.http_status, msgspec.json.encode(envelope))


def when_fresh(
    context: Context, request: Request, reply: Reply, topics: Sequence[str], work: Callable[[], None]
) -> None:
    """Do what reads these topics when there is in them what routers and dead letters bring; at once if nothing is on
    its way. A client that goes meanwhile is told of to the work as if it had gone later."""
    ticket = context.ready().fresh(*topics)
    if ticket is None:
        work()
        return
    is_gone = False

    def gone() -> None:
        nonlocal is_gone
        is_gone = True

    def fresh(ticket: Ticket) -> None:
        request.on_gone = None
        # Whoever resolves tickets must never be stopped by one request.
        try:
            work()
        except TopicsError as error:
            reply(failure(context, request, error))
        except Exception as error:
            reply(bug(context, request, error))
        if is_gone and request.on_gone is not None:
            request.on_gone()

    request.on_gone = gone
    ticket.on_done(fresh)


def when_done(
    context: Context, request: Request, reply: Reply, ticket: Ticket, make: Callable[[Ticket], Response]
) -> None:
    """Answer when a ticket is done: with what `make` makes of it, or with its error."""

    def done(ticket: Ticket) -> None:
        # Whoever resolves tickets must never be stopped by the making of one answer.
        try:
            response = make(ticket) if ticket.error is None else failure(context, request, ticket.error)
        except Exception as error:
            response = bug(context, request, error)
        reply(response)

    ticket.on_done(done)


def later(context: Context, request: Request, reply: Reply, work: Coroutine[Any, Any, Response]) -> None:
    """Answer with what a coroutine returns or raises."""

    def done(task: asyncio.Task[Response]) -> None:
        context.tasks.discard(task)
        if task.cancelled():
            response = failure(context, request, _interrupted())
        elif (error := task.exception()) is None:
            response = task.result()
        elif isinstance(error, TopicsError):
            response = failure(context, request, error)
        else:
            response = bug(context, request, error)
        reply(response)

    task = asyncio.get_running_loop().create_task(work)
    context.tasks.add(task)
    task.add_done_callback(done)


def keep(context: Context, work: Coroutine[Any, Any, None]) -> None:
    """Do something that no answer waits for; what goes wrong is logged."""

    def done(task: asyncio.Task[None]) -> None:
        context.chores.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a chore failed", exc_info=error)

    task = asyncio.get_running_loop().create_task(work)
    context.chores.add(task)
    task.add_done_callback(done)


def _interrupted() -> TopicsError:
    return Internal("the request was given up before it was answered; whether it was carried out is not known")


def _performance(context: Context, request: Request, measured: Mapping[str, float]) -> dict[str, float]:
    total = {"server_total_ms": round(elapsed_ms(context, request.received_ns), DIGITS)}
    return total | {name: round(value, DIGITS) for name, value in measured.items()}


def _headers(error: TopicsError) -> Headers:
    match error:
        case Throttled() | Unavailable():
            # HTTP counts whole seconds; a client that wants it finer reads `detail.retry_after_ms`.
            wait_ms = int(error.detail.get("retry_after_ms", SECOND_MS))
            return ((b"Retry-After", b"%d" % max(1, -(-wait_ms // SECOND_MS))),)
        case Unauthorized():
            return ((b"WWW-Authenticate", b"Bearer"),)
        case UpgradeRequired():
            return ((b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13"))
        case MethodNotAllowed():
            return ((b"Allow", ", ".join(error.detail["allow"]).encode()),)
        case _:
            return ()


def _about(request: Request) -> dict[str, object]:
    return line_fields(request_id=request.request_id)
