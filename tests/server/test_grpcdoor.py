"""An installation without the extra `grpc`: in a process of its own, which cannot import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from topics.core.records import DEFAULT_LIMITS
from topics.server.context import Context
from topics.server.grpcdoor import grpc_listener
from topics.settings import Settings
from topics.testing import SimClock

ROOT = Path(__file__).parents[2]

WITHOUT = """
import asyncio, logging, sys
sys.modules["grpc"] = None
import topics
from topics import testing

logging.basicConfig(format="%(message)s %(fields)s", level="INFO", stream=sys.stdout)
logging.getLogger("topics").setLevel("INFO")

async def main():
    async with testing.server(no_grpc=False) as server, server.client() as client:
        print("address", repr(server.grpc_address))
        heap = client.heap("jobs")
        await heap.create()
        await heap.enqueue("one")
        (message,) = await heap.take()
        print("popped", message.data)
    try:
        topics.connect(grpc="localhost:4001")
    except topics.errors.NotInstalled as error:
        print(error.message)

asyncio.run(main())
"""


def test_heaps_speak_http_where_grpc_is_not_installed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "no gRPC {'missing': 'grpc', 'install': \"pip install 'topics[grpc]'\"}" in done.stdout
    assert "address ''" in done.stdout and "popped one" in done.stdout
    assert "heaps over gRPC need grpc, which is not installed: pip install 'topics[grpc]'" in done.stdout


def test_a_part_of_our_own_that_is_missing_is_no_installation_without_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "topics.server.grpc.listener", None)
    context = Context(Settings(), DEFAULT_LIMITS, SimClock(), 0)
    with pytest.raises(ImportError, match=r"topics\.server\.grpc\.listener"):
        grpc_listener(context)
