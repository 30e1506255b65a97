"""How a client reaches the tables and pipelines of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from topics.pipelinemodel import LogLine, PipelineDropped, PipelineOrders, PipelineReport, PipelineState
from topics.tablemodel import TableDropped, TableState


class CatalogTransport(Protocol):
    async def put_table(self, name: str, fields: Mapping[str, object]) -> TableState:
        """Register a table, or make these its whole config; what is not named has its default."""

    async def table(self, name: str) -> TableState: ...

    async def drop_table(self, name: str) -> TableDropped: ...

    async def tables(self, *, prefix: str, after: str, limit: int) -> list[TableState]:
        """Tables by name behind `after`; fewer than `limit` means that there are no more."""

    async def put_pipeline(self, name: str, definition: str, options: Mapping[str, object]) -> PipelineState: ...

    async def pipeline(self, name: str) -> PipelineState: ...

    async def drop_pipeline(self, name: str) -> PipelineDropped: ...

    async def pause_pipeline(self, name: str, *, paused: bool) -> PipelineState: ...

    async def report_pipeline(self, name: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders: ...

    async def pipeline_logs(self, name: str, *, limit: int) -> list[LogLine]: ...

    async def pipelines(self, *, prefix: str, after: str, limit: int) -> list[PipelineState]:
        """Pipelines by name behind `after`; fewer than `limit` means that there are no more."""
