from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.rig import ROOT, TIMEOUT_S, Command, clean_environment, spawn
from tests.e2e.served import Served
from topics import sync
from topics.cli import run

TASKS = """
import asyncio, pathlib, threading


def handle(job):
    print("did", job.data, flush=True)
    if job.data == "bad":
        raise ValueError("no good")


async def patient(job):
    print("begun", job.data, flush=True)
    await asyncio.to_thread(pathlib.Path("go").read_text)
    print("done", flush=True)


async def endless(job):
    print("begun", job.data, flush=True)
    await asyncio.Event().wait()


def stuck(job):
    print("begun", job.data, flush=True)
    threading.Event().wait()


class Shop:
    sell = staticmethod(handle)


NUMBER = 17
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def put(server: Served, topic: str, *datas: object) -> None:
    with sync.connect(server.url) as client:
        client.queue(topic).create()
        client.queue(topic).put_many({"data": data} for data in datas)


def ready(server: Served, topic: str) -> tuple[int, int]:
    with sync.connect(server.url) as client:
        state = client.queue(topic).state().queue
        assert state is not None
        return state.ready, state.in_flight


def test_a_function_does_the_jobs(server: Served, topic: str, here: Path) -> None:
    put(server, topic, "one", "bad", "two")
    for name in ("tasks:handle", "tasks:Shop.sell"):
        put(server, topic, "one", "bad", "two")
        said = spawn("work", name, "-q", topic, "--until-empty", "--retry", "1h", "--url", server.url, cwd=here)
        assert said.returncode == 0 and "did one\n" in said.stdout
        assert said.stdout.endswith('"lost":0}\n') and '"failed":' in said.stdout
        assert "works on" in said.stderr and "ValueError: no good" in said.stderr


def test_it_works_on_a_directory(here: Path) -> None:
    with sync.open(here / "data") as client:
        client.queue("jobs").put_many({"data": data} for data in ("one", "two"))
    said = spawn("work", "tasks:handle", "--queue", "jobs", "--until-empty", "--dir", here / "data", cwd=here)
    assert said.stdout == 'did one\ndid two\n{"queue":"jobs","done":2,"failed":0,"lost":0}\n'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tasks", "expected module:function"),
        ("task:handle", 'there is no module "task" here'),
        ("tasks:handel", "did you mean handle?"),
        ("tasks:NUMBER", "is a int, not a function"),
    ],
)
def test_what_is_no_function_is_said(here: Path, name: str, expected: str) -> None:
    said = spawn("work", name, "--queue", "jobs", cwd=here)
    assert (said.returncode, said.stdout) == (2, "") and expected in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_a_queue_that_is_not_there_is_said(
    topics: Command, topic: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics.good("topic", "create", topic)
    monkeypatch.chdir(here)
    said = topics("work", "tasks:handle", "--queue", "missing")
    assert said.code == 3 and '"missing" does not exist' in said.err


@contextmanager
def working(server: Served, topic: str, here: Path, name: str, *flags: str) -> Iterator[subprocess.Popen[str]]:
    """A worker that has begun a job."""
    command = [sys.executable, "-m", "topics", "work", f"tasks:{name}", "--queue", topic, "--url", server.url, *flags]
    environment = clean_environment() | {"PYTHONPATH": f"{ROOT}{os.pathsep}{here}"}
    process = subprocess.Popen(
        command, cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("begun")
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TIMEOUT_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_a_job_finish(server: Served, topic: str, here: Path, number: signal.Signals) -> None:
    put(server, topic, 1, 2)
    os.mkfifo(here / "go")
    with working(server, topic, here, "patient") as process:
        assert process.stderr is not None
        process.send_signal(number)
        while "stopping" not in (said := process.stderr.readline()):
            assert said, "it ended"
        (here / "go").write_text("go on")
        out, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, errors
    assert out == f'done\n{{"queue":"{topic}","done":1,"failed":0,"lost":0}}\n'
    assert ready(server, topic) == (1, 0)


@pytest.mark.parametrize("name", ["endless", "stuck"])
def test_a_job_that_takes_too_long_is_given_back(server: Served, topic: str, here: Path, name: str) -> None:
    put(server, topic, 1)
    with working(server, topic, here, name, "--shutdown", "1ms") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    assert ready(server, topic) == (1, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_gives_jobs_back(
    server: Served, topic: str, here: Path, number: signal.Signals, code: int
) -> None:
    put(server, topic, 1)
    with working(server, topic, here, "endless") as process:
        assert process.stderr is not None
        process.send_signal(number)
        while "stopping" not in (said := process.stderr.readline()):
            assert said, "it ended"
        process.send_signal(number)
        errors = process.communicate(timeout=TIMEOUT_S)[1]
    assert process.returncode == code and "Traceback" not in errors
    assert ready(server, topic) == (1, 0)


def test_a_module_that_misses_another_one_says_where(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "half_tasks.py").write_text("import nothing_of_the_kind\n\n\ndef handle(job):\n    pass\n")
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(ModuleNotFoundError, match="nothing_of_the_kind") as missed:
        run(["work", "half_tasks:handle", "--queue", "jobs"])
    assert missed.traceback[-1].path == here / "half_tasks.py", "whose import it was"


def test_whoever_logs_for_themselves_is_left_to_it(
    topics: Command, topic: str, here: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    topics.good("queue", "put", topic, '"bad"')
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "tasks", raising=False)
    said = topics("work", "tasks:handle", "--queue", topic, "--until-empty", "--retry", "1h")
    assert said.code == 0 and '"done":0,"failed":1' in said.out
    assert said.err.count("\n") == 1 and "works on" in said.err
    assert "it is tried again in" in caplog.text and "ValueError: no good" in caplog.text
