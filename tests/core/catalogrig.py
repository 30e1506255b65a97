"""A machine with tables and pipelines, driven by hand."""

from __future__ import annotations

from typing import Any

from tests.core.rig import Rig
from topics.core.commands import ChangeSources
from topics.core.machine import Machine
from topics.core.pipelinecommands import (
    DropPipeline,
    DropTable,
    Existing,
    PausePipeline,
    PutPipeline,
    PutTable,
    ReportPipeline,
)
from topics.core.source import Operation, PayloadMode, Source
from topics.pipelinemodel import (
    LogLine,
    PipelineConfig,
    PipelineKind,
    PipelineReport,
    PipelineStream,
    PipelineTable,
    RunState,
)
from topics.tablemodel import TableConfig, TableFormat


def table(**fields: Any) -> TableConfig:
    return TableConfig(**({"format": TableFormat.DELTA, "location": "/data", "key": ("id",)} | fields))


def pipeline(*topics: str, into: str = "alerts", tables: tuple[str, ...] = (), **fields: Any) -> PipelineConfig:
    return PipelineConfig(
        kind=PipelineKind.INSERT,
        definition=f"INSERT INTO TOPIC {into} …",
        topic=into,
        streams=tuple(PipelineStream(view=f"v{topic}", topic=topic) for topic in topics),
        tables=tuple(PipelineTable(view=f"v{name}", table=name) for name in tables),
        **fields,
    )


def report(runner: str = "r1", state: RunState = RunState.RUNNING, **fields: Any) -> PipelineReport:
    return PipelineReport(runner=runner, state=state, **fields)


class CatalogRig(Rig):
    def put_table(self, name: str, config: TableConfig | None = None, existing: Existing = Existing.REPLACE) -> Any:
        return self.step(PutTable(name, config or table(), existing)).reply

    def drop_table(self, name: str) -> Any:
        return self.step(DropTable(name)).reply

    def put(self, name: str, config: PipelineConfig, existing: Existing = Existing.REPLACE) -> Any:
        return self.step(PutPipeline(name, config, existing)).reply

    def drop_pipeline(self, name: str) -> Any:
        return self.step(DropPipeline(name)).reply

    def pause(self, name: str, paused: bool = True) -> Any:
        return self.step(PausePipeline(name, paused)).reply

    def report(self, name: str, said: PipelineReport | None = None, *lines: LogLine) -> Any:
        return self.step(ReportPipeline(name, said or report(), lines)).reply

    def route(self, topic: str, name: str, operation: Operation = Operation.INSERT) -> Any:
        return self.step(ChangeSources(topic, (Source(name, operation, PayloadMode.FULL),))).reply

    def again(self) -> Machine:
        """The machine out of its facts."""
        machine = Machine()
        for fact in self.facts:
            machine.replay_meta(b"".join(fact.body))
        return machine
