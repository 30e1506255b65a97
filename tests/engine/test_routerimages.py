"""Routers in a snapshot."""

from __future__ import annotations

import msgspec

from topics.core.inflow import HopRange, Inflow, Route, RouteKey
from topics.core.router import Router
from topics.engine import images, routerimages
from topics.engine.routerimages import InflowImage
from topics.routermodel import Guarantee, RouterConfig


def test_a_router_comes_back() -> None:
    config = RouterConfig(source="a", dest="b", filter=("tag", "Eq", "x"), guarantee=Guarantee.EXACTLY_ONCE)
    router = Router.of("a->b", 7, config, 1700000000000, (3, 4))
    stored = images.encode(routerimages.router_image(router))
    assert routerimages.restore_router(routerimages.decode_router(stored)) == router
    assert routerimages.router_key("a->b") == b"r/a->b"


def test_what_routers_brought_comes_back() -> None:
    inflow = Inflow({RouteKey(7, 3): Route(10, 8, 2), RouteKey(8, 3): Route(1)}, [HopRange(1, 4, 2)])
    stored = images.encode(routerimages.inflow_image(inflow))
    assert routerimages.restore_inflow(msgspec.msgpack.decode(stored, type=InflowImage)) == inflow
