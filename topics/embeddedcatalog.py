"""The verbs of tables and pipelines on the engine in this process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeVar

from topics.client.body import plain_body
from topics.core.catalogview import KnownColumns, pipeline_state, pipeline_states, routes_by_table, table_state
from topics.core.commands import Command
from topics.core.names import check_pipeline, check_table
from topics.core.pipelinecommands import (
    DropPipeline,
    DropTable,
    PausePipeline,
    PutPipeline,
    PutTable,
    ReportPipeline,
)
from topics.engine.host import Host
from topics.pipelinemodel import LogLine, PipelineDropped, PipelineOrders, PipelineReport, PipelineState
from topics.sqlengine.runner import Runner
from topics.tablemodel import TableDropped, TableState
from topics.wire.pipeline import decode_pipeline, decode_report, report_body
from topics.wire.table import decode_table

T = TypeVar("T")


class EmbeddedCatalog:
    """The part of a transport without a wire that is about tables and pipelines."""

    _sql: Runner

    @abstractmethod
    def _open_host(self) -> Host: ...

    @abstractmethod
    async def _submit(self, command: Command, kind: type[T]) -> T: ...

    async def put_table(self, name: str, fields: Mapping[str, object]) -> TableState:
        # The same text a server would get, so that the same is refused in the same words.
        return await self._submit(PutTable(check_table(name), decode_table(plain_body(fields))), TableState)

    async def table(self, name: str) -> TableState:
        return table_state(self._open_host().engine.machine, name)

    async def drop_table(self, name: str) -> TableDropped:
        return await self._submit(DropTable(check_table(name)), TableDropped)

    async def tables(self, *, prefix: str, after: str, limit: int) -> list[TableState]:
        machine = self._open_host().engine.machine
        names = sorted(name for name in machine.catalog.tables if name > after and name.startswith(prefix))
        routes = routes_by_table(machine)
        return [table_state(machine, name, routes=routes) for name in names[:limit]]

    async def put_pipeline(self, name: str, definition: str, options: Mapping[str, object]) -> PipelineState:
        wanted = decode_pipeline(plain_body({"definition": definition, "options": dict(options)}))
        await self._sql.executor(self._open_host())
        from topics.sql import pipelinegrammar

        known = KnownColumns(self._open_host().engine.machine)
        config = pipelinegrammar.definition(wanted.definition, wanted.options, known)
        return await self._submit(PutPipeline(check_pipeline(name), config), PipelineState)

    async def pipeline(self, name: str) -> PipelineState:
        engine = self._open_host().engine
        return pipeline_state(engine.machine, name, engine.now_ms())

    async def drop_pipeline(self, name: str) -> PipelineDropped:
        return await self._submit(DropPipeline(check_pipeline(name)), PipelineDropped)

    async def pause_pipeline(self, name: str, *, paused: bool) -> PipelineState:
        return await self._submit(PausePipeline(check_pipeline(name), paused), PipelineState)

    async def report_pipeline(self, name: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders:
        said, new = decode_report(report_body(report, tuple(lines)))
        return await self._submit(ReportPipeline(check_pipeline(name), said, new), PipelineOrders)

    async def pipeline_logs(self, name: str, *, limit: int) -> list[LogLine]:
        await self.pipeline(name)
        known = self._open_host().engine.machine.catalog.pipelines.get(name)
        lines = [] if known is None else list(known.lines)
        return lines[max(0, len(lines) - limit) :]

    async def pipelines(self, *, prefix: str, after: str, limit: int) -> list[PipelineState]:
        engine = self._open_host().engine
        states = pipeline_states(engine.machine, engine.now_ms())
        return [each for each in states if each.pipeline > after and each.pipeline.startswith(prefix)][:limit]
