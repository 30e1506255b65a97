"""One pipeline, as a program uses it: declared here, run by a runner on Spark."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, Literal, TypedDict, Unpack

from topics.client.catalogtransport import CatalogTransport
from topics.limits import REPORT_LINES_MAX
from topics.pipelinemodel import LogLine, PipelineDropped, PipelineOrders, PipelineReport, PipelineState

PIPELINES_PAGE: Final = 100
"""Pipelines asked for at once."""


class PipelineFields(TypedDict, total=False):
    """What a pipeline may be told as keywords; what each means is in `topics.PipelineOptions`."""

    trigger_ms: int
    checkpoint: str
    starting: Literal["earliest", "latest"]
    output_mode: Literal["append", "update", "complete"]
    max_records: int


class Pipeline:
    """A pipeline by its name. Making this object touches nothing."""

    def __init__(self, transport: CatalogTransport, name: str) -> None:
        self._transport = transport
        self._name = name

    def __repr__(self) -> str:
        return f"<Pipeline {self._name}>"

    @property
    def name(self) -> str:
        """The name; of the routes of a table, `routes:` and the name of the table."""
        return self._name

    async def put(self, definition: str, **options: Unpack[PipelineFields]) -> PipelineState:
        """Declare what it does: what stands behind AS in CREATE PIPELINE. See docs/PIPELINES.md.

            await client.pipeline("big").put("INSERT INTO TOPIC alerts SELECT * FROM STREAM orders", trigger_ms=1000)

        One that exists keeps its number, and with that its position. `InvalidSql` says where it is not understood.
        """
        return await self._transport.put_pipeline(self._name, definition, options)

    async def state(self) -> PipelineState:
        """What it does, how it is, and the last that its runner said."""
        return await self._transport.pipeline(self._name)

    async def pause(self) -> PipelineState:
        """Let it rest; it keeps its position."""
        return await self._transport.pause_pipeline(self._name, paused=True)

    async def resume(self) -> PipelineState:
        """Let it go on."""
        return await self._transport.pause_pipeline(self._name, paused=False)

    async def drop(self) -> PipelineDropped:
        """Forget it. What it has written stays."""
        return await self._transport.drop_pipeline(self._name)

    async def logs(self, limit: int = REPORT_LINES_MAX) -> list[LogLine]:
        """The last lines that its runner sent, oldest first."""
        return await self._transport.pipeline_logs(self._name, limit=limit)

    async def report(self, report: PipelineReport, lines: Sequence[LogLine] = ()) -> PipelineOrders:
        """For who runs it: say how it is, and hear what to do. `PipelineTaken` while another runner has it."""
        return await self._transport.report_pipeline(self._name, report, lines)


async def every_pipeline(transport: CatalogTransport, prefix: str) -> AsyncIterator[PipelineState]:
    """Pipelines in order of their names, one page after the other."""
    after = ""
    while True:
        found = await transport.pipelines(prefix=prefix, after=after, limit=PIPELINES_PAGE)
        for state in found:
            yield state
        if len(found) < PIPELINES_PAGE:
            return
        after = found[-1].pipeline
