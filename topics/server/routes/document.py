"""What the server says of itself: the OpenAPI document, and a page for people made from it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import NO_SCOPE
from topics.server.route import Operation, Route

HTML = b"text/html; charset=utf-8"
HEADERS = (
    (b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"X-Content-Type-Options", b"nosniff"),
    (b"X-Frame-Options", b"DENY"),
)
"""The page has a style of its own and nothing else, and no other page shows it in itself."""


def routes(described: Sequence[Route]) -> tuple[Route, ...]:
    """The routes that describe `described`, and themselves. What they answer never changes, so it is made once, and
    what makes it is imported when somebody asks: a start does not wait for it."""

    @cache
    def as_json() -> bytes:
        from topics.server import openapi

        return msgspec.json.encode(openapi.document([*described, *own]))

    @cache
    def as_html() -> bytes:
        from topics.server import openapi, reference

        return reference.page(openapi.document([*described, *own]))

    def document(context: Context, request: Request, reply: Reply) -> None:
        reply(Response(200, as_json()))

    def docs(context: Context, request: Request, reply: Reply) -> None:
        reply(Response(200, as_html(), HTML, HEADERS))

    own = (
        Route(
            "GET",
            "/v0/openapi.json",
            NO_SCOPE,
            document,
            Operation(
                "The OpenAPI document",
                "This API, for programs.",
                "operations",
                responses={
                    "200": {
                        "description": "OpenAPI 3.1.",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            ),
        ),
        Route(
            "GET",
            "/v0/docs",
            NO_SCOPE,
            docs,
            Operation(
                "The API reference",
                "This API, for people.",
                "operations",
                responses={"200": {"description": "A page.", "content": {"text/html": {"schema": {"type": "string"}}}}},
            ),
        ),
    )
    return own
