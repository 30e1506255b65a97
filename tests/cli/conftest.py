"""Fixtures: a clean environment, a server for all tests that want one, and a command line on either form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from tests.cli.rig import Command
from tests.e2e.served import Served, served
from topics.settings import CLIENT_VARIABLES, TABLE


@pytest.fixture(autouse=True)
def clean_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*(setting.variable for setting in TABLE), *CLIENT_VARIABLES, "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for everybody; tests use topics of their own."""
    with served(tmp_path_factory.mktemp("served") / "data") as running:
        yield running


@pytest.fixture(params=["dir", "url"])
def topics(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """A command line on a directory of its own, and on a server."""
    if request.param == "dir":
        return Command(capfd, ["--dir", str(tmp_path / "data")])
    return Command(capfd, ["--url", request.getfixturevalue("server").url])


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    name: str = request.node.name
    readable = "".join(each if each.isalnum() and each.isascii() else "-" for each in name)[:60]
    return f"{readable}-{crc32(request.node.nodeid.encode()):08x}"
