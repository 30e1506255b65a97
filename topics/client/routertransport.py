"""How a client reaches the routers of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from topics.routermodel import RouterDropped, RouterState


class RouterTransport(Protocol):
    async def put_router(self, name: str, fields: Mapping[str, object]) -> RouterState:
        """Create a router, or make these its whole config; what is not named has its default."""

    async def router(self, name: str) -> RouterState: ...

    async def drop_router(self, name: str) -> RouterDropped: ...

    async def routers(self, *, prefix: str, source: str, dest: str, after: str, limit: int) -> list[RouterState]:
        """Routers by name behind `after`; fewer than `limit` means that there are no more.

        A source or destination that is not empty is that of all of them.
        """
