"""The verbs of routers over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from topics.client.body import plain_body
from topics.client.caller import Caller
from topics.client.connection import Answer
from topics.client.remoteanswer import decoded, misunderstood
from topics.errors import InvalidRequest
from topics.routermodel import RouterDropped, RouterState
from topics.wire.cursor import encode_cursor
from topics.wire.router import router_state


class _List(msgspec.Struct):
    routers: list[dict[str, Any]]


class RemoteRouters:
    """The part of a transport over HTTP that is about routers."""

    _caller: Caller

    async def put_router(self, name: str, fields: Mapping[str, object]) -> RouterState:
        answer = await self._caller.call("PUT", _path(name), plain_body(fields), repeatable=True)
        return _state(answer, decoded(answer, dict[str, Any]))

    async def router(self, name: str) -> RouterState:
        answer = await self._caller.call("GET", _path(name), repeatable=True)
        return _state(answer, decoded(answer, dict[str, Any]))

    async def drop_router(self, name: str) -> RouterDropped:
        # Not repeatable: meanwhile somebody may have made a router of that name again.
        return decoded(await self._caller.call("DELETE", _path(name), repeatable=False), RouterDropped)

    async def routers(self, *, prefix: str, source: str, dest: str, after: str, limit: int) -> list[RouterState]:
        query = {"full": "true", "page_size": str(limit)}
        query |= {name: text for name, text in (("prefix", prefix), ("source", source), ("dest", dest)) if text}
        if after:
            query["cursor"] = encode_cursor(after)
        answer = await self._caller.call("GET", f"/v0/routers?{urlencode(query)}", repeatable=True)
        return [_state(answer, fields) for fields in decoded(answer, _List).routers]


def _path(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"router must be a name, not {name!r}", field="router", expected="a name")
    return f"/v0/routers/{quote(name, safe='')}"


def _state(answer: Answer, fields: dict[str, Any]) -> RouterState:
    try:
        return router_state(fields)
    except msgspec.ValidationError as error:
        raise misunderstood(answer, error) from None
