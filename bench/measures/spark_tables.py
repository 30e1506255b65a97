"""Topics as tables of Spark, beside Parquet files with the same rows on the same cores; and the lake.

One local session does all of it. The server has a core of its own as everywhere, Spark has all of them: what the server
takes is missing to Spark, as it would be on a machine that runs both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from bench.figure import Figure, Unit, best
from bench.peers.process import HOST, LeftOut
from bench.peers.topics import Topics
from bench.rig import Step
from bench.sizes import Sizes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READ_FACTOR = 0.5
WRITE_FACTOR = 0.3
ARCHIVE_BAR = 200_000
MICRO_BATCH_MS = 300
PEER = "Spark on Parquet"
TASKS = 4
TEXT = "concat(md5(cast(id AS string)), md5(cast(-id AS string)))"
"""Different in each row, as events are: a file that repeats itself is a matter of its compression."""
ROWS = f"struct(id, concat('order-', id) AS name, 'x' AS fill, {TEXT} AS text) AS data"


def _rate(count: int, work: Callable[[], object]) -> float:
    begun = perf_counter()
    work()
    return count / (perf_counter() - begun)


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    try:
        from topics.spark.launch import session
    except ImportError as missing:
        raise LeftOut(f"Spark is not installed ({missing.name}): pip install 'topics[spark]'") from None
    with (
        Topics(directory / "data", "--max-staged-bytes", "4GiB") as server,
        session(config={"spark.driver.memory": "4g"}) as spark,
    ):
        return _Tables(spark, f"http://{HOST}:{server.port}", directory, sizes, step).figures()


class _Tables:
    def __init__(self, spark: SparkSession, url: str, directory: Path, sizes: Sizes, step: Step) -> None:
        from topics.spark.session import connect

        self._spark, self._url, self._place, self._sizes, self._step = spark, url, directory, sizes, step
        self._count = sizes.spark_records
        connect(spark, url)
        self._rows = spark.range(0, self._count, 1, TASKS).selectExpr(ROWS).persist()

    def figures(self) -> list[Figure]:
        writes, parquet_writes, reads, parquet_reads = [], [], [], []
        self._step(f"making {self._rows.count():,} rows")
        for number in range(self._sizes.rounds):
            self._step(f"writing {self._count:,} rows, round {number + 1}")
            topic, path = f"rows-{number}", str(self._place / f"rows-{number}")
            writes.append(_rate(self._count, partial(self._write, topic)))
            parquet_writes.append(_rate(self._count, partial(self._rows.write.parquet, path)))
            self._step("reading them")
            reads.append(_rate(self._count, partial(self._sum, self._read(topic))))
            parquet_reads.append(_rate(self._count, partial(self._sum, self._spark.read.parquet(path))))
        rates = Unit.RECORDS_PER_S
        return [
            _beside("batch read", reads, parquet_reads, READ_FACTOR),
            _beside("batch write, exactly once", writes, parquet_writes, WRITE_FACTOR),
            Figure(name="archive into a lake", value=self._archive(), unit=rates, bar=ARCHIVE_BAR),
            self._latency(),
        ]

    def _write(self, topic: str) -> None:
        self._rows.write.format("topics").option("topic", topic).mode("append").save()

    def _read(self, topic: str) -> DataFrame:
        return self._spark.read.format("topics").schema("data string").option("topic", topic).load()

    def _sum(self, rows: DataFrame) -> None:
        """All values of all rows are looked at, as text from a topic and as columns from a file."""
        found = rows.selectExpr("sum(hash(*)) AS sum").first()
        assert found is not None

    def _archive(self) -> float:
        from topics.spark.archive import archive

        self._step(f"archiving {self._count:,} rows")
        location = str(self._place / "lake")
        return _rate(
            self._count,
            lambda: archive(
                self._spark, location, "rows-0", url=self._url, available_now=True, rows_per_batch=self._count
            ).awaitTermination(),
        )

    def _latency(self) -> Figure:
        """From a write to the row that a query made of it, through a topic each way."""
        from topics import sync

        self._step("micro-batches")
        taken = []
        with sync.connect(self._url) as client:
            source, result = client.topic("asked"), client.topic("answered")
            result.create()
            source.write("warm up")
            stream = self._spark.readStream.format("topics").option("topic", "asked").load().select("data")
            query = (
                stream.writeStream.format("topics")
                .option("topic", "answered")
                .option("checkpointLocation", str(self._place / "checkpoint"))
                .start()
            )
            try:
                seen = 0
                for number in range(self._sizes.spark_batches + 1):
                    begun = perf_counter()
                    if number:
                        source.write(number)
                    while (page := result.diff(from_seq=seen, wait_ms=30_000)).count == 0:
                        pass
                    seen = page.next_from_seq
                    taken.append((perf_counter() - begun) * 1000)
            finally:
                query.stop()
        # The first one waits for the query to start.
        value = float(median(taken[1:]))
        return Figure(name="micro-batch, topic to topic, p50", value=value, unit=Unit.MS, bar=MICRO_BATCH_MS)


def _beside(name: str, ours: list[float], peers: list[float], factor: float) -> Figure:
    return Figure(
        name=name,
        value=best(ours),
        unit=Unit.RECORDS_PER_S,
        peer=best(peers),
        peer_name=PEER,
        factor=factor,
        spread=(min(ours), max(ours)),
        peer_spread=(min(peers), max(peers)),
    )
