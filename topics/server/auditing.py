"""Requests and the audit log: which are noted, and how."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import msgspec

from topics.core.names import shorten
from topics.errors import TopicsError
from topics.jsontext import NOT_UNDERSTOOD
from topics.server.audit import BEGUN, DONE
from topics.server.context import Context
from topics.server.message import Request
from topics.server.pageorigins import SAFE_METHODS
from topics.server.principal import Scope
from topics.server.route import Route
from topics.server.websessions import address_of

OVER_HTTP = "http"

T = TypeVar("T")


def is_noted(route: Route) -> bool:
    """Whether requests of a route are noted by whoever dispatches them: all that administer or destroy."""
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
    await context.audit.note(
        action,
        name,
        key=request.principal.key_id,
        who=who or request.principal.name,
        over=OVER_HTTP,
        outcome=outcome,
        request_id=request.request_id,
        address=address_of(request, context.settings.forwarded),
        detail=detail,
    )


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
    """Do something once its line is on the disk; when it fails, a second line says so."""
    await note(context, request, action, name, outcome=BEGUN, detail=detail)
    try:
        return await work()
    except TopicsError as error:
        await note(context, request, action, name, outcome=error.code, detail=detail)
        raise
