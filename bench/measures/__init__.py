"""One file a measure. To add one, write `run(sizes, directory, step)` and list it here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bench.figure import Figure
from bench.measures import (
    checkpoint,
    floods,
    groups,
    heaps,
    heaps_depth,
    http_batches,
    http_latency,
    http_memory,
    http_ready,
    http_replay,
    http_writes,
    length,
    live_crowd,
    live_fanout,
    live_latency,
    live_paced,
    pipelines,
    queues,
    queues_depth,
    reads,
    recovery,
    routers,
    single,
    spark_tables,
    sql,
    writes,
)
from bench.rig import Step
from bench.sizes import Sizes

Measure = Callable[[Sizes, Path, Step], list[Figure]]

ENGINE: dict[str, Measure] = {
    "writes": writes.run,
    "reads": reads.run,
    "recovery": recovery.run,
    "single": single.run,
    "length": length.run,
    "checkpoint": checkpoint.run,
    "routers": routers.run,
}
"""In-process, everything on one core."""
SERVER: dict[str, Measure] = {
    "http_writes": http_writes.run,
    "http_batches": http_batches.run,
    "http_replay": http_replay.run,
    "http_latency": http_latency.run,
    "http_memory": http_memory.run,
    "http_ready": http_ready.run,
}
"""The server against other servers, a core for the server and one for the client."""
LIVE: dict[str, Measure] = {
    "live_latency": live_latency.run,
    "live_fanout": live_fanout.run,
    "live_paced": live_paced.run,
    "live_crowd": live_crowd.run,
}
"""Live delivery against other servers, with the same cores."""
FLOODS: dict[str, Measure] = {
    "floods": floods.run,
}
"""A quiet client beside clients that send too much, and what unfinished requests hold."""
QUEUES: dict[str, Measure] = {
    "queues": queues.run,
    "queues_depth": queues_depth.run,
}
"""Job queues against other servers, with the same cores."""
SPARK: dict[str, Measure] = {
    "spark_tables": spark_tables.run,
}
"""Spark over topics, beside Spark over files."""
GROUPS: dict[str, Measure] = {
    "groups": groups.run,
}
"""Consumer groups against those of Redis, with the same cores as the server."""
HEAPS: dict[str, Measure] = {
    "heaps": heaps.run,
    "heaps_depth": heaps_depth.run,
}
"""Messages by priority, against sorted sets of Redis and priorities of beanstalkd, with the same cores."""
SQL: dict[str, Measure] = {
    "sql": sql.run,
}
"""SELECT over topics, beside DuckDB over files."""
PIPELINES: dict[str, Measure] = {
    "pipelines": pipelines.run,
}
"""Changes of tables into topics, by the runner on Spark."""
MEASURES = ENGINE | SERVER | FLOODS | LIVE | QUEUES | GROUPS | HEAPS | SPARK | SQL | PIPELINES
