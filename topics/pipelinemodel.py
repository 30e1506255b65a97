"""The values of pipelines that users see: what each does, who runs it, how far it is.

Field names are those of the `/v0` wire. The engine stores definitions and the last that a runner said; the work is done
by a runner on Spark. A registered table with routes is a pipeline, too: its name is `routes:` and that of the table.
See docs/PIPELINES.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

ROUTES_PREFIX: Final = "routes:"
"""What the name of a pipeline begins with that is the routes of a table."""


class PipelineKind(StrEnum):
    """What a pipeline makes of what."""

    INSERT = "insert"
    """A query over topics, into a topic."""
    MERGE = "merge"
    """Topics into a Delta table: the latest row of each key."""
    APPEND = "append"
    """Topics into a Delta table: a row a record."""
    ROUTES = "routes"
    """Changes of a table into topics."""


class PipelineStream(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that the query of a pipeline reads as a stream."""

    view: str
    """What it is called in `PipelineConfig.sql`."""
    topic: str
    schema: str = ""
    """DDL of the data, which is then in `value`; empty for none."""
    watermark: str = ""
    """An expression, as Spark writes it: how far time has come."""
    delay: str = ""
    """How much later than that a record may come, such as `10 seconds`."""


class PipelineTable(msgspec.Struct, frozen=True, kw_only=True):
    """A registered table that the query of a pipeline reads as it is."""

    view: str
    table: str


class PipelineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a pipeline is run. A new field needs a default."""

    trigger_ms: int = 500
    """How often a batch may begin."""
    checkpoint: str = ""
    """Where Spark keeps the position, any path that Hadoop knows; empty is the runner's own directory."""
    starting: Literal["earliest", "latest"] = "earliest"
    """Where a stream begins that has no position yet."""
    output_mode: Literal["append", "update", "complete"] = "append"
    """Which rows of an aggregation are written: finished ones, changed ones, or all."""
    max_records: int = 0
    """Records of each topic in one batch; 0 for as many as there are."""


class PipelineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a pipeline does. Stored as a map by field name; a new field needs a default."""

    kind: PipelineKind
    definition: str
    """What stands behind AS, as it was written: the rest is made out of it."""
    topic: str = ""
    """Where an `insert` writes."""
    path: str = ""
    """The Delta table that a `merge` or `append` writes."""
    key: tuple[str, ...] = ()
    """The columns that identify a row of it."""
    partition_by: str = ""
    """What spreads the records of an `insert` over partitions, as Spark writes it."""
    delete_when: str = ""
    """With `merge`: rows for which this is true delete theirs, as Spark writes it."""
    sql: str = ""
    """The query as Spark runs it, over the views below. Empty: all records of the one stream."""
    where: str = ""
    """Without a query: which records, as Spark writes it."""
    streams: tuple[PipelineStream, ...] = ()
    tables: tuple[PipelineTable, ...] = ()
    options: PipelineOptions = PipelineOptions()


class RunState(StrEnum):
    """What a runner says about a pipeline."""

    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    """It failed, and begins again after a while."""
    PAUSED = "paused"
    STOPPED = "stopped"
    """The runner has ended."""
    DONE = "done"
    """The runner was told to stop at the end, and did."""
    FAILED = "failed"
    """It failed in a way that trying again does not help; `last_error` says what does."""


class PipelineCondition(StrEnum):
    """How a pipeline is, from outside: what the runner said, or why there is nobody to say anything."""

    WAITING = "waiting"
    """No runner has ever taken it."""
    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"
    PAUSED = "paused"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
    LOST = "lost"
    """Its runner has said nothing for too long."""


class LogLine(msgspec.Struct, frozen=True):
    """One line of what a runner has to tell."""

    ts: int
    level: Literal["debug", "info", "warning", "error"]
    message: str


class RouteProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far one route of a table is."""

    topic: str
    operation: str
    number: int = 0
    position: str = ""
    """In words: `version 17`."""
    lag_versions: int | None = None
    lag_records: int | None = None
    lag_ms: int | None = None
    records_total: int = 0
    """Records written, ever."""
    errors_total: int = 0
    """Rows that could not be evaluated, ever; they are in `<topic>.errors`."""


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner says of one pipeline, every few seconds and when something changes."""

    runner: str
    """Who says so: one name a process, such as `host-1/4711`."""
    state: RunState
    position: str = ""
    """In words: `version 17`, or `orders/0@1200 orders/1@1180`."""
    lag_versions: int | None = None
    """Of a table: versions not yet read. None where that means nothing."""
    lag_records: int | None = None
    """Records, or changes, not yet read, as far as that is known."""
    lag_ms: int | None = None
    """How long the oldest of them has been waiting."""
    input_rows_per_second: float = 0.0
    output_rows_per_second: float = 0.0
    input_rows_total: int = 0
    """Since this pipeline was first run, or as long as the runner can tell."""
    output_rows_total: int = 0
    error_rows_total: int = 0
    batch_id: int | None = None
    batch_ms: int | None = None
    """How long the last batch took."""
    restarts: int = 0
    """How often this runner began again after a failure."""
    last_error: str | None = None
    last_error_ts: int | None = None
    spark_ui: str | None = None
    digest: str = ""
    """`PipelineState.digest` of the definition that is being run."""
    routes: tuple[RouteProgress, ...] = ()
    """Of the routes of a table."""


class PipelineState(msgspec.Struct, frozen=True, kw_only=True):
    """A pipeline as it is now: what it does, and the last that its runner said."""

    pipeline: str
    kind: PipelineKind
    condition: PipelineCondition
    paused: bool = False
    """Whether it is to rest: a runner stops it as soon as it hears of that."""
    created: bool = False
    """Whether this call created it."""
    created_ts: int
    changed_ts: int
    number: int
    """No other pipeline ever had it. One that is replaced keeps it, and its position."""
    digest: str
    """Another one whenever the definition is, or that of a table it reads."""
    config: PipelineConfig | None = None
    """None for the routes of a table: see `TableState.routes`."""
    table: str | None = None
    """The table whose routes these are."""
    reported_ts: int | None = None
    """When its runner last said something."""
    report: PipelineReport | None = None


class PipelineOrders(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a report: what the runner is to do now."""

    pipeline: str
    exists: bool
    """False: it was dropped; stop it and forget it."""
    paused: bool
    digest: str
    """Another one than in the report: read the definition again."""


class PipelineDropped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to dropping a pipeline; `deleted` is false when there was none."""

    pipeline: str
    deleted: bool


def routes_name(table: str) -> str:
    """The name of the pipeline that is the routes of a table."""
    return ROUTES_PREFIX + table


def own_name(pipeline: str) -> str:
    """What decides whose a pipeline is: its name, or that of the table whose routes it is."""
    return pipeline.removeprefix(ROUTES_PREFIX)


def place_in(config: PipelineConfig) -> str:
    """The field of a definition that says where a runner writes files; empty when none does."""
    return "path" if config.path else "checkpoint" if config.options.checkpoint else ""


def names_of(config: PipelineConfig | None) -> tuple[tuple[str, str], ...]:
    """Every topic and table that a pipeline is about: what each is, and its name."""
    if config is None:
        return ()
    into = (("topic", config.topic),) if config.topic else ()
    streams = (("topic", stream.topic) for stream in config.streams)
    tables = (("table", each.table) for each in config.tables)
    return (*into, *streams, *tables)
