"""One router, as a program uses it: what is written to one topic is copied into another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from difflib import get_close_matches
from typing import Final, Literal, TypedDict, Unpack

from topics.client.match import Match
from topics.client.routertransport import RouterTransport
from topics.errors import InvalidRequest
from topics.routermodel import Guarantee, RouterDropped, RouterState

ROUTERS_PAGE: Final = 100
"""Routers asked for at once."""


class RouterFields(TypedDict, total=False):
    """What a router may be told as keywords; what each means is in `topics.RouterConfig`."""

    preserve_node: bool
    preserve_tag: bool
    filter: Match | None
    allow_cycle: bool
    guarantee: Guarantee | Literal["at_least_once", "exactly_once"]
    create_dest: bool
    backfill: bool


NAMES = frozenset(RouterFields.__annotations__)


class Router:
    """A router by its name. Making this object touches nothing."""

    def __init__(self, transport: RouterTransport, name: str) -> None:
        self._transport = transport
        self._name = name

    def __repr__(self) -> str:
        return f"<Router {self._name}>"

    @property
    def name(self) -> str:
        """The name, which is the router's identity."""
        return self._name

    async def put(self, source: str, dest: str, **options: Unpack[RouterFields]) -> RouterState:
        """Copy what is written to `source` from now on into `dest`; what is not named has its default.

            await client.router("public").put("orders", "shop", filter=["tag", "Glob", "public:*"])

        Topics that are missing are made, the destination only with `create_dest`. A router that exists gets this config
        and goes on where it is. `backfill` begins a new one with the oldest record that is there. `filter` is a tag or
        the beginning of tags. `preserve_node=False` and `preserve_tag=False` leave these out of the copies. With the
        guarantee `exactly_once` each copy says in its meta what it is a copy of, and none comes twice.

        A destination has one source: a second one is refused with `TopicExistsIncompatible`. Routers that would lead
        records back to where they came from are refused with `RouterCycle`, unless `allow_cycle` says that a record
        may go around, a bounded number of times.
        """
        for name in sorted(options.keys() - NAMES):
            near = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {near[0]}?" if near else "there are " + ", ".join(sorted(NAMES))
            raise InvalidRequest(f"router has no field {name}; {hint}", field=name, expected=sorted(NAMES))
        return await self._transport.put_router(self._name, {"source": source, "dest": dest, **options})

    async def state(self) -> RouterState:
        """Its config, how many records it has forwarded, how many wait, and why it does not go on if it does not."""
        return await self._transport.router(self._name)

    async def drop(self) -> RouterDropped:
        """Stop forwarding, for good. What was forwarded stays where it is."""
        return await self._transport.drop_router(self._name)


def default_name(source: str, dest: str) -> str:
    """What a router between two topics is called unless somebody names it."""
    return f"{source}->{dest}"


async def every_router(transport: RouterTransport, prefix: str, source: str, dest: str) -> AsyncIterator[RouterState]:
    """Routers in order of their names, one page after the other."""
    after = ""
    while True:
        found = await transport.routers(prefix=prefix, source=source, dest=dest, after=after, limit=ROUTERS_PAGE)
        for state in found:
            yield state
        if len(found) < ROUTERS_PAGE:
            return
        after = found[-1].router
