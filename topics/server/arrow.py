"""Arrow streams instead of JSON, for who asks: `Accept` for what comes back, `Content-Type` for what is sent.

`pyarrow` is optional and takes a third of a second to load, so it is loaded by the first request that needs it, on a
thread. Errors are JSON in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from sys import modules
from typing import Any, Final

from topics.errors import NotAcceptable, UnsupportedMediaType
from topics.server.answers import later
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.shapes import Schema

ARROW_STREAM: Final = "application/vnd.apache.arrow.stream"
INSTALL: Final = "pip install 'topics[arrow]'"

_CODECS: Final = ("topics.wire.arrow", "topics.wire.arrowbody")
_BINARY: Final[Schema] = {"type": "string", "format": "binary"}

Handler = Callable[[Context, Request, Reply], None]


def sends_arrow(request: Request) -> bool:
    """Whether the body is an Arrow stream; `UnsupportedMediaType` when we have nothing to read it with."""
    given = request.headers.get("content-type", "")
    if given != ARROW_STREAM and given.partition(";")[0].strip().lower() != ARROW_STREAM:
        return False
    if not _is_installed():
        raise UnsupportedMediaType(
            f"this server has no pyarrow to read Arrow streams with: install it there with {INSTALL}, or send JSON",
            given=ARROW_STREAM,
            expected="application/json; charset=utf-8",
        )
    return True


def wants_arrow(request: Request) -> bool:
    """Whether the answer is to be an Arrow stream; `NotAcceptable` when it cannot be and nothing else will do."""
    accept = request.headers.get("accept", "")
    if ARROW_STREAM not in accept.lower():
        return False
    ranges = [part.strip().lower() for part in accept.split(",")]
    named = [part for part in ranges if part.partition(";")[0].strip() == ARROW_STREAM]
    if not named or all(part.replace(" ", "").endswith((";q=0", ";q=0.0")) for part in named):
        return False
    if _is_installed():
        return True
    if any(part.partition(";")[0].strip() in ("application/json", "application/*", "*/*") for part in ranges):
        return False
    raise NotAcceptable(
        f"this server has no pyarrow to make Arrow streams with: install it there with {INSTALL}, or accept JSON",
        given=accept[:80],
        expected="application/json",
    )


def with_codecs(handler: Handler, context: Context, request: Request, reply: Reply) -> None:
    """Handle a request that needs the codecs, once they are loaded."""
    if all(name in modules for name in _CODECS):
        handler(context, request, reply)
    else:
        later(context, request, reply, _load_first(handler, context, request))


async def _load_first(handler: Handler, context: Context, request: Request) -> Response:
    share = context.throttle.share
    for name in _CODECS:
        await asyncio.to_thread(import_module, name)
    # Loading keeps the interpreter busy once, which must not look like a server that is behind with its work.
    context.throttle.pardon(share)
    answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
    handler(context, request, partial(_give, answer))
    return await answer


def _give(answer: asyncio.Future[Response], response: Response) -> None:
    if not answer.done():
        answer.set_result(response)


def _is_installed() -> bool:
    return "pyarrow" in modules or find_spec("pyarrow") is not None


def or_arrow(described: Schema) -> Schema:
    """A body or an answer of the OpenAPI document that may be an Arrow stream as well."""
    content: dict[str, Any] = {**described["content"], ARROW_STREAM: {"schema": _BINARY}}
    return {**described, "content": content}
