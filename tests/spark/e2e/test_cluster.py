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

import pytest

from topics.testing.served import running_server

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="no java")

KEY = "a-key-for-the-cluster"
JOB = Path(__file__).parent / "clusterjob.py"
TIMEOUT_S = 600
GROUP = [*(f'{{"id":{number},"text":"ä"}}' for number in range(3)), 3, 1997]
TOLD = {"found": [2000, 2000, 1, 2000], "group": GROUP, "lake": 2000, "failed": ""}


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[3])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
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


def test_a_standalone_cluster(tmp_path: Path) -> None:
    loopback = ["--host", "127.0.0.1", "--webui-port", "0"]
    with daemon(tmp_path, "master.Master", r"at (spark://127\.0\.0\.1:\d+)", *loopback, "--port", "0") as master:
        joined = "Successfully registered with master"
        worker = [*loopback, "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work"), master]
        with daemon(tmp_path, "worker.Worker", joined, *worker), daemon(tmp_path, "worker.Worker", joined, *worker):
            told = submit(master, tmp_path)
    assert told == TOLD


def test_spark_connect(tmp_path: Path) -> None:
    """A client that has no JVM, and a server that has never heard of topics before the client comes."""
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"]
    settings = ["--conf", "spark.connect.grpc.binding.port=0", "--conf", "spark.ui.enabled=false", "spark-internal"]
    with daemon(tmp_path, "SparkSubmit", r"Spark Connect server started at: \S*?:(\d+)", *service, *settings) as port:
        told = submit(f"sc://127.0.0.1:{port}", tmp_path)
    assert told == TOLD
