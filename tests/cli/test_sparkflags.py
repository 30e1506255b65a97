"""Commands that use Spark ask their server before they start it, and say what keeps it from starting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served
from topics.cli import sparkflags
from topics.cli.exitcode import Exit
from topics.spark import launch
from topics.testing.served import running_server

WORK = [
    ("read write", ("lake", "archive", "LAKE")),
    ("read", ("export", "orders", "LAKE")),
    ("write", ("import", "LAKE/orders.csv", "orders")),
    ("read write", ("redrive", "orders.dead", "--spark")),
    ("read", ("redrive", "orders.dead", "--spark", "--dry-run")),
    ("read write", ("pipeline", "run")),
]


class Starts:
    """Spark that does not start; it says why, and knows how often it was to."""

    def __init__(self, why: Exception) -> None:
        self.why = why
        self.count = 0

    def __call__(self, builder: object) -> object:
        self.count += 1
        raise self.why


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    pytest.importorskip("pyspark")
    made = Starts(launch.NotStarted("it was left alone"))
    monkeypatch.setattr(launch, "_started", made)
    monkeypatch.setattr(sparkflags, "ASK_MS", 0)
    return made


@pytest.mark.parametrize(("scopes", "words"), WORK)
def test_a_wrong_address_or_key_is_told_before_spark_starts(
    capfd: pytest.CaptureFixture[str], starts: Starts, tmp_path: Path, scopes: str, words: tuple[str, ...]
) -> None:
    needed = scopes.split()
    command = [each.replace("LAKE", str(tmp_path / "lake")) for each in words]
    said = Command(capfd, ["--url", "http://127.0.0.1:1"])(*command)
    assert said.code == Exit.UNREACHABLE and "http://127.0.0.1:1 cannot be asked" in said.err
    others = "+".join({"read", "write", "delete", "admin"} - {needed[-1]})
    with running_server(api_keys=f"enough:{'+'.join(needed)},other:{others}") as served:
        where = ["--url", served.url]
        said = Command(capfd, [*where, "--key", "wrong"])(*command)
        assert said.code == Exit.REFUSED and "unauthorized" in said.err
        said = Command(capfd, [*where, "--key", "other"])(*command)
        missing = f"this key lacks the scope {needed[-1]}, and this needs {' and '.join(needed)};"
        assert said.code == Exit.REFUSED and missing in said.err
        assert starts.count == 0
        said = Command(capfd, [*where, "--key", "enough"])(*command)
        assert said.code == Exit.USAGE and "it was left alone" in said.err and starts.count == 1
    assert list(tmp_path.iterdir()) == []


def test_a_connect_server_may_be_where_the_server_has_another_address(
    capfd: pytest.CaptureFixture[str], starts: Starts
) -> None:
    said = Command(capfd, [])("export", "orders", "x", "--url", "http://127.0.0.1:1", "--remote", "sc://nowhere:1")
    assert said.code == Exit.USAGE and "it was left alone" in said.err


def test_what_spark_needs(
    capfd: pytest.CaptureFixture[str],
    server: Served,
    starts: Starts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark.errors import PySparkRuntimeError

    archive = Command(capfd, ["--url", server.url])
    said = archive("lake", "archive", tmp_path / "lake", "--conf", "spark.executor.cores")
    assert said.code == Exit.USAGE and "--conf spark.executor.cores: expected NAME=VALUE" in said.err
    for why, code, words in (
        (launch.NoJava("Spark needs Java"), Exit.USAGE, "invalid_request: Spark needs Java"),
        (launch.NotStarted("no memory"), Exit.USAGE, "invalid_request: Spark did not start: no memory"),
        (PySparkRuntimeError("[X] it is busy\n at y"), Exit.FAILED, "internal: [X] it is busy"),
    ):
        starts.why = why
        said = archive("lake", "archive", tmp_path / "lake")
        assert (said.code, said.err) == (code, f"topics: {words}\n")
    monkeypatch.setattr(sparkflags, "find_spec", lambda name: None)
    for command in (("lake", "archive"), ("lake", "ls")):
        said = Command(capfd, [])(*command, tmp_path / "lake")
        assert said.code == Exit.USAGE and "pip install 'topics[spark]'" in said.err
    assert list(tmp_path.iterdir()) == []
