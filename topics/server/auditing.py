"""Requests and the audit log: which are noted, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec

from topics.core.names import shorten
from topics.jsontext import NOT_UNDERSTOOD
from topics.server.audit import DONE
from topics.server.configchanges import ConfigChanges, kind_of
from topics.server.context import Context
from topics.server.message import Request, Response
from topics.server.pageorigins import SAFE_METHODS
from topics.server.principal import Scope
from topics.server.route import Route
from topics.server.streaming import StreamResponse
from topics.server.websessions import address_of

OVER_HTTP = "http"

REFUSED = 400
"""From this status on an answer is a refusal."""

T = TypeVar("T")


def is_noted(route: Route) -> bool:
    """Whether requests of a route are noted by whoever dispatches them: all that administer, or destroy."""
    if route.noted is not None:
        return route.noted
    powerful = bool(route.scope & (Scope.ADMIN | Scope.DELETE))
    return route.method == "DELETE" or (powerful and route.method not in SAFE_METHODS)


class _Named(msgspec.Struct):
    topic: str = ""


_named = msgspec.json.Decoder(_Named)


def name_in(request: Request) -> str:
    """What a request is about: the first name in its path, or the topic that its body names."""
    for name in request.params.values():
        return name
    try:
        return shorten(_named.decode(request.body).topic) if request.body else ""
    except NOT_UNDERSTOOD:
        # For the handler to refuse.
        return ""


async def note(
    context: Context,
    request: Request,
    action: str,
    name: str,
    *,
    outcome: str = DONE,
    who: str = "",
    detail: Mapping[str, object] | None = None,
) -> None:
    """A line about a request; returns when it is on the disk."""
    assert context.audit is not None, "there is an engine, so there is an audit log"
    line = _line(context, request) | ({"who": who} if who else {})
    await context.audit.note(action, name, outcome=outcome, detail=detail, **line)


def _line(context: Context, request: Request) -> dict[str, Any]:
    """What each line about a request says of it."""
    return {
        "key": request.principal.key_id,
        "who": request.principal.name,
        "over": OVER_HTTP,
        "request_id": request.request_id,
        "address": address_of(request, context.settings.forwarded),
    }


def conclude(
    context: Context, request: Request, action: str, name: str, outcome: str, detail: Mapping[str, object] | None
) -> None:
    """The second line of something that was begun."""
    assert context.audit is not None, "there is an engine, so there is an audit log"
    context.audit.conclude(action, name, outcome, detail=detail, **_line(context, request))


async def note_failure(context: Context, request: Request, action: str, name: str, outcome: str) -> None:
    """A line about something that anybody can cause, unless there are too many."""
    assert context.audit is not None, "there is an engine, so there is an audit log"
    await context.audit.note_failure(
        action,
        name,
        over=OVER_HTTP,
        outcome=outcome,
        address=address_of(request, context.settings.forwarded),
        key=request.principal.key_id,
        request_id=request.request_id,
    )


async def noted(
    context: Context, request: Request, action: str, name: str, work: Callable[[], Awaitable[T]], **detail: object
) -> T:
    """Do something once its line is on the disk; a second line says what became of it."""
    audit = context.audit
    assert audit is not None, "there is an engine, so there is an audit log"
    return await audit.carry_out(action, name, work, detail=detail, **_line(context, request))


async def noted_route(context: Context, route: Route, request: Request) -> Response:
    """Let a route's handler answer between its two lines, of which the second one says what was changed."""
    audit, told = context.audit, {}
    assert audit is not None, "there is an engine, so there is an audit log"
    name, kind = name_in(request), kind_of(route.method, route.path)

    async def work() -> Response:
        changes = None if kind is None else ConfigChanges(context.ready().engine.machine, kind, name)
        answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        route.handler(context, request, answered.set_result)
        # Most handlers have decided by now, and nobody else has. Others decide later.
        told.update({} if changes is None else changes.found())
        response = await answered
        if changes is not None and not told.get("changed"):
            told.update(changes.found())
        return response

    action = f"{route.method} {route.path}"
    return await audit.carry_out(
        action,
        name,
        work,
        told=told,
        outcome_of=_outcome_of,
        syncs=not is_frequent(route),
        **_line(context, request),
    )


def _outcome_of(response: Response) -> str:
    """A stream has only begun when it is answered."""
    if response.status >= REFUSED:
        return f"status {response.status}"
    return "" if isinstance(response, StreamResponse) else DONE


def is_frequent(route: Route) -> bool:
    """Whether programs do it as part of their work: what goes with one topic of `/v0`, without being an admin."""
    return route.path.startswith("/v0/topics/") and Scope.ADMIN not in route.scope
