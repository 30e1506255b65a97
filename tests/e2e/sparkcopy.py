"""A program that copies a topic into another with a stream of Spark, and kills what it is told to on its way.

    python -m tests.e2e.sparkcopy URL DIRECTORY ROWS_PER_TASK

In the directory are `kills.json`, a list of [batch, moment, victim], each done once over all runs, and the pid of the
server. It ends with 0 when everything is copied. What is killed: the Python process that comes to the moment
(`worker`), the JVM of the driver (`driver`), or the server.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from topics.spark.server import Server
from topics.spark.source import TopicsSource

BEFORE_STAGE, AFTER_STAGE = "before stage", "after stage"
BEFORE_PUBLISH, AFTER_PUBLISH = "before publish", "after publish"
BATCH_ROWS = 1000
RUNS_MAX = 20


class KillingServer(Server):
    """Comes to the moments that are told in `kills.json`."""

    def __init__(self, url: str, directory: str) -> None:
        super().__init__(url, "", 60_000)
        self._directory = directory

    def stage(self, stage: str, topic: str, partition: int, at: int, records: Any) -> None:
        context = TaskContext.get()
        batch = int((context and context.getLocalProperty("streaming.sql.batchId")) or -1)
        self._reach(batch, BEFORE_STAGE)
        super().stage(stage, topic, partition, at, records)
        self._reach(batch, AFTER_STAGE)

    def publish(self, stages: list[str], producer_id: str, epoch: int) -> bool:
        self._reach(epoch, BEFORE_PUBLISH)
        deduped = super().publish(stages, producer_id, epoch)
        self._reach(epoch, AFTER_PUBLISH)
        return deduped

    def _reach(self, batch: int, moment: str) -> None:
        directory = Path(self._directory)
        for number, (its_batch, its_moment, victim) in enumerate(json.loads((directory / "kills.json").read_text())):
            if (its_batch, its_moment) != (batch, moment):
                continue
            try:
                (directory / f"killed-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            pid = os.getpid() if victim == "worker" else int((directory / f"{victim}.pid").read_text())
            os.kill(pid, signal.SIGKILL)
            return


class KillingSource(TopicsSource):
    @classmethod
    def name(cls) -> str:
        return "killing"

    def _server(self) -> Server:
        return KillingServer(self.options["url"], self.options["directory"])


def main(url: str, directory: str, rows_per_task: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    assert spark.sparkContext._jvm is not None
    pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    (Path(directory) / "driver.pid").write_text(str(pid))
    spark.dataSource.register(KillingSource)
    frame = spark.readStream.format("topics").option("url", url).option("topic", "from").option("onGap", "fail")
    frame = frame.option("maxRowsPerTrigger", str(BATCH_ROWS)).option("rowsPerTask", rows_per_task)
    writer = frame.load().select("data", "tag").writeStream.format("killing").option("url", url)
    writer = writer.option("topic", "to").option("directory", directory)
    writer = writer.option("checkpointLocation", f"{directory}/checkpoint").trigger(availableNow=True)
    for _ in range(RUNS_MAX):
        try:
            writer.start().awaitTermination()
            break
        except StreamingQueryException:
            # A commit that was killed ends the query; it goes on from its checkpoint.
            continue
        except Exception as error:
            # The driver is gone. Leaving in the usual way would wait for it.
            sys.stderr.write(f"{error}\n")
            sys.stderr.flush()
            os._exit(1)
    else:
        sys.exit(2)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
