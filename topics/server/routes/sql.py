"""Statements over HTTP: a text goes in, a result for each statement comes out, as JSON or as an Arrow stream.

The route itself needs no scope: each statement needs its own, and all of them are asked for before the first one runs.
A client that hangs up ends what is running; statements that were done stay done.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from topics.engine.host import Host
from topics.errors import InvalidRequest
from topics.server.answers import NS_PER_MS, later
from topics.server.arrow import ARROW_STREAM, or_arrow, wants_arrow
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import NO_SCOPE
from topics.server.route import Operation, Route
from topics.server.shapes import answer, body
from topics.server.sqlaccess import KeyAccess, samples
from topics.server.sqlaudit import noted_statements
from topics.wire.sql import SqlRequest, decode_sql

if TYPE_CHECKING:
    from topics.sqlengine.result import Result

_ANSWER = b'{"results":%b,"performance":{"server_total_ms":%.3f}}'


def sql(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = decode_sql(request.body)
    arrow = wants_arrow(request)
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    request.on_gone = partial(_end, gone)
    later(context, request, reply, _answer(context, host, request, wanted, arrow, gone))


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _answer(
    context: Context, host: Host, request: Request, wanted: SqlRequest, arrow: bool, gone: asyncio.Future[None]
) -> Response:
    work = asyncio.create_task(_run(context, host, request, wanted, arrow))
    ends: tuple[asyncio.Future[Any], ...] = (work, gone)
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not work.done():
        work.cancel()
    results = await work
    if arrow:
        return await _as_arrow(results)
    text = await asyncio.to_thread(_encoded, results)
    elapsed_ms = (context.clock.ticks_ns() - request.received_ns) / NS_PER_MS
    return Response(200, _ANSWER % (text, elapsed_ms))


async def _run(context: Context, host: Host, request: Request, wanted: SqlRequest, arrow: bool) -> list[Result]:
    executor = await context.sql.executor(host)
    principal = request.principal
    seen = partial(samples, context, principal)
    run = partial(executor.run, wanted.sql, wanted.params, KeyAccess(principal), seen, arrow)
    results: list[Result] = await noted_statements(context, request, wanted.sql, wanted.params, run)
    return results


def _encoded(results: list[Result]) -> bytes:
    from topics.sqlengine.result import encode_results

    return encode_results(results)


async def _as_arrow(results: list[Result]) -> Response:
    if len(results) != 1:
        raise InvalidRequest(
            f"an Arrow stream holds the result of one statement, and there were {len(results)}; all of them were done",
            field="sql",
            expected="one statement",
        )
    stream = await asyncio.to_thread(results[0].arrow)
    return Response(200, stream, ARROW_STREAM.encode())


ROUTES = (
    Route(
        "POST",
        "/v0/sql",
        NO_SCOPE,
        sql,
        Operation(
            "Run SQL statements",
            "Runs statements one after the other, and answers a result for each. What there is to say is in "
            "`docs/SQL.md`. `params` are the values of `?` or `$1`, `$2`, …. All statements are understood, and "
            "allowed to the key, before the first one runs; when one fails, those before it are done and "
            "`detail.statement` says which it was. With `Accept: application/vnd.apache.arrow.stream` one statement is "
            "answered as an Arrow stream.",
            "sql",
            request_body=body("SqlRequest"),
            responses={
                "200": or_arrow(answer("SqlResults", "A result for each statement.")),
                "501": answer("Error", "The server lacks what SQL needs."),
            },
        ),
        keyed=True,
    ),
)
