from __future__ import annotations

from typing import Any

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.routermodel import Guarantee, RouterConfig, RouterState
from topics.wire.router import decode_router, router_fields, router_state, router_summary


def decoded(**fields: Any) -> RouterConfig:
    return decode_router(msgspec.json.encode({"source": "orders", "dest": "audit"} | fields))


def test_what_is_not_said_has_its_default() -> None:
    assert decoded() == RouterConfig(source="orders", dest="audit")
    names = set(RouterConfig.__struct_fields__) - {"source", "dest"}
    assert decoded(**dict.fromkeys(names)) == decoded(), "null is the same as leaving out"
    assert decoded(color="red") == decoded()


@pytest.mark.parametrize("name", ["preserve_node", "preserve_tag", "create_dest", "allow_cycle", "backfill"])
def test_flags(name: str) -> None:
    for value in (True, False):
        assert getattr(decoded(**{name: value}), name) is value
    with pytest.raises(InvalidRequest, match=f"{name} must be bool or null, not str"):
        decoded(**{name: "yes"})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("public:a", ("tag", "Eq", "public:a")),
        (["tag", "Eq", "a*"], ("tag", "Eq", "a*")),
        (["tag", "Glob", "public:*"], ("tag", "Glob", "public:*")),
        (["tag", "Glob", "*"], ("tag", "Glob", "*")),
    ],
)
def test_a_filter_names_tags(given: object, kept: tuple[str, str, str]) -> None:
    assert decoded(filter=given).filter == kept


def test_a_guarantee_is_one_of_two() -> None:
    assert decoded(guarantee="exactly_once").guarantee is Guarantee.EXACTLY_ONCE


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"source": "or/ders"}, "source", "is not a topic name"),
        ({"source": ""}, "source", "is not a topic name"),
        ({"source": "a>b"}, "source", "is not a topic name"),
        ({"dest": "x" * 256}, "dest", "is not a topic name"),
        ({"dest": 7}, "dest", "dest must be string, not int"),
        ({"source": None}, "source", "source must be string, not null"),
        ({"dest": "orders"}, "dest", 'dest must be another topic than the source, and both are "orders"'),
        ({"filter": ["tag", "Glob", "a*b*"]}, "filter[2]", "a literal prefix and one trailing"),
        ({"filter": ["node", "Eq", "a"]}, "filter[0]", 'must be "tag"'),
        ({"filter": ["tag", "Like", "a"]}, "filter[1]", 'must be "Eq" or "Glob"'),
        ({"filter": {"tag": "a"}}, "filter", "filter must be"),
        ({"guarantee": "twice"}, "guarantee", 'must be "at_least_once" or "exactly_once", not "twice"'),
        ({"guarantee": 2}, "guarantee", "guarantee must be string or null, not int"),
    ],
)
def test_a_refusal_names_the_field(fields: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decoded(**fields)
    assert caught.value.detail["field"] == field
    assert said in caught.value.message
    assert caught.value.detail["expected"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "source is required"),
        (b"{}", "source is required"),
        (b'{"source":"a"}', "dest is required"),
        (b"[]", "the body must be object, not array"),
        (b'{"source":', "not valid JSON"),
        (b'{"source":"a","dest":"b","source":"c"}', "source is given twice"),
    ],
)
def test_a_body_that_is_no_router(body: bytes, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_router(body)
    assert said in caught.value.message


STATE = RouterState(
    router="orders->audit",
    config=RouterConfig(
        source="orders", dest="audit", filter=("tag", "Glob", "public:*"), guarantee=Guarantee.EXACTLY_ONCE
    ),
    created_ts=1_000,
    cursors=(7, 9),
    lag_records=3,
    lag_ms=20,
    forwarded_total=12,
    stalled="audit is full",
    last_error="audit is full",
    last_error_ts=2_000,
)


def test_a_router_comes_back_as_it_was_told() -> None:
    told = msgspec.json.decode(msgspec.json.encode(router_fields(STATE)))
    assert told["source"] == "orders" and told["filter"] == ["tag", "Glob", "public:*"]
    assert told["guarantee"] == "exactly_once" and told["cursors"] == [7, 9]
    assert router_state(told) == STATE
    assert router_state(told | {"created": True}).created


def test_a_summary_is_part_of_it() -> None:
    fields = router_fields(STATE)
    assert router_summary(STATE).items() <= fields.items()
    assert {"router", "source", "dest", "guarantee", "forwarded_total"} <= router_summary(STATE).keys()
