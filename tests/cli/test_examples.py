"""Every example of every `--help` runs, as it stands, in a shell."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree, which

import pytest

import topics
from tests.cli.rig import TIMEOUT_S, clean_environment
from tests.e2e.served import Caller, Served, served
from tests.spark.lakes import filled
from topics.cdc.opening import opened
from topics.cli.reference import commands, examples

ADDRESS = "http://127.0.0.1:4000"
SPARK = {"lake archive", "export", "import", "redrive", "pipeline run"}
"""Each starts a Spark of its own; one at a time."""
SPARK_TIMEOUT_S = 400
SPARK_MARKS = (
    pytest.mark.xdist_group("spark apart"),
    pytest.mark.timeout(900),
    pytest.mark.skipif(which("java") is None, reason="no java"),
)
EXAMPLES = [
    pytest.param(path, examples(command), id=path, marks=SPARK_MARKS if path in SPARK else ())
    for path, command in commands()
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Served]]:
    """A server, and a directory of data that nobody has open."""
    here = tmp_path_factory.mktemp("examples")
    with topics.sync.open(here / "elsewhere") as client:
        client.topic("orders").write({"sku": "A1"})
    with served(here / "data") as server:
        yield here, server


@pytest.fixture
def place(world: tuple[Path, Served], tmp_path: Path) -> Path:
    """A directory with what the examples talk of: ./data is the server's."""
    here, server = world
    with topics.sync.connect(server.url) as client:
        client.topic("orders").write_many([{"data": number, "tag": f"order-{number}"} for number in range(4)])
        client.topic("payments").write(1)
        client.topic("copy").write(1)
        client.topic("invoices").drop()
        client.route("orders", "audit")
        client.topic("orders").group("billing").reset("earliest")
        jobs(client)
        messages(client)
    filled(tmp_path)
    (tmp_path / "orders.csv").write_text("customer,cents\na,5\nb,7\n")
    (tmp_path / "tasks.py").write_text("def handle(job):\n    pass\n")
    (tmp_path / "data").symlink_to(here / "data")
    copytree(here / "elsewhere", tmp_path / "elsewhere")
    return tmp_path


def declared(url: str, place: Path) -> None:
    """A captured table of SQLite with a route, a registered directory of files, and a pipeline that somebody runs."""
    database = sqlite3.connect(place / "chat.db")
    database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)")
    database.close()
    with opened(str(place / "chat.db")) as outbox:
        outbox.install("messages")
    with topics.sync.connect(url) as client:
        client.table("chat.messages").put("sqlite", str(place / "chat.db"), source="messages", key=["id"])
        client.table("clicks").put("csv", str(place / "clicks"))
        client.topic("news").create()
        client.pipeline("big_orders").put("INSERT INTO TOPIC alerts SELECT tag FROM STREAM orders")
        report = topics.PipelineReport(runner="example", state=topics.RunState.STOPPED)
        client.pipeline("big_orders").report(report, [topics.LogLine(1, "info", "began")])


def jobs(client: topics.sync.Client) -> None:
    """Queues, with jobs that were claimed by hand and one that is dead."""
    client.queue("mail").create()
    client.topic("jobs").drop()
    queue = client.queue("jobs", node="topics-queue")
    queue.create(dead_letter="jobs.dead")
    queue.put_many({"data": number} for number in range(1, 5))
    assert [job.seq for job in queue.claim(3)] == [1, 2, 3]
    client.topic("jobs.dead").write("failed", meta={"$dead_letter_from": "jobs"})


def messages(client: topics.sync.Client) -> None:
    """A heap with some to pop and one that is dead, and none of the name that an example makes."""
    for name in ("tasks", "tasks.dlq", "tasks2"):
        client.topic(name).drop()
    heap = client.heap("tasks")
    heap.create()
    dead = heap.enqueue("poison")
    heap.move_to_dlq(dead.message_id, reason="by hand")
    heap.enqueue_many([{"payload": number, "priority": number} for number in range(4)])


def accounts(url: str, path: str) -> None:
    """A key and a user of the names that the examples use, unless the example is to make them."""
    with Caller(url) as caller:
        for key in caller.ask("GET", "/v1/keys")[1]["keys"]:
            caller.ask("DELETE", f"/v1/keys/{key['id']}")
        caller.ask("DELETE", "/v1/users/ada@example.org")
        if path != "user add":
            caller.ask("POST", "/v1/users", {"email": "ada@example.org"})
        if path != "key create":
            caller.ask("POST", "/v1/keys", {"name": "ci", "scopes": ["read"]})


@pytest.mark.parametrize(("path", "lines"), EXAMPLES)
def test_the_example_runs(world: tuple[Path, Served], place: Path, path: str, lines: list[str]) -> None:
    url = world[1].url
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = clean_environment() | {"PATH": search, "TOPICS_URL": url, "TOPICS_PORT": "0", "TOPICS_GRPC_PORT": "0"}
    if path.startswith(("table", "pipeline", "cdc")):
        declared(url, place)
    if path.startswith(("key", "user")):
        accounts(url, path)
    if path == "producer ls":
        with topics.sync.connect(url) as client:
            client.topic("orders").write("by a named producer", producer=("nightly-import", 1, 0))
    if path == "restore":
        with topics.sync.connect(url) as client:
            client.backup(place / "topics.tar.gz", gzip=1)
    for line in lines:
        line = line.replace(ADDRESS, url).replace("--port 4000", "--port 0")
        if line.startswith("topics serve"):
            serve(line, place, environment)
        else:
            run(line, place, environment, SPARK_TIMEOUT_S if path in SPARK else TIMEOUT_S)


def run(line: str, place: Path, environment: dict[str, str], timeout_s: int) -> None:
    command = ["sh", "-ec", line]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert done.stdout or ">" in line
    assert "Traceback" not in done.stderr


def serve(line: str, place: Path, environment: dict[str, str]) -> None:
    """Until it is ready, and then to its end."""
    command = ["sh", "-ec", f"exec {line}"]
    process = subprocess.Popen(command, cwd=place, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        said = ""
        while '"event":"ready"' not in said:
            said = process.stderr.readline()
            assert said, "it ended before it was ready"
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stderr.close()
