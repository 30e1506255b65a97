"""The tables and pipelines that are declared, and what runners last said about each.

A pipeline whose name begins with `routes:` is the routes of a table. It is there while the table has any; an entry here
only remembers that it is paused, and its report.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import assert_never

from topics.core.pipelinefacts import (
    CatalogFact,
    PipelineGone,
    PipelinePaused,
    PipelinePut,
    PipelineReported,
    TableGone,
    TablePut,
)
from topics.limits import REPORT_LINES_MAX
from topics.pipelinemodel import LogLine, PipelineConfig, PipelineReport, routes_name
from topics.tablemodel import TableConfig


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    config: TableConfig
    created_ms: int
    changed_ms: int


@dataclass(slots=True)
class Pipeline:
    name: str
    number: int = 0
    """No other pipeline ever had it; 0 for the routes of a table."""
    config: PipelineConfig | None = None
    """None for the routes of a table."""
    created_ms: int = 0
    changed_ms: int = 0
    paused: bool = False
    report: PipelineReport | None = None
    reported_ms: int = 0
    stored_ms: int = 0
    """The time of the last report that was stored."""
    lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=REPORT_LINES_MAX))
    """The end of its log, in memory only."""


class Catalog:
    def __init__(self) -> None:
        self.tables: dict[str, Table] = {}
        self.pipelines: dict[str, Pipeline] = {}
        self.changed_tables: set[str] = set()
        """Names of tables that came, changed or went since a checkpoint last looked."""
        self.changed_pipelines: set[str] = set()

    def apply(self, fact: CatalogFact) -> None:
        match fact:
            case TablePut():
                self.tables[fact.table] = Table(fact.table, fact.config, fact.created_ms, fact.changed_ms)
                self.changed_tables.add(fact.table)
            case TableGone():
                self.tables.pop(fact.table, None)
                self.changed_tables.add(fact.table)
                self._forget(routes_name(fact.table))
            case PipelinePut():
                pipeline = self.entry(fact.pipeline)
                if pipeline.number != fact.number:
                    self._forget(fact.pipeline)
                    pipeline = self.entry(fact.pipeline)
                pipeline.number, pipeline.config = fact.number, fact.config
                pipeline.created_ms, pipeline.changed_ms = fact.created_ms, fact.changed_ms
            case PipelineGone():
                self._forget(fact.pipeline)
            case PipelinePaused():
                self.entry(fact.pipeline).paused = fact.paused
            case PipelineReported():
                pipeline = self.entry(fact.pipeline)
                pipeline.report = fact.report
                pipeline.reported_ms = pipeline.stored_ms = fact.ts
            case _:
                assert_never(fact)

    def entry(self, name: str) -> Pipeline:
        """What is remembered of a pipeline, which is about to change."""
        self.changed_pipelines.add(name)
        return self.pipelines.setdefault(name, Pipeline(name))

    def _forget(self, name: str) -> None:
        self.pipelines.pop(name, None)
        self.changed_pipelines.add(name)

    def all_changed(self) -> None:
        """Everything is to be in the next snapshot."""
        self.changed_tables.update(self.tables)
        self.changed_pipelines.update(self.pipelines)
