"""What the tests of statements share: the engine behind a client that has it in its own process."""

from __future__ import annotations

from topics import Client
from topics.embedded import Embedded
from topics.engine.engine import Engine
from topics.engine.host import Host


def embedded(client: Client) -> Embedded:
    transport = client._transport
    assert isinstance(transport, Embedded)
    return transport


def host_of(client: Client) -> Host:
    host = embedded(client)._host
    assert host is not None
    return host


def engine_of(client: Client) -> Engine:
    return host_of(client).engine
