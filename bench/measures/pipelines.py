"""Changes of a Delta table through one route into a topic: how many a second, how soon, and at what size of the table.

One local session over all cores runs the runner itself, `topics serve` has one of them. The table is written by
delta-rs in this process, before the clock runs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any

from bench.figure import Figure, Unit, best
from bench.peers.process import HOST, LeftOut
from bench.peers.topics import Topics
from bench.rig import Step
from bench.sizes import Sizes

if TYPE_CHECKING:
    from topics.spark.pipeline.runner import Runner
    from topics.sync import Client

CHANGES_BAR = 100_000
COMMIT_TO_TOPIC_MS = 1000
GROWTH_TIMES = 1.5
LOOK_S = 0.01


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    try:
        from topics.spark.launch import session
    except ImportError as missing:
        raise LeftOut(f"Spark is not installed ({missing.name}): pip install 'topics[spark]'") from None
    from topics import sync
    from topics.spark.pipeline.runner import Runner

    with ExitStack() as held:
        server = held.enter_context(Topics(directory / "data", "--max-staged-bytes", "4GiB"))
        spark = held.enter_context(session())
        url = f"http://{HOST}:{server.port}"
        client = held.enter_context(sync.connect(url))
        small = _Table(client, directory / "small", "small")
        large = _Table(client, directory / "large", "large")
        step(f"a table of {sizes.spark_records:,} rows")
        large.append(sizes.spark_records)
        small.append(1)
        runner = Runner(spark, url=url, checkpoints=str(directory / "positions"))
        for table in (small, large):
            table.declare()
        rates, latencies = [], {}
        for table in (small, large):
            step(f"one row at a time, {table.name}")
            taken = [_arrival(runner, table, 1) for _ in range(sizes.spark_batches + 3)]
            # The first ones wait for the query, and for Java to get to know it.
            latencies[table.name] = float(median(taken[3:])) * 1000
        for number in range(sizes.rounds):
            step(f"{sizes.spark_records:,} changes at once, round {number + 1}")
            rates.append(sizes.spark_records / _arrival(runner, small, sizes.spark_records))
        for job in runner.jobs.values():
            job.end()
    growth = latencies["large"] / latencies["small"]
    return [
        Figure(
            name="changes through one route",
            value=best(rates),
            unit=Unit.RECORDS_PER_S,
            bar=CHANGES_BAR,
            spread=(min(rates), max(rates)),
        ),
        Figure(name="commit to topic, p50", value=latencies["small"], unit=Unit.MS, bar=COMMIT_TO_TOPIC_MS),
        Figure(name=f"the same on a table of {sizes.spark_records:,}", value=growth, unit=Unit.TIMES, bar=GROWTH_TIMES),
    ]


class _Table:
    """A Delta table and the topic that its inserts go to."""

    def __init__(self, client: Client, path: Path, name: str) -> None:
        import pyarrow as pa
        from deltalake import DeltaTable, Schema

        self.name = name
        self._columns: Any = pa.schema([("id", pa.int64()), ("body", pa.string())])
        self._path = str(path)
        self._next_id = 0
        self._client = client
        feed = {"delta.enableChangeDataFeed": "true"}
        DeltaTable.create(self._path, Schema.from_arrow(self._columns), configuration=feed)

    def declare(self) -> None:
        self._client.sql(f"CREATE TOPIC {self.name}")
        self._client.sql(f"REGISTER TABLE {self.name} USING delta LOCATION '{self._path}' KEY (id)")
        self._client.sql(f"ALTER TOPIC {self.name} ADD SOURCE {self.name} ON INSERT WITH (payload = 'full')")

    def append(self, count: int) -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        ids = range(self._next_id, self._next_id + count)
        self._next_id += count
        rows = pa.table({"id": ids, "body": [f"message {id} of somebody" for id in ids]}, schema=self._columns)
        write_deltalake(self._path, rows, mode="append")

    def arrived(self) -> int:
        return self._client.topic(self.name).state(touch=False).head_seq


def _arrival(runner: Runner, table: _Table, count: int) -> float:
    """The seconds from a commit of so many rows until all of them are in the topic."""
    wanted = table.arrived() + count
    table.append(count)
    begun = perf_counter()
    _until(runner, lambda: table.arrived() >= wanted)
    return perf_counter() - begun


def _until(runner: Runner, there: Callable[[], bool]) -> None:
    while True:
        runner.turn()
        if there():
            return
        sleep(LOOK_S)
