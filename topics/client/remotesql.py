"""Statements over HTTP. Not tried again when the answer is lost: nobody knows which of them were done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from topics.client.caller import Caller
from topics.client.remoteanswer import decoded
from topics.client.sqltransport import sql_body
from topics.limits import WAIT_MS_MAX
from topics.sqlmodel import SqlResult

_ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


class _Results(msgspec.Struct):
    results: list[SqlResult]


class RemoteSql:
    """The part of a transport over HTTP that is about statements."""

    _caller: Caller

    async def sql(self, text: str, params: Sequence[Any]) -> list[SqlResult]:
        body = sql_body(text, params)
        answer = await self._caller.call("POST", "/v0/sql", body, repeatable=False, wait_ms=WAIT_MS_MAX)
        return decoded(answer, _Results).results

    async def sql_arrow(self, text: str, params: Sequence[Any]) -> bytes:
        body = sql_body(text, params)
        answer = await self._caller.call("POST", "/v0/sql", body, repeatable=False, wait_ms=WAIT_MS_MAX, headers=_ARROW)
        return answer.body
