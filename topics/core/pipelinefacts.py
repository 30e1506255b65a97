"""What happened to tables and pipelines, as it is stored: facts of the meta log. See docs/PIPELINES.md."""

from __future__ import annotations

import msgspec

from topics.pipelinemodel import PipelineConfig, PipelineReport
from topics.tablemodel import TableConfig


class TablePut(msgspec.Struct, frozen=True, tag="table_put"):
    """A table was registered, or is registered in another way now."""

    table: str
    config: TableConfig
    created_ms: int
    changed_ms: int


class TableGone(msgspec.Struct, frozen=True, tag="table_gone"):
    table: str


class PipelinePut(msgspec.Struct, frozen=True, tag="pipeline_put"):
    """There is such a pipeline, or it changed: then it has its old number."""

    pipeline: str
    number: int
    config: PipelineConfig
    created_ms: int
    changed_ms: int


class PipelineGone(msgspec.Struct, frozen=True, tag="pipeline_gone"):
    pipeline: str


class PipelinePaused(msgspec.Struct, frozen=True, tag="pipeline_paused"):
    """A pipeline is to rest, or to go on; also one that is the routes of a table."""

    pipeline: str
    paused: bool


class PipelineReported(msgspec.Struct, frozen=True, tag="pipeline_reported"):
    """What a runner last said. Not every report is stored."""

    pipeline: str
    ts: int
    report: PipelineReport


TableFact = TablePut | TableGone
PipelineFact = PipelinePut | PipelineGone | PipelinePaused | PipelineReported
CatalogFact = TableFact | PipelineFact
