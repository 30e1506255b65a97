"""The fixtures as a project of somebody else gets them: a pytest of its own that knows nothing of this one."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROJECT = """
import asyncio
import topics

def test_a_plain_client(topics_client):
    topics_client.topic("orders").write({"sku": "A1"})
    assert [record.data for record in topics_client.topic("orders").diff().records] == [{"sku": "A1"}]

def test_each_test_has_a_server_of_its_own(topics_client):
    assert list(topics_client.topics()) == []

def test_an_async_client_and_time(topics_server):
    async def main():
        async with topics.connect(topics_server.url) as client:
            await client.topic("brief").create(ttl_ms=1000)
            await client.topic("brief").write(1)
            topics_server.pass_time(2000)
            assert (await client.topic("brief").diff()).records == []
    asyncio.run(main())
"""


def registered() -> bool:
    """Whether the installed package names them; one that was installed before they were there does not."""
    return any(point.value == "topics.testing.fixtures" for point in entry_points(group="pytest11"))


def test_the_package_names_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"topics": "topics.testing.fixtures"}


def test_they_are_there_for_everybody(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(PROJECT)
    plugins = [] if registered() else ["-p", "topics.testing.fixtures"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout + done.stderr
