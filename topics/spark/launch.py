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
from shutil import which
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL: Final = "local[*]"
_CONNECT: Final = "sc://"
_JVM_ENDED: Final = "JAVA_GATEWAY_EXITED"
_QUIET: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # A text of somebody else's, such as a pipeline, names no file and no variable of this machine.
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}
"""What every session of ours has, unless it is told otherwise."""


class NotStarted(Exception):
    """Spark did not start, and why, in a line."""


class NoJava(NotStarted):
    """There is no Java to start it with."""


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
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkRuntimeError

    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != _JVM_ENDED:
            raise
        raise _why_java_ended() from error
    except FileNotFoundError as error:
        raise NotStarted(f"there is no {error.filename}: SPARK_HOME names a Spark that is there, or nothing") from error
    except Py4JJavaError as error:
        said = str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
        raise NotStarted(said.splitlines()[0]) from error


def _why_java_ended() -> NotStarted:
    """Where Spark looks for Java, there is none; or there is one that ended before it had begun."""
    home = environ.get("JAVA_HOME")
    java = which(f"{home}/bin/java" if home else "java")
    if java is None:
        where = f" at JAVA_HOME={home}" if home else ""
        return NoJava(f"Spark needs Java, and there is none{where}: install a JRE of version 17 or later")
    return NotStarted(
        f"Spark's Java, {java}, ended before it had begun, and said why just now: the usual reasons are a Java older "
        "than 17, a setting of Spark that it does not take, and an address of a cluster that is none"
    )
