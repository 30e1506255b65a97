"""Records of a topic appended again: dead letters to where they came from, or any range to anywhere, in bulk.

The range is fixed when a job begins and is part of its name, `abc123@1200,80`: up to seq 1200 of the first partition
and 80 of the second. It is done in steps, each read, filtered, transformed and written in one commit under the job's
name and its own place. So a job that is begun again with its name does what is left and nothing twice, for as long as
the server remembers (24 hours). The records stay where they are; deleting them is another decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from topics.clock import SystemClock
from topics.errors import InvalidRequest
from topics.spark.options import parse_options
from topics.spark.ranges import partition_states
from topics.spark.server import Server
from topics.spark.source import FORMAT, preset_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEP_ROWS: Final = 100_000
FROM: Final = "$dead_letter_from"
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True)
class Wanted:
    """What is to go where."""

    source: str
    to: str = ""
    """A topic; without one, dead letters go to the queue they came from."""
    where: str = ""
    """An SQL condition over the columns of the topic; all when it is empty."""
    transform: str = ""
    """An SQL expression for the new data; as it was when it is empty."""
    schema: str = ""
    """That of the data, in DDL: then `where` and `transform` can say `value.field`."""
    from_seq: int = 1


class Redriven(msgspec.Struct, frozen=True):
    job_id: str
    scanned: int
    """Seqs that were looked at."""
    count: int
    """Records that were appended, now or by the same job before; or would be."""
    lost: int = 0
    """Seqs of the range that the server has lost (cap, TTL) and that could not be looked at."""
    dry_run: bool = False


@dataclass(frozen=True)
class Step:
    partition: int
    first_seq: int
    last_seq: int


def begin(source: str, url: str = "", key: str = "") -> str:
    """A name for a job over what is in a topic now."""
    options = parse_options({"topic": source}, {"url": url, "key": key})
    server = Server(options.url, options.key, options.timeout_ms)
    states = partition_states(options, server)
    server.close()
    return f"{uuid4().hex[:12]}@{','.join(str(state.head_seq) for state in states)}"


def ends_of(job_id: str) -> list[int]:
    """Where a job ends in each partition, out of its name."""
    _, at, ends = job_id.rpartition("@")
    found = ends.split(",") if at else []
    if not found or not all(end.isascii() and end.isdecimal() for end in found):
        expected = "a name, @, and the last seq of each partition, like again@1200,80"
        raise InvalidRequest(f'"{job_id}" does not say where the job ends: {expected}', field="job", expected=expected)
    return [int(end) for end in found]


def steps_of(ends: list[int], from_seq: int, rows: int) -> Iterator[Step]:
    """Ranges of at most so many seqs, always cut at the same places."""
    for partition, end in enumerate(ends):
        for first in range(from_seq, end + 1, rows):
            yield Step(partition, first, min(first + rows - 1, end))


def redrive(
    spark: SparkSession,
    wanted: Wanted,
    *,
    url: str = "",
    key: str = "",
    job_id: str = "",
    dry_run: bool = False,
    rate: int = 0,
    step_rows: int = STEP_ROWS,
    on_progress: Callable[[int, int], None] = lambda scanned, total: None,
) -> Redriven:
    """Append records of a topic again; `rate` is how many a second at most, 0 for no limit."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import coalesce, expr, lit
    from pyspark.sql.functions import sum as sum_

    job = job_id or begin(wanted.source, url, key)
    spark.dataSource.register(preset_source(url=url, key=key))
    ends = ends_of(job)
    total = sum(max(0, end - wanted.from_seq + 1) for end in ends)
    clock = SystemClock()
    begun_ns, scanned, appended, lost = clock.ticks_ns(), 0, 0, 0
    for step in steps_of(ends, wanted.from_seq, min(step_rows, rate) if rate else step_rows):
        gone = Observation()
        gaps = coalesce(sum_(expr("gap.to_seq - gap.from_seq + 1")), lit(0))
        rows = _chosen(_read(spark, wanted, step).observe(gone, gaps.alias("lost")).where("gap IS NULL"), wanted)
        appended += rows.count() if dry_run else _write(rows, wanted, job, step)
        lost += int(gone.get["lost"])
        scanned += step.last_seq - step.first_seq + 1
        on_progress(scanned, total)
        if rate and not dry_run:
            due_ns = begun_ns + appended * _NS_PER_S // rate
            Event().wait(max(0, due_ns - clock.ticks_ns()) / _NS_PER_S)
    return Redriven(job, scanned, appended, lost, dry_run)


def _read(spark: SparkSession, wanted: Wanted, step: Step) -> DataFrame:
    reader = spark.read.format(FORMAT).option("topic", wanted.source).option("partitions", step.partition)
    reader = reader.option("startingSeq", step.first_seq).option("endingSeq", step.last_seq).option("onGap", "row")
    return (reader.option("schema", wanted.schema) if wanted.schema else reader).load()


def _chosen(rows: DataFrame, wanted: Wanted) -> DataFrame:
    """The rows to write, with the columns of a write."""
    from pyspark.sql.functions import col, expr, get_json_object, lit

    if wanted.where:
        rows = rows.where(wanted.where)
    topic = lit(wanted.to) if wanted.to else get_json_object(col("meta"), f"$['{FROM}']")
    if not wanted.to:
        rows = rows.where(topic.isNotNull())
    data = expr(wanted.transform) if wanted.transform else expr("data")
    return rows.select(topic.alias("topic"), data.alias("data"), "tag", "node")


def _write(rows: DataFrame, wanted: Wanted, job: str, step: Step) -> int:
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    seen = Observation()
    name = f"redrive:{job}:{wanted.source}:{step.partition}:{step.first_seq}"
    writer = rows.observe(seen, count(lit(1)).alias("count")).write.format(FORMAT).mode("append")
    writer.option("jobId", name).save()
    return int(seen.get["count"])
