"""A server for tests, in this process and in memory.

async with disheap.testing.server() as endpoint, DisheapClient(endpoint) as client:
    await client.make_heap("jobs")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from topics import testing


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """Its endpoint, `host:port`."""
    async with testing.server(no_grpc=False) as served:
        yield served.grpc_address
