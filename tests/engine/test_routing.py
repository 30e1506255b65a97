"""What there is to know about routers."""

from __future__ import annotations

import pytest

from tests.engine.rig import Rig
from topics.core.commands import PutRouter
from topics.errors import RouterNotFound
from topics.routermodel import RouterConfig


def test_states_one_by_one_and_in_pages() -> None:
    rig = Rig()
    for source, dest in ("ab", "ac", "cd"):
        rig.driver.do(PutRouter(f"{source}->{dest}", RouterConfig(source=source, dest=dest)))
    rig.write("a", 1, 2)
    rig.work()
    routing = rig.engine.routing
    state = routing.state("a->c")
    assert (state.forwarded_total, state.cursors, state.lag_records, state.stalled) == (2, (2,), 0, None)
    names = [found.router for found in routing.page(limit=2)]
    assert names == ["a->b", "a->c"] and [found.router for found in routing.page(after=names[-1])] == ["c->d"]
    assert [found.router for found in routing.page(source="a", dest="c")] == ["a->c"]
    assert [found.router for found in routing.page(prefix="c")] == ["c->d"]
    with pytest.raises(RouterNotFound, match="x->y"):
        routing.state("x->y")


def test_a_topic_may_be_named_by_its_alias() -> None:
    rig = Rig()
    rig.configure("orders", alias="o")
    rig.driver.do(PutRouter("r", RouterConfig(source="o", dest="b")))
    assert [found.router for found in rig.engine.routing.page(source="o")] == ["r"]


def test_why_a_router_does_not_go_on() -> None:
    rig = Rig()
    rig.configure("b", cap_records=1, discard="reject")
    rig.driver.do(PutRouter("r", RouterConfig(source="a", dest="b")))
    rig.write("a", 1, 2)
    rig.clock.advance(30)
    rig.work()
    state = rig.engine.routing.state("r")
    assert state.stalled == state.last_error and "full" in str(state.stalled)
    assert (state.lag_records, state.lag_ms) == (1, 30) and state.last_error_ts is not None
