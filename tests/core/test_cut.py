from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.rig import T0_MS, Rig
from topics.core.cut import Shape, cut

TEXT = st.text('aä"\\%,}\n', max_size=5)
ITEMS = st.fixed_dictionaries(
    {"data": st.recursive(st.none() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=2), max_leaves=3)},
    optional={
        "tag": st.sampled_from(["", "x", "y", 'q"\\', "ü"]),
        "node": st.sampled_from(["", "n1", 'n"2']),
        "meta": st.dictionaries(TEXT, TEXT, max_size=2),
    },
)
SHAPES = st.builds(Shape, tags=st.booleans(), meta=st.booleans(), data=st.booleans())


def expected(seq: int, item: dict[str, Any], shape: Shape) -> dict[str, Any]:
    record: dict[str, Any] = {"$seq": seq, "$ts": T0_MS}
    if item.get("node"):
        record["$node"] = item["node"]
    if shape.tags and item.get("tag"):
        record["$tag"] = item["tag"]
    if shape.meta and "meta" in item:
        record["meta"] = item["meta"]
    if shape.data:
        record["data"] = item["data"]
    return record


@given(
    batches=st.lists(st.tuples(st.lists(ITEMS, min_size=1, max_size=4), st.booleans()), min_size=1, max_size=4),
    shape=SHAPES,
    nodes=st.sampled_from([(), ("n1",), ("n1", 'n"2')]),
    deleted=st.sampled_from([None, "x"]),
    from_seq=st.integers(0, 5),
    limit=st.integers(1, 20),
)
def test_every_shape_is_what_a_parser_would_have_made(
    batches: list[tuple[list[dict[str, Any]], bool]],
    shape: Shape,
    nodes: tuple[str, ...],
    deleted: str | None,
    from_seq: int,
    limit: int,
) -> None:
    rig = Rig()
    items = [item for batch, _ in batches for item in batch]
    for batch, freeze in batches:
        rig.write(*batch)
        if freeze:
            rig.log().freeze_tail()
    if deleted is not None:
        rig.delete(match=deleted)
    live = [(seq, item) for seq, item in enumerate(items, 1) if seq > from_seq and item.get("tag", "") != deleted]
    wanted = [expected(seq, item, shape) for seq, item in live[:limit] if item.get("node", "") not in nodes]
    body = rig.page(min(from_seq, len(items)), limit, nodes=nodes, shape=shape).body
    parsed = json.loads(b"[%b]" % body)
    assert parsed == wanted
    assert [list(record) for record in parsed] == [list(record) for record in wanted], "keys come in this order"


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.write(
        {"data": {"x": 1}, "tag": "a:1", "node": "n", "meta": {"k": "v"}}, {"data": None, "tag": "b"}, {"data": 3}
    )
    return rig


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (
            Shape(),
            '{"$seq":1,"$ts":TS,"$node":"n","meta":{"k":"v"},"data":{"x":1}},'
            '{"$seq":2,"$ts":TS,"data":null},{"$seq":3,"$ts":TS,"data":3}',
        ),
        (
            Shape(tags=True),
            '{"$seq":1,"$ts":TS,"$node":"n","$tag":"a:1","meta":{"k":"v"},"data":{"x":1}},'
            '{"$seq":2,"$ts":TS,"$tag":"b","data":null},{"$seq":3,"$ts":TS,"data":3}',
        ),
        (
            Shape(meta=False),
            '{"$seq":1,"$ts":TS,"$node":"n","data":{"x":1}},{"$seq":2,"$ts":TS,"data":null},{"$seq":3,"$ts":TS,"data":3}',
        ),
        (
            Shape(data=False),
            '{"$seq":1,"$ts":TS,"$node":"n","meta":{"k":"v"}},{"$seq":2,"$ts":TS},{"$seq":3,"$ts":TS}',
        ),
        (
            Shape(tags=True, meta=False, data=False),
            '{"$seq":1,"$ts":TS,"$node":"n","$tag":"a:1"},{"$seq":2,"$ts":TS,"$tag":"b"},{"$seq":3,"$ts":TS}',
        ),
    ],
)
def test_the_bytes_of_each_shape(rig: Rig, shape: Shape, text: str) -> None:
    assert rig.page(shape=shape).body.decode() == text.replace("TS", str(T0_MS))


def test_an_empty_page_is_empty() -> None:
    assert cut([]) == b""
