"""The verbs of tables and pipelines over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from topics.client.body import plain_body
from topics.client.caller import Caller
from topics.client.connection import Answer
from topics.client.remoteanswer import decoded, misunderstood
from topics.errors import InvalidRequest
from topics.pipelinemodel import LogLine, PipelineDropped, PipelineOrders, PipelineReport, PipelineState
from topics.tablemodel import TableDropped, TableState
from topics.wire.cursor import encode_cursor
from topics.wire.pipeline import report_body
from topics.wire.table import table_state


class _Tables(msgspec.Struct):
    tables: list[dict[str, Any]]


class _Pipelines(msgspec.Struct):
    pipelines: list[PipelineState]


class _Logs(msgspec.Struct):
    logs: list[LogLine]


class RemoteCatalog:
    """The part of a transport over HTTP that is about tables and pipelines."""

    _caller: Caller

    async def put_table(self, name: str, fields: Mapping[str, object]) -> TableState:
        answer = await self._caller.call("PUT", _path("table", name), plain_body(fields), repeatable=True)
        return _table(answer, decoded(answer, dict[str, Any]))

    async def table(self, name: str) -> TableState:
        answer = await self._caller.call("GET", _path("table", name), repeatable=True)
        return _table(answer, decoded(answer, dict[str, Any]))

    async def drop_table(self, name: str) -> TableDropped:
        # Not repeatable: meanwhile somebody may have registered a table of that name again.
        return decoded(await self._caller.call("DELETE", _path("table", name), repeatable=False), TableDropped)

    async def tables(self, *, prefix: str, after: str, limit: int) -> list[TableState]:
        answer = await self._caller.call("GET", _list("table", prefix, after, limit), repeatable=True)
        return [_table(answer, fields) for fields in decoded(answer, _Tables).tables]

    async def put_pipeline(self, name: str, definition: str, options: Mapping[str, object]) -> PipelineState:
        body = plain_body({"definition": definition, "options": dict(options)})
        return decoded(await self._caller.call("PUT", _path("pipeline", name), body, repeatable=True), PipelineState)

    async def pipeline(self, name: str) -> PipelineState:
        return decoded(await self._caller.call("GET", _path("pipeline", name), repeatable=True), PipelineState)

    async def drop_pipeline(self, name: str) -> PipelineDropped:
        return decoded(await self._caller.call("DELETE", _path("pipeline", name), repeatable=False), PipelineDropped)

    async def pause_pipeline(self, name: str, *, paused: bool) -> PipelineState:
        path = f"{_path('pipeline', name)}/{'pause' if paused else 'resume'}"
        return decoded(await self._caller.call("POST", path, b"{}", repeatable=True), PipelineState)

    async def report_pipeline(self, name: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders:
        path = f"{_path('pipeline', name)}/report"
        # Not repeatable: the lines of its log would be there twice.
        answer = await self._caller.call("POST", path, report_body(report, tuple(lines)), repeatable=not lines)
        return decoded(answer, PipelineOrders)

    async def pipeline_logs(self, name: str, *, limit: int) -> list[LogLine]:
        path = f"{_path('pipeline', name)}/logs?limit={limit}"
        return decoded(await self._caller.call("GET", path, repeatable=True), _Logs).logs

    async def pipelines(self, *, prefix: str, after: str, limit: int) -> list[PipelineState]:
        answer = await self._caller.call("GET", _list("pipeline", prefix, after, limit), repeatable=True)
        return decoded(answer, _Pipelines).pipelines


def _path(what: str, name: str) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{what} must be a name, not {name!r}", field=what, expected="a name")
    return f"/v0/{what}s/{quote(name, safe='')}"


def _list(what: str, prefix: str, after: str, limit: int) -> str:
    query = {"full": "true", "page_size": str(limit)}
    if prefix:
        query["prefix"] = prefix
    if after:
        query["cursor"] = encode_cursor(after)
    return f"/v0/{what}s?{urlencode(query)}"


def _table(answer: Answer, fields: dict[str, Any]) -> TableState:
    try:
        return table_state(fields)
    except msgspec.ValidationError as error:
        raise misunderstood(answer, error) from None
