"""One log line for each request, when the operator wants it: off by default, it costs more than a small write."""

from __future__ import annotations

import logging

from topics.clock import Clock
from topics.errors import TopicsError
from topics.server.logs import fields
from topics.server.message import Dispatch, Refuse, Reply, Request, Response

log = logging.getLogger(__name__)


def with_access_log(dispatch: Dispatch, clock: Clock) -> Dispatch:
    """The same dispatch, saying of each answer what was asked, by whom, and how long it took. Never the query: a
    watch's token may be in it."""

    def logged(request: Request, reply: Reply) -> None:
        def answered(response: Response) -> None:
            _say(request, response, clock)
            reply(response)

        dispatch(request, answered)

    return logged


def with_refusals_logged(refuse: Refuse, clock: Clock) -> Refuse:
    """The same for what is refused before it gets to the dispatch."""

    def logged(request: Request, error: TopicsError) -> Response:
        response = refuse(request, error)
        _say(request, response, clock)
        return response

    return logged


def _say(request: Request, response: Response, clock: Clock) -> None:
    log.info(
        "request",
        extra=fields(
            request_id=request.request_id,
            method=request.method,
            path=request.path,
            status=response.status,
            key=request.principal.key_id,
            ms=round((clock.ticks_ns() - request.received_ns) / 1e6, 3),
            bytes_in=len(request.body),
            bytes_out=len(response.body),
        ),
    )
