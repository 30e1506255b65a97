"""The values of routers that users see."""

from __future__ import annotations

import msgspec

from topics.routermodel import Guarantee, RouterConfig, RouterState


def test_a_router_that_says_nothing_forwards_everything_as_it_is() -> None:
    config = RouterConfig(source="a", dest="b")
    assert config.preserve_node and config.preserve_tag and config.create_dest
    assert config.filter is None and not config.allow_cycle and not config.backfill
    assert config.guarantee is Guarantee.AT_LEAST_ONCE


def test_a_config_that_lacks_later_fields_is_read_with_their_defaults() -> None:
    stored = msgspec.msgpack.encode({"source": "a", "dest": "b", "guarantee": "exactly_once"})
    config = msgspec.msgpack.decode(stored, type=RouterConfig)
    assert config == RouterConfig(source="a", dest="b", guarantee=Guarantee.EXACTLY_ONCE)


def test_a_new_router_lags_behind_nothing() -> None:
    state = RouterState(router="r", config=RouterConfig(source="a", dest="b"), created_ts=5, cursors=(0,))
    assert (state.lag_records, state.lag_ms, state.forwarded_total, state.stalled) == (0, 0, 0, None)
