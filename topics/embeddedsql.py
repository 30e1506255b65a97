"""Statements on the engine in this process. Results are what a server would answer, read as a client reads them."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from topics.client.sqltransport import sql_body
from topics.engine.host import Host
from topics.errors import InvalidRequest
from topics.sqlengine.runner import Runner
from topics.sqlmodel import SqlResult
from topics.wire.sql import decode_sql


class EmbeddedSql:
    """The part of a transport without a wire that is about statements."""

    _sql: Runner

    @abstractmethod
    def _open_host(self) -> Host: ...

    async def sql(self, text: str, params: Sequence[Any]) -> list[SqlResult]:
        from topics.sqlengine.result import as_values

        return await asyncio.to_thread(as_values, await self._run(text, params))

    async def sql_arrow(self, text: str, params: Sequence[Any]) -> bytes:
        results = await self._run(text, params, arrow=True)
        if len(results) != 1:
            raise InvalidRequest(
                f"an Arrow table holds the result of one statement, and there were {len(results)}; all of them were "
                "done",
                field="sql",
                expected="one statement",
            )
        return await asyncio.to_thread(results[0].arrow)

    async def _run(self, text: str, params: Sequence[Any], arrow: bool = False) -> list[Any]:
        executor = await self._sql.executor(self._open_host())
        # Parameters pass through JSON as on their way to a server, so that the same is refused.
        request = decode_sql(sql_body(text, params))
        from topics.sqlengine.access import FullAccess

        return list(await executor.run(request.sql, request.params, FullAccess(), arrow=arrow))
