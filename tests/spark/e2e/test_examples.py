"""`examples/spark` as it stands: scripts and the notebook in one session, the pipeline by its own command."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from topics.sync import Client
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples" / "spark"
ORDERS = [{"country": "DE", "cents": 500}, {"country": "FR", "cents": 20_000}, {"country": "DE", "cents": 250}]


@pytest.fixture
def orders(topics_client: Client) -> Client:
    topics_client.topic("orders").write_many([{"data": order} for order in ORDERS])
    return topics_client


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(client: Client, topic: str) -> list[Any]:
    return [record.data for record in client.topic(topic).diff().records]


def test_batch(spark: SparkSession, topics_server: RunningServer, orders: Client) -> None:
    for _ in range(2):
        example("batch").main(spark, topics_server.url)
    assert data(orders, "orders.sums") == [{"country": "DE", "cents": 750}, {"country": "FR", "cents": 20_000}]


def test_statements(spark: SparkSession, topics_server: RunningServer, orders: Client) -> None:
    for _ in range(2):
        example("statements").main(spark, topics_server.url)
    assert data(orders, "orders.totals") == [[{"country": "DE", "cents": 750.0}, {"country": "FR", "cents": 20_000.0}]]
    assert orders.topic("orders").group("totals").state().committed_seq == 3


def test_streaming(spark: SparkSession, topics_server: RunningServer, orders: Client, tmp_path: Path) -> None:
    example("streaming").main(spark, topics_server.url, str(tmp_path / "checkpoint"), available_now=True)
    assert data(orders, "orders.large") == [{"country": "FR", "cents": 20_000}]


def test_history(spark: SparkSession, topics_server: RunningServer, orders: Client, tmp_path: Path) -> None:
    location = str(tmp_path / "lake")
    assert example("history").main(spark, topics_server.url, location).count() == 3
    orders.topic("orders").delete(before_seq=3)
    assert example("history").main(spark, topics_server.url, location).count() == 3


def test_the_notebook(
    spark: SparkSession, topics_server: RunningServer, orders: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICS_URL", topics_server.url)
    cells = json.loads((EXAMPLES / "orders.ipynb").read_text())["cells"]
    names: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert cells[-1]["source"] == ["session.lag()"], "which a notebook shows like this"
    shown = names["session"].lag()._repr_html_()
    assert "orders" in shown and "<svg" in shown


@pytest.mark.xdist_group("spark apart")
def test_the_pipeline(topics_server: RunningServer, orders: Client, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no java")
    place = shutil.copytree(EXAMPLES / "pipeline", tmp_path / "pipeline")
    spec = place / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/topics-pipeline", (tmp_path / "storage").as_uri()))
    environment = os.environ | {
        "TOPICS_URL": topics_server.url,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [str(Path(sys.executable).parent / "spark-pipelines"), "run"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert data(orders, "orders.expensive") == [{"seq": 2, "country": "FR", "cents": 20_000}]
