from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.clients import heappace
from bench.measures.heaps import Served
from bench.peers.topics import Topics

MESSAGES = 60


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with Served(tmp_path / "data", partitions=3) as served:
        yield served


@pytest.mark.parametrize("over", ["v1", "grpc"])
def test_each_message_is_timed_until_it_is_popped(served: Served, over: str) -> None:
    address = served.endpoint if over == "grpc" else f"127.0.0.1:{served.server.port}"
    found = heappace.run(over, address, MESSAGES)
    assert found.enqueue_p95_ms > 0 and found.pop_p95_ms > 0


def test_a_refusal_ends_the_run_with_its_text(tmp_path: Path) -> None:
    with Topics(tmp_path / "data") as server, pytest.raises(RuntimeError, match=r'404.*\\"orders\\" does not exist'):
        heappace.run("v1", f"127.0.0.1:{server.port}", MESSAGES)
