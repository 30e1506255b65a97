"""What a snapshot holds of routers: each one, and in the image of a log what routers brought into it.

To change an image: only add fields with a default at the end.
"""

from __future__ import annotations

import msgspec

from topics.core.inflow import HopRange, Inflow, Route, RouteKey
from topics.core.router import Router
from topics.routermodel import RouterConfig


class InflowImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What routers brought into a log, see `core/inflow.py`."""

    routes: tuple[tuple[int, int, int, int, int], ...]
    """Router, source log, cursor, forwarded, trimmed."""
    hops: tuple[tuple[int, int, int], ...]


class RouterImage(msgspec.Struct, frozen=True, gc=False):
    name: str
    number: int
    config: RouterConfig
    created_ms: int
    starts: tuple[int, ...]


def router_key(name: str) -> bytes:
    return b"r/" + name.encode()


def inflow_image(inflow: Inflow) -> InflowImage:
    routes = ((*key, route.cursor, route.forwarded_count, route.trimmed_count) for key, route in inflow.routes.items())
    return InflowImage(tuple(routes), tuple(inflow.hops))


def restore_inflow(image: InflowImage) -> Inflow:
    routes = {RouteKey(router, source): Route(*numbers) for router, source, *numbers in image.routes}
    return Inflow(routes, [HopRange(*found) for found in image.hops])


def router_image(router: Router) -> RouterImage:
    return RouterImage(router.name, router.number, router.config, router.created_ms, router.starts)


def restore_router(image: RouterImage) -> Router:
    return Router.of(image.name, image.number, image.config, image.created_ms, image.starts)


decode_router = msgspec.msgpack.Decoder(RouterImage).decode
