"""A Spark session for a command: on this machine, on a cluster, or of a Spark Connect server.

    local[*]               this machine, all cores          spark://host:7077   a standalone cluster
    sc://host:15002        Spark Connect                    yarn, k8s://…       as Spark knows them

The key of the server is not in the session's config, which Spark shows: the sources carry it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import environ
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
_CONNECT: Final = "sc://"
_QUIET: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # A text of somebody else's, such as a pipeline, names no file and no variable of this machine.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}
"""What every session of ours has, unless it is told otherwise."""


class NoJava(Exception):
    """Spark did not start, and the usual reason is that there is no Java."""


@contextmanager
def session(
    master: str = LOCAL, config: Mapping[str, str] | None = None, name: str = "topics"
) -> Iterator[SparkSession]:
    """A session that ends with the block. Workers on this machine run the Python that runs this."""
    from pyspark.sql import SparkSession

    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Spark chooses an address of the machine otherwise, and a laptop that changes its network loses it.
    if master.startswith("local"):
        environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    builder = builder.remote(master) if master.startswith(_CONNECT) else builder.master(master)
    settings = {**ALWAYS, **({} if master.startswith(_CONNECT) else _QUIET), **(config or {})}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = _started(builder)
    try:
        if not master.startswith(_CONNECT):
            spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _started(builder: SparkSession.Builder) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, FileNotFoundError) as error:
        raise NoJava(str(error)) from error
