"""Commands about tables and pipelines. See docs/PIPELINES.md."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from topics.pipelinemodel import LogLine, PipelineConfig, PipelineReport
from topics.tablemodel import TableConfig


class Existing(Enum):
    """What is done about one of that name that is there already."""

    REFUSE = auto()
    KEEP = auto()
    REPLACE = auto()


@dataclass(frozen=True, slots=True)
class PutTable:
    table: str
    config: TableConfig
    existing: Existing = Existing.REPLACE


@dataclass(frozen=True, slots=True)
class DropTable:
    table: str


@dataclass(frozen=True, slots=True)
class PutPipeline:
    pipeline: str
    config: PipelineConfig
    existing: Existing = Existing.REPLACE


@dataclass(frozen=True, slots=True)
class DropPipeline:
    pipeline: str


@dataclass(frozen=True, slots=True)
class PausePipeline:
    pipeline: str
    paused: bool


@dataclass(frozen=True, slots=True)
class ReportPipeline:
    """What a runner says, and what is new in its log."""

    pipeline: str
    report: PipelineReport
    lines: tuple[LogLine, ...] = ()


CatalogCommand = PutTable | DropTable | PutPipeline | DropPipeline | PausePipeline | ReportPipeline
