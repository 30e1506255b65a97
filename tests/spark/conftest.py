"""One Spark session for the whole run: it takes seconds to start and most of the memory there is.

Tests of this directory are one group, so that of several workers only one has the session (`--dist loadgroup`); those,
here and elsewhere, whose Spark runs in processes of its own are another, `spark apart`: one such at a time. Tasks may
fail twice before their job does, as on a cluster, and the event log is kept for tests of what must not be in it.
"""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from topics.spark.server import Server
    from topics.testing.served import RunningServer

HERE = Path(__file__).parent
SPARK_TIMEOUT_S = 900
SPARK_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


# Before xdist looks at the groups, which it does in this hook as well.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    without_java = pytest.mark.skip(reason="no java (Debian: apt install openjdk-17-jre-headless)")
    for item in items:
        if HERE in item.path.parents:
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group("spark"))
            # What Spark and its libraries warn about is theirs to mend.
            item.add_marker(pytest.mark.filterwarnings("default"))
            # The first test pays for the start of the session, on a machine that may be busy.
            item.add_marker(pytest.mark.timeout(SPARK_TIMEOUT_S))
            if "spark" in getattr(item, "fixturenames", ()) and shutil.which("java") is None:
                item.add_marker(without_java)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Spark cuts these loggers off from the others. pytest would put its own handler on such a one, where it gets
    Spark's format: from then on, all that tests log would be JSON."""
    try:
        yield
    finally:
        for name in SPARK_LOGGERS:
            if name in logging.root.manager.loggerDict:
                logging.getLogger(name).propagate = True


@pytest.fixture(scope="session")
def spark_event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the session writes what its UI would show."""
    return tmp_path_factory.mktemp("spark-events")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, spark_event_log: Path) -> Iterator[SparkSession]:
    """A session with two cores and three attempts a task."""
    from pyspark.sql import SparkSession

    patch = pytest.MonkeyPatch()
    patch.setenv("PYSPARK_PYTHON", sys.executable)
    patch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("topics-tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.eventLog.dir", spark_event_log.as_uri())
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.streaming.stopTimeout", "60s")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark-warehouse")))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    patch.undo()


@pytest.fixture
def spark_server(topics_server: RunningServer) -> Iterator[Server]:
    """`topics_server` as the tasks and drivers of Spark see it."""
    from topics.spark.server import Server

    server = Server(topics_server.url, "", 10_000)
    yield server
    server.close()
