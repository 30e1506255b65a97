"""What a snapshot holds of tables and pipelines: each one, and of a pipeline the last report.

To change an image: only add fields with a default at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from topics.core.catalog import Catalog, Pipeline, Table
from topics.pipelinemodel import PipelineConfig, PipelineReport
from topics.tablemodel import TableConfig

TABLES = b"a/"
PIPELINES = b"p/"


class TableImage(msgspec.Struct, frozen=True, gc=False):
    name: str
    config: TableConfig
    created_ms: int
    changed_ms: int


class PipelineImage(msgspec.Struct, frozen=True, gc=False):
    name: str
    number: int
    config: PipelineConfig | None
    created_ms: int
    changed_ms: int
    paused: bool
    report: PipelineReport | None
    reported_ms: int


_table = msgspec.msgpack.Decoder(TableImage)
_pipeline = msgspec.msgpack.Decoder(PipelineImage)


def changed(
    catalog: Catalog, tables: set[str], pipelines: set[str]
) -> Iterator[tuple[bytes, TableImage | PipelineImage | None]]:
    """The key and the image of each of these; None for one that is gone."""
    for name in sorted(tables):
        table = catalog.tables.get(name)
        yield TABLES + name.encode(), None if table is None else _table_image(table)
    for name in sorted(pipelines):
        pipeline = catalog.pipelines.get(name)
        yield PIPELINES + name.encode(), None if pipeline is None else _pipeline_image(pipeline)


def restore(catalog: Catalog, key: bytes, value: bytes) -> None:
    """Put what a snapshot holds under a key into a catalog; keys of other things are passed over."""
    if key.startswith(TABLES):
        table = _table.decode(value)
        catalog.tables[table.name] = Table(table.name, table.config, table.created_ms, table.changed_ms)
    elif key.startswith(PIPELINES):
        image = _pipeline.decode(value)
        catalog.pipelines[image.name] = Pipeline(
            image.name,
            image.number,
            image.config,
            image.created_ms,
            image.changed_ms,
            image.paused,
            image.report,
            image.reported_ms,
            image.reported_ms,
        )


def _table_image(table: Table) -> TableImage:
    return TableImage(table.name, table.config, table.created_ms, table.changed_ms)


def _pipeline_image(pipeline: Pipeline) -> PipelineImage:
    return PipelineImage(
        pipeline.name,
        pipeline.number,
        pipeline.config,
        pipeline.created_ms,
        pipeline.changed_ms,
        pipeline.paused,
        pipeline.report,
        pipeline.reported_ms,
    )
