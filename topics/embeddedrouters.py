"""The verbs of routers on the engine in this process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeVar

from topics.client.body import plain_body
from topics.core.commands import Command, DropRouter, PutRouter
from topics.core.names import check_router
from topics.engine.host import Host
from topics.routermodel import RouterDropped, RouterState
from topics.wire.router import decode_router

T = TypeVar("T")


class EmbeddedRouters:
    """The part of a transport without a wire that is about routers."""

    @abstractmethod
    def _open_host(self) -> Host: ...

    @abstractmethod
    async def _submit(self, command: Command, kind: type[T]) -> T: ...

    async def put_router(self, name: str, fields: Mapping[str, object]) -> RouterState:
        # The same text a server would get, so that the same is refused in the same words.
        config = decode_router(plain_body(fields))
        return await self._submit(PutRouter(check_router(name), config), RouterState)

    async def router(self, name: str) -> RouterState:
        return self._open_host().engine.routing.state(check_router(name))

    async def drop_router(self, name: str) -> RouterDropped:
        return await self._submit(DropRouter(check_router(name)), RouterDropped)

    async def routers(self, *, prefix: str, source: str, dest: str, after: str, limit: int) -> list[RouterState]:
        return self._open_host().engine.routing.page(
            prefix=prefix, source=source or None, dest=dest or None, after=after, limit=limit
        )
