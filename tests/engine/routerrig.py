"""What the engine's tests about routers share."""

from __future__ import annotations

from typing import Any

from tests.engine.rig import Rig
from topics.core.commands import PutRouter
from topics.routermodel import RouterConfig, RouterState


def put(rig: Rig, source: str, dest: str, name: str = "", **fields: Any) -> RouterState:
    reply = rig.driver.do(PutRouter(name or f"{source}->{dest}", RouterConfig(source=source, dest=dest, **fields)))
    assert isinstance(reply, RouterState)
    return reply


def ready(*pairs: str, **fields: Any) -> Rig:
    """Routers between topics of one letter. With two of them, source and destination are in different shards."""
    rig = Rig()
    for source, dest in pairs:
        put(rig, source, dest, **fields)
    return rig
