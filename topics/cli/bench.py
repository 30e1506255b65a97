"""`topics bench`: a small load of your own against a server or a directory, with rates and a histogram.

Some writers write batches to a topic made for it, each waiting for its answer before it goes on; then everything is
read back and counted. What was acked and is not there would be a loss, and fails the bench. The topic is removed
whatever happens. How fast the engine is on a given machine is another question, for `make bench`.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter
from rich.console import Group
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from topics.cli.durations import milliseconds
from topics.cli.exitcode import Exit
from topics.cli.latencies import Latencies
from topics.cli.screen import JsonFlag, Screen, counted, sized
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Topic
from topics.client.fields import RecordFields
from topics.clock import SystemClock
from topics.errors import InvalidRequest, TopicsError

COLUMNS = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
PERCENTILES = (0.5, 0.9, 0.99, 0.999)
BAR_CHARS = 40
WRITERS_MAX = 1024
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Load:
    """What is done to the engine."""

    duration_ms: int
    writers: int
    batch: int
    record_bytes: int
    durability: Literal["ephemeral", "memory", "disk", "fsync"]


@dataclass(slots=True)
class Result:
    """What came of it."""

    writes: int = 0
    records: int = 0
    write_ms: float = 0.0
    read_records: int = 0
    read_ms: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)

    def fields(self, load: Load) -> dict[str, Any]:
        """For a program."""
        return {
            "writers": load.writers,
            "batch": load.batch,
            "record_bytes": load.record_bytes,
            "durability": load.durability,
            "writes": self.writes,
            "records": self.records,
            "write_ms": round(self.write_ms),
            "writes_per_s": _rate(self.writes, self.write_ms),
            "records_per_s": _rate(self.records, self.write_ms),
            "bytes_per_s": _rate(self.records * load.record_bytes, self.write_ms),
            "latency_us": {f"p{share * 100:g}": self.latencies.percentile_us(share) for share in PERCENTILES}
            | {"max": self.latencies.longest_us},
            "read_records": self.read_records,
            "read_records_per_s": _rate(self.read_records, self.read_ms),
        }


def bench(
    *,
    duration: Annotated[str, Parameter(help="How long to write, like 500ms or 10s.")] = "3s",
    writers: Annotated[int, Parameter(help="Writers side by side, each with one write under way.")] = 16,
    batch: Annotated[int, Parameter(help="Records in one write.")] = 1,
    record_bytes: Annotated[int, Parameter(help="Bytes of data in one record.")] = 100,
    durability: Annotated[
        Literal["ephemeral", "memory", "disk", "fsync"], Parameter(help="The class of the topic.")
    ] = "disk",
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Put a small load on a server or a directory and show how it does.

    It writes to a topic of its own and removes it. Ends with 1 when something that was acked cannot be read back. For
    example:

        topics bench --duration 1s --writers 8 --batch 10
        topics bench --dir ./bench-data --durability fsync --duration 500ms
    """
    duration_ms = milliseconds("duration", duration)
    if not duration_ms:
        raise InvalidRequest(f"--duration={duration}: expected a duration like 500ms or 10s")
    for name, value, most in (
        ("writers", writers, WRITERS_MAX),
        ("batch", batch, 10_000),
        ("record-bytes", record_bytes, 1 << 20),
    ):
        if not 1 <= value <= most:
            raise InvalidRequest(f"--{name} must be 1 to {most}, not {value}")
    load = Load(duration_ms, writers, batch, record_bytes, durability)
    screen = Screen(json)
    with screen.progress(*COLUMNS) as progress:
        result = target.run(lambda client: _bench(client, load, progress), create=True)
    screen.show({"target": target.name} | result.fields(load), lambda: _shown(target.name, load, result))
    return Exit.OK if result.read_records == result.records else Exit.FAILED


async def _bench(client: Client, load: Load, progress: Progress) -> Result:
    topic = client.topic(f"bench-{secrets.token_hex(4)}")
    await topic.create(durability=load.durability)
    result = Result()
    try:
        await _write(topic, load, result, progress)
        await _read(topic, result, progress)
    finally:
        await topic.drop()
    return result


async def _write(topic: Topic, load: Load, result: Result, progress: Progress) -> None:
    clock = SystemClock()
    records: list[RecordFields] = [{"data": msgspec.Raw(b'"%b"' % (b"x" * max(load.record_bytes - 2, 0)))}] * load.batch
    task = progress.add_task("writing", total=load.duration_ms, said="")
    began_ns = clock.ticks_ns()
    end_ns = began_ns + load.duration_ms * NS_PER_MS

    async def writer() -> None:
        sent_ns = clock.ticks_ns()
        while sent_ns < end_ns:
            await topic.write_many(records)
            now_ns = clock.ticks_ns()
            result.latencies.add((now_ns - sent_ns) // 1000)
            result.writes += 1
            result.records += load.batch
            sent_ns = now_ns
            progress.update(task, completed=(now_ns - began_ns) // NS_PER_MS, said=counted(result.records, "record"))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(load.writers):
                group.create_task(writer())
    except* TopicsError as failed:
        # What stopped one of them stopped them all.
        raise failed.exceptions[0] from None
    result.write_ms = (clock.ticks_ns() - began_ns) / NS_PER_MS


async def _read(topic: Topic, result: Result, progress: Progress) -> None:
    clock = SystemClock()
    task = progress.add_task("reading", total=result.records, said="")
    began_ns = clock.ticks_ns()
    cursor, caught_up = 0, False
    while not caught_up:
        page = await topic.diff(cursor, 1000)
        cursor, caught_up = page.next_from_seq, page.caught_up
        result.read_records += page.count
        progress.update(task, completed=result.read_records, said=counted(result.read_records, "record"))
    result.read_ms = (clock.ticks_ns() - began_ns) / NS_PER_MS


def _rate(count: int, ms: float) -> int:
    return round(count * 1000 / ms) if ms else 0


def _shown(name: str, load: Load, result: Result) -> Group:
    said = result.fields(load)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    records = f"{counted(load.batch, 'record')} of {load.record_bytes} B a write"
    grid.add_row("load", Text(f"{name}: {counted(load.writers, 'writer')}, {records}, durability {load.durability}"))
    per_s = f"{said['records_per_s']:,} records/s, {said['writes_per_s']:,} writes/s, {sized(said['bytes_per_s'])}/s"
    grid.add_row("written", Text(f"{counted(result.records, 'record')}: {per_s}", style="bold green"))
    grid.add_row("answered in", "  ".join(f"{name} {_time(us)}" for name, us in said["latency_us"].items()))
    read = f"{counted(result.read_records, 'record')}: {said['read_records_per_s']:,} records/s"
    lost = result.records - result.read_records
    grid.add_row(
        "read back",
        Text(read + (f"; {lost:,} that were acked are not there" if lost else ""), style="red" if lost else "green"),
    )
    return Group(grid, Text(), _histogram(result.latencies))


def _histogram(latencies: Latencies) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", style="dim")
    table.add_column()
    table.add_column(justify="right")
    rows = latencies.by_power()
    most = max((count for _, count in rows), default=1)
    for upper_us, count in rows:
        table.add_row(f"< {_time(upper_us)}", Text("█" * -(-count * BAR_CHARS // most), style="cyan"), f"{count:,}")
    return table


def _time(us: int) -> str:
    return f"{us} µs" if us < 1000 else f"{us / 1000:.1f} ms"
