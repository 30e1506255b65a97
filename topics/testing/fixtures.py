"""Fixtures for pytest, there in every project that has `topics` installed.

    def test_an_order_is_written(topics_client):
        place_order(topics_client, sku="A1")
        assert [record.data for record in topics_client.topic("orders").diff().records] == [{"sku": "A1"}]

`topics_server` is a server in memory for one test, with `url`, `pass_time`, `stop` and `start`; an async test connects
to its `url`. `topics_client` is a plain client of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

# What a fixture needs is loaded when a test asks for it: every run of pytest imports this module.
if TYPE_CHECKING:
    from topics import sync
    from topics.testing.served import RunningServer


@pytest.fixture
def topics_server() -> Iterator[RunningServer]:
    """A server in memory, on a thread of its own, whose time is the test's."""
    from topics.testing.served import running_server

    with running_server() as server:
        yield server


@pytest.fixture
def topics_client(topics_server: RunningServer) -> Iterator[sync.Client]:
    """A plain client of `topics_server`."""
    with topics_server.client() as client:
        yield client
