"""Statements about tables and pipelines as text, which reads back as the same."""

from __future__ import annotations

from typing import assert_never

import msgspec

from topics.core.pipelinecommands import Existing
from topics.pipelinemodel import PipelineOptions
from topics.sql.ddl import to_ddl
from topics.sql.pipelinestatements import (
    CatalogStatement,
    CreatePipeline,
    DescribePipeline,
    DescribeTable,
    DropPipeline,
    PausePipeline,
    RegisterTable,
    UnregisterTable,
)
from topics.sql.quoting import identifier, quoted_name, quoted_string

_REPLACE = {Existing.REPLACE: "OR REPLACE ", Existing.KEEP: "", Existing.REFUSE: ""}
_KEEP = {Existing.KEEP: "IF NOT EXISTS ", Existing.REPLACE: "", Existing.REFUSE: ""}


def to_text(statement: CatalogStatement) -> str:
    match statement:
        case RegisterTable():
            return _register(statement)
        case UnregisterTable():
            return f"UNREGISTER TABLE {'IF EXISTS ' if statement.if_exists else ''}{quoted_name(statement.table)}"
        case DescribeTable():
            return f"DESCRIBE TABLE {quoted_name(statement.table)}"
        case CreatePipeline():
            return _create(statement)
        case DropPipeline():
            return f"DROP PIPELINE {'IF EXISTS ' if statement.if_exists else ''}{quoted_name(statement.pipeline)}"
        case PausePipeline():
            return f"ALTER PIPELINE {quoted_name(statement.pipeline)} {'PAUSE' if statement.paused else 'RESUME'}"
        case DescribePipeline():
            return f"DESCRIBE PIPELINE {quoted_name(statement.pipeline)}"
        case _:
            assert_never(statement)


def _register(statement: RegisterTable) -> str:
    config = statement.config
    head = f"REGISTER {_REPLACE[statement.existing]}TABLE {_KEEP[statement.existing]}{quoted_name(statement.table)}"
    parts = [f"{head} USING {config.format.upper()}"]
    if config.location:
        parts.append(f"LOCATION {quoted_string(config.location)}")
    if config.key:
        parts.append(f"KEY ({', '.join(map(identifier, config.key))})")
    if config.columns:
        parts.append(f"COLUMNS ({quoted_string(to_ddl(config.columns))})")
    said = {"location_env": config.location_env, "source": config.source} | config.options
    texts = [f"{name} = {quoted_string(value)}" for name, value in said.items() if value or name in config.options]
    if texts:
        parts.append(f"WITH ({', '.join(texts)})")
    return " ".join(parts)


def _create(statement: CreatePipeline) -> str:
    head = f"CREATE {_REPLACE[statement.existing]}PIPELINE {_KEEP[statement.existing]}{quoted_name(statement.pipeline)}"
    plain = msgspec.structs.asdict(PipelineOptions())
    said = msgspec.structs.asdict(statement.config.options)
    texts = [
        f"{name} = {quoted_string(value) if isinstance(value, str) else value}"
        for name, value in said.items()
        if value != plain[name]
    ]
    options = f" WITH ({', '.join(texts)})" if texts else ""
    return f"{head}{options} AS {statement.config.definition}"
