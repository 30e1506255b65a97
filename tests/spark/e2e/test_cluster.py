"""A real cluster on this machine, and Spark Connect: everything as in a local session."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.spark.pipeline import deltas
from topics.client.connector import KEY_VARIABLE
from topics.pipelinemodel import PipelineCondition
from topics.sync import Client
from topics.testing.served import running_server

pytestmark = [
    pytest.mark.xdist_group("spark apart"),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java"),
]

KEY = "a-key-for-the-cluster"
JOB = Path(__file__).parent / "clusterjob.py"
TIMEOUT_S = 600
GROUP = [*(f'{{"id":{number},"text":"ä"}}' for number in range(3)), 3, 1997]
TOLD = {"found": [2000, 2000, 1, 2000], "group": GROUP, "lake": 2000, "failed": ""}
ROUTES = "routes:chat.messages"


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.endswith("_OPTS") or not name.startswith(("SPARK_", "PYSPARK_"))
    }
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "PYTHONPATH": root}
    return kept | python | {"SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def daemon(tmp_path: Path, name: str, pattern: str, *arguments: str) -> Iterator[str]:
    """A process of a cluster; what its log says when it is there, and its end with the block."""
    import pyspark

    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{name}",
        *arguments,
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        said = ""
        while (found := re.search(pattern, said)) is None:
            said = process.stdout.readline()
            assert said, f"{name} ended before it was there"
        # A full pipe would stop it.
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        try:
            yield found[1] if found.groups() else found[0]
        finally:
            process.kill()
            process.wait(TIMEOUT_S)
            drain.wait(TIMEOUT_S)
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stdout.close()


def submit(master: str, tmp_path: Path) -> dict[str, object]:
    with running_server(api_keys=KEY) as server:
        command = [sys.executable, str(JOB), master, server.url, KEY, str(tmp_path / "lake")]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert KEY not in done.stdout + done.stderr
    told: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return told


def run_pipelines(tmp_path: Path, *where: str) -> None:
    """Routes of a table, a topic out of a topic and a table out of a topic, by the command, with a shared directory."""
    copy = str(tmp_path / "copy")
    with running_server(api_keys=KEY) as server, server.client(KEY) as client:
        declare(client, tmp_path, copy)
        command = [
            *(sys.executable, "-m", "topics", "pipeline", "run", "--available-now", "--json"),
            *("--checkpoints", str(tmp_path / "positions"), "--url", server.url, *where),
        ]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment() | {KEY_VARIABLE: KEY},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-3000:]
        assert KEY not in said
        changes = [record.data["payload"]["id"] for record in client.topic("changes").diff(limit=100).records]
        assert sorted(changes) == [5, 6, 7]
        big = [record.data for at in range(2) for record in client.topic("big").diff(partition=at).records]
        assert sorted(big, key=lambda row: row["id"]) == [{"id": 2, "n": 20}, {"id": 3, "n": 30}]
        rows = DeltaTable(copy).to_pyarrow_table().to_pylist()
        assert sorted(row["n"] for row in rows) == [10, 20, 30]
        states = {state.pipeline: state for state in client.pipelines()}
        assert {state.condition for state in states.values()} == {PipelineCondition.DONE}
        report, routes = states["big"].report, states[ROUTES].report
        assert report is not None and (report.position, report.error_rows_total) == ("orders/0@4", 1)
        assert routes is not None and [each.records_total for each in routes.routes] == [3]


def declare(client: Client, tmp_path: Path, copy: str) -> None:
    location = deltas.make(tmp_path / "messages")
    rows = [{"id": number, "body": "ä", "n": number} for number in range(8)]
    write_deltalake(location, pa.Table.from_pylist(rows, schema=deltas.COLUMNS), mode="append")
    client.sql("CREATE TOPIC changes; CREATE TOPIC orders; CREATE TOPIC big PARTITIONS 2")
    client.sql(f"REGISTER TABLE chat.messages USING delta LOCATION '{location}' KEY (id)")
    client.sql("ALTER TOPIC changes ADD SOURCE chat.messages ON INSERT FROM SNAPSHOT WHERE (n > 4)")
    client.sql(
        "CREATE PIPELINE big AS INSERT INTO TOPIC big PARTITION BY (id) "
        "SELECT value.id, value.n FROM STREAM orders SCHEMA 'id bigint, n bigint' WHERE value.n > 10"
    )
    client.sql(
        f"CREATE PIPELINE copy AS MERGE INTO delta.'{copy}' KEY (id) "
        "FROM STREAM orders SCHEMA 'id bigint, n bigint' WHERE (tag IS NULL)"
    )
    for number in (1, 2, 3):
        client.topic("orders").write({"id": number, "n": number * 10})
    client.topic("orders").write({"id": "no number"}, tag="misfit")


def test_a_standalone_cluster(tmp_path: Path) -> None:
    loopback = ["--host", "127.0.0.1", "--webui-port", "0"]
    with daemon(tmp_path, "master.Master", r"at (spark://127\.0\.0\.1:\d+)", *loopback, "--port", "0") as master:
        joined = "Successfully registered with master"
        worker = [*loopback, "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), master]
        with daemon(tmp_path, "worker.Worker", joined, *worker), daemon(tmp_path, "worker.Worker", joined, *worker):
            told = submit(master, tmp_path)
            run_pipelines(tmp_path, "--master", master, "--conf", "spark.executor.memory=512m")
    assert told == TOLD


def test_spark_connect(tmp_path: Path) -> None:
    """A client that has no JVM, and a server that has never heard of topics before the client comes."""
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    settings = ["--conf", "spark.connect.grpc.binding.port=0", "--conf", "spark.ui.enabled=false", "spark-internal"]
    with daemon(tmp_path, "SparkSubmit", r"Spark Connect server started at: \S*?:(\d+)", *service, *settings) as port:
        told = submit(f"sc://127.0.0.1:{port}", tmp_path)
        run_pipelines(tmp_path, "--remote", f"sc://127.0.0.1:{port}")
    assert told == TOLD
