from __future__ import annotations

from pathlib import Path

import pytest

import topics as sdk
from tests.cli.rig import Command
from tests.cli.standin import somebody_says
from tests.e2e.served import Served

ROUTE = sdk.RouteProgress(topic="news", operation="insert", position="version 17", records_total=40, lag_versions=2)
REPORT = sdk.PipelineReport(
    runner="host-1/4711",
    state=sdk.RunState.RETRYING,
    position="orders/0@1200",
    lag_records=1500,
    lag_ms=2500,
    input_rows_per_second=1000.0,
    output_rows_per_second=12.5,
    input_rows_total=50_000,
    error_rows_total=3,
    batch_id=9,
    batch_ms=210,
    restarts=2,
    last_error="it went \x1b[31mwrong",
    last_error_ts=1_794_700_000_000,
    spark_ui="http://localhost:4040",
    routes=(ROUTE,),
)


def declare(topics: Command, topic: str) -> str:
    topics.good("topic", "create", topic)
    definition = f'INSERT INTO TOPIC "{topic}-out" SELECT tag FROM STREAM "{topic}"'
    topics.good("sql", "-c", f'CREATE PIPELINE "{topic}" AS {definition}')
    return topic


def test_a_pipeline_is_listed_paused_resumed_and_dropped(topics: Command, topic: str) -> None:
    name = declare(topics, topic)
    (listed,) = topics.good("pipeline", "ls", name)
    assert (listed["pipeline"], listed["kind"], listed["condition"]) == (name, "insert", "waiting")
    assert topics.good("pipeline", "status", name) == [listed]
    (paused,) = topics.good("pipeline", "pause", name)
    assert paused["paused"] and paused["condition"] == "paused"
    (resumed,) = topics.good("pipeline", "resume", name)
    assert not resumed["paused"]
    assert topics.good("pipeline", "logs", name) == []
    assert topics.good("pipeline", "drop", name) == [{"pipeline": name, "deleted": True}]
    said = topics("pipeline", "status", name)
    assert said.code == 3 and "`topics pipeline ls` lists those there are" in said.err
    assert topics("pipeline", "drop").code == 2


def test_for_people(topics: Command, topic: str) -> None:
    name = declare(topics, topic)
    said = topics("pipeline", "ls", name, "--no-json")
    assert name in said.out and "waiting" in said.out and f"{topic}-out" in said.out
    said = topics("pipeline", "status", name, "--no-json")
    assert "no runner has taken it yet" in said.out and "last report" in said.out
    assert topics("pipeline", "pause", name, "--no-json").out.strip() == f"{name} is paused"
    assert topics("pipeline", "resume", name, "--no-json").out.strip() == f"{name} goes on"
    assert topics("pipeline", "drop", name, "--no-json").out.strip() == f"dropped {name}"
    assert "CREATE PIPELINE" in topics("pipeline", "ls", "zzz-nothing", "--no-json").out


@pytest.fixture
def reported(topics: Command, topic: str, server: Served) -> str:
    """A pipeline that somebody runs, on whatever the command line works on."""
    name = declare(topics, topic)
    lines = [sdk.LogLine(1_794_700_000_000, "info", "began"), sdk.LogLine(1_794_700_000_001, "error", "a\tb")]
    place = topics.where[1]
    client = sdk.sync.open(place) if topics.where[0] == "--dir" else sdk.sync.connect(place)
    with client:
        client.pipeline(name).report(REPORT, lines)
    return name


def test_all_that_a_runner_said_is_shown(topics: Command, reported: str) -> None:
    said = topics("pipeline", "status", reported, "--no-json")
    assert said.code == 0
    shown = " ".join(said.out.split())
    for text in (
        "retrying",
        "host-1/4711",
        "position orders/0@1200",
        "lag 1,500 records, 2.5 s",
        "1,000.0 rows/s in, 12.5 rows/s out",
        "50,000 in, 0 out, 3 failed",
        "last batch 9, took 210 ms",
        "restarts 2",
        "it went \\x1b[31mwrong (2026-11-14",
        "http://localhost:4040",
        "insert → news: version 17, 40 written, 2 versions behind",
    ):
        assert text in shown, text
    said = topics("pipeline", "ls", reported, "--no-json")
    assert "1,500" in said.out and "2.5 s" in said.out
    if topics.where[0] == "--dir":
        return  # the lines were in the memory of the process that got them
    assert [line["message"] for line in topics.good("pipeline", "logs", reported, "--limit", 1)] == ["a\tb"]
    said = topics("pipeline", "logs", reported, "--no-json")
    assert "began" in said.out and "a\\tb" in said.out


def test_one_that_has_failed_ends_with_one(topics: Command, topic: str) -> None:
    name = declare(topics, topic)
    place = topics.where[1]
    client = sdk.sync.open(place) if topics.where[0] == "--dir" else sdk.sync.connect(place)
    with client:
        client.pipeline(name).report(sdk.PipelineReport(runner="r", state=sdk.RunState.FAILED, last_error="no"))
    said = topics("pipeline", "status", name)
    assert said.code == 1 and said.lines[0]["condition"] == "failed"


def test_all_of_them_one_below_the_other(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    topics = Command(capfd, ["--dir", str(tmp_path / "data")])
    for name in ("first", "second"):
        declare(topics, name)
    with sdk.sync.open(tmp_path / "data") as client:
        client.pipeline("first").report(sdk.PipelineReport(runner="r", state=sdk.RunState.RUNNING))
    first, second = topics("pipeline", "status", "--no-json").out.split("\n\n")
    shown = dict(line.split(maxsplit=1) for line in first.splitlines())
    assert (shown["pipeline"].strip(), shown["position"].strip(), shown["lag"].strip()) == (
        "first",
        "at the beginning",
        "none",
    )
    assert [
        line for line in first.splitlines() if line.startswith(("last batch", "restarts", "last error", "Spark"))
    ] == []
    assert second.split()[:2] == ["pipeline", "second"]


def test_whoever_says_no_keeps_a_pipeline(topics: Command, topic: str) -> None:
    name = declare(topics, topic)
    with somebody_says("n\n"):
        said = topics("pipeline", "drop", name)
    assert said.code == 1 and f"Drop {name}, which is waiting? [y/N]" in said.err
    assert f"{name} is not dropped" in said.err
    assert len(topics.good("pipeline", "ls", name)) == 1
