"""Statements about tables and pipelines as frozen values; `statements.py` has the others."""

from __future__ import annotations

from dataclasses import dataclass

from topics.core.pipelinecommands import Existing
from topics.pipelinemodel import PipelineConfig
from topics.tablemodel import TableConfig


@dataclass(frozen=True, slots=True)
class RegisterTable:
    table: str
    config: TableConfig
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True)
class UnregisterTable:
    table: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreatePipeline:
    pipeline: str
    config: PipelineConfig
    existing: Existing = Existing.REFUSE


@dataclass(frozen=True, slots=True)
class DropPipeline:
    pipeline: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class PausePipeline:
    pipeline: str
    paused: bool
    """False resumes it."""


@dataclass(frozen=True, slots=True)
class DescribeTable:
    table: str


@dataclass(frozen=True, slots=True)
class DescribePipeline:
    pipeline: str


TableStatement = RegisterTable | UnregisterTable | DescribeTable
PipelineStatement = CreatePipeline | DropPipeline | PausePipeline | DescribePipeline
CatalogStatement = TableStatement | PipelineStatement
