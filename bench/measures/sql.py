"""SELECT over a topic beside DuckDB over the same rows in a Parquet file, a thread each, from text to rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet

from bench.bodies import bodies
from bench.figure import Figure, Unit, middle
from bench.rig import Step, running, write
from bench.sizes import BATCH, Sizes
from topics import settings
from topics.engine.host import Host
from topics.engine.opening import record_limits
from topics.sqlengine.access import FullAccess
from topics.sqlengine.executor import Executor

TOPIC = "orders"
FACTOR = 2.0
PEER = "DuckDB on Parquet"
PART_RECORDS = 100_000
REPEATS = 5
QUESTIONS = {
    "count(*)": ("SELECT count(*) FROM {t}", FACTOR, "both know it without reading: the log, and the file's footer"),
    "count(*) where seq > half": ("SELECT count(*) FROM {t} WHERE seq > {half}", FACTOR, ""),
    "max of a JSON field": ("SELECT max(data->>'id') FROM {t}", FACTOR, "bound by parsing JSON on both sides"),
    "sum of seqs": ("SELECT sum(seq) FROM {t}", FACTOR, ""),
}


async def _asked(executor: Executor, text: str) -> float:
    began = perf_counter()
    (result,) = await executor.run(text, (), FullAccess())
    result.encode()
    return (perf_counter() - began) * 1e3


def _timed(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return (perf_counter() - began) * 1e3


async def _save(executor: Executor, path: Path, total: int) -> None:
    """The same rows as a file."""
    parts = []
    for start in range(0, total, PART_RECORDS):
        text = f"SELECT seq, ts, tag, data FROM {TOPIC} WHERE seq > {start} AND seq <= {start + PART_RECORDS}"
        (result,) = await executor.run(text, (), FullAccess())
        parts.append(result.table)
    parquet.write_table(pa.concat_tables(parts), path)


async def _measure(host: Host, sizes: Sizes, directory: Path, step: Step) -> dict[str, tuple[list[float], list[float]]]:
    total = sizes.read_batches * BATCH
    await write(host, TOPIC, bodies(sizes.read_batches))
    await host.checkpoint()
    chosen = settings.Settings(sql_rows_max=PART_RECORDS)
    executor = Executor(host, chosen, record_limits(chosen))
    file = directory / "rows.parquet"
    await _save(executor, file, total)
    peer = duckdb.connect(config={"threads": 1})
    found: dict[str, tuple[list[float], list[float]]] = {}
    for number in range(sizes.rounds):
        step(f"asking, round {number + 1}")
        for name, (text, _, _) in QUESTIONS.items():
            ours, theirs = found.setdefault(name, ([], []))
            half = total // 2
            own_text, peer_text = text.format(t=TOPIC, half=half), text.format(t=f"'{file}'", half=half)
            ours.append(min([await _asked(executor, own_text) for _ in range(REPEATS)]))
            theirs.append(min(_timed(lambda: peer.execute(peer_text).fetchall()) for _ in range(REPEATS)))  # noqa: B023
    peer.close()
    await executor.close()
    return found


async def _run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    step("writing what is asked")
    async with running(directory / "own") as host:
        found = await _measure(host, sizes, directory, step)
    return [
        Figure(
            name=f"SELECT {name}, {sizes.read_batches * BATCH:,} records",
            value=middle(ours),
            unit=Unit.MS,
            peer=middle(theirs),
            peer_name=PEER,
            factor=QUESTIONS[name][1],
            note=QUESTIONS[name][2],
        )
        for name, (ours, theirs) in found.items()
    ]


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    return asyncio.run(_run(sizes, directory, step))
