"""What a server says there is to run, and what it is told about it: the runner's side of the contract.

See docs/PIPELINES.md, "The runner's contract". Everything here may be asked again, so a server that restarts is waited
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

import msgspec

from topics.limits import PAGE_SIZE_MAX
from topics.pipelinemodel import LogLine, PipelineOrders, PipelineReport, PipelineState
from topics.spark.server import Server
from topics.tablemodel import TableState
from topics.wire.pipeline import report_body
from topics.wire.table import table_state


class _Page(msgspec.Struct, frozen=True):
    pipelines: list[PipelineState]
    next_cursor: str = ""


class Definitions(Server):
    def pipelines(self) -> list[PipelineState]:
        """All that there is to run, with definitions and what was last said of them."""
        found: list[PipelineState] = []
        cursor = ""
        while True:
            query = urlencode({"page_size": PAGE_SIZE_MAX, "cursor": cursor})
            page = msgspec.json.decode(self._ask("GET", f"/v0/pipelines?{query}").body, type=_Page)
            found += page.pipelines
            cursor = page.next_cursor
            if not cursor:
                return found

    def table(self, table: str) -> TableState:
        answer = self._ask("GET", f"/v0/tables/{quote(table, safe='')}")
        return table_state(msgspec.json.decode(answer.body))

    def report(self, pipeline: str, report: PipelineReport, lines: Sequence[LogLine]) -> PipelineOrders:
        """Say how a pipeline is; what is to be done with it. `PipelineTaken` when it is another runner's."""
        body = report_body(report, tuple(lines))
        answer = self._ask("POST", f"/v0/pipelines/{quote(pipeline, safe='')}/report", body)
        return msgspec.json.decode(answer.body, type=PipelineOrders)
