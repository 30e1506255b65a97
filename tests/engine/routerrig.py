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


def lost_its_end(dest: str) -> Rig:
    """A disk after a power loss: of six records of `a`, in shard 1, three are left. A router to `b` of this class, in
    shard 0, was made when all six were there, or had copied them."""
    rig = Rig()
    rig.configure("a", durability="memory")
    rig.configure("b", durability=dest)
    if dest != "ephemeral":
        put(rig, "a", "b")
    rig.write("a", 1, 2, 3)
    rig.clock.advance(1000)
    rig.work()
    rig.write("a", "lost", "lost", "lost")
    rig.work()
    if dest == "ephemeral":
        put(rig, "a", "b")
    # A topic that is made syncs shard 0, and only that.
    rig.configure("c")
    rig.disk = rig.disk.crash("lost")
    return rig
