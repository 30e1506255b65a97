"""Stamps in the metas of copies: where they stand, what they replace, and how long they are before they are written."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from topics.core.block import Block
from topics.core.records import Json, Records
from topics.core.stamp import STAMP, Stamp

ORIGIN = "r/s%/1/0/"
OURS = b'{"k":"v","_topics_router":"old/s/1/0/12"}'


def block_of(*metas: bytes | None) -> Block:
    """Records from seq 98 on, every third of them without a node."""
    datas: list[Json] = [b'{"n":%d}' % at for at, _ in enumerate(metas)]
    nodes = ["n" if at % 3 else "" for at, _ in enumerate(metas)]
    return Records.check(datas, nodes=nodes, metas=[meta or b"" for meta in metas]).encode(98, 5).as_block()


def stamped(block: Block, chosen: list[int] | None = None) -> list[dict[str, Any]]:
    """The records with their stamps; what is known of them before they are written is true."""
    stamp = Stamp(block, None if chosen is None else np.array(chosen, np.int64), ORIGIN)
    positions = range(block.count) if chosen is None else chosen
    rests = stamp.rests([block.start(at) for at in positions])
    found: list[dict[str, Any]] = msgspec.json.decode(b"[%b]" % b",".join(rests))
    for at, rest, size in zip(positions, rests, stamp.meta_lens.tolist(), strict=True):
        begin, end = rest.index(b'"meta":') + len(b'"meta":'), len(rest) - len(block.data(at)) - len(b',"data":}')
        assert end - begin == size
        assert rest[begin:end].endswith(b'"_topics_router":"%b%d"}' % (ORIGIN.encode(), block.first_seq + at))
    return found


@pytest.mark.parametrize("chosen", [None, [0, 2]])
@pytest.mark.parametrize(
    ("metas", "usual"),
    [
        ((None, None, None), True),
        ((b'{"k":"v"}', None, b'{"k":"}","l":" "}'), True),
        ((b'{"k":"v"}', b"{}", None), False),
        ((b'{ "k":"v"}', None, b'{"k":"v" }'), False),
        ((b"{\n}", OURS, b'{"k":"v"}'), False),
        ((OURS, b'{"_topics_router":"old/1"}', None), False),
        ((b'{"_topics_router":"old","k":"v"}', b'{"_topics_router" : "old/1"}', OURS), False),
        ((b'{"k":"_topics_router"}', b'{"k":"\\"_topics_router\\""}', OURS), False),
    ],
)
def test_every_meta_gets_its_stamp(metas: tuple[bytes | None, ...], usual: bool, chosen: list[int] | None) -> None:
    block = block_of(*metas)
    assert Stamp(block, None, ORIGIN).is_usual is usual
    found = stamped(block, chosen)
    for at, record in zip(range(3) if chosen is None else chosen, found, strict=True):
        fields = msgspec.json.decode(metas[at] or b"{}")
        fields.pop(STAMP, None)
        assert record["meta"] == fields | {STAMP: f"{ORIGIN}{98 + at}"} and list(record["meta"])[-1] == STAMP
        assert record["data"] == msgspec.json.decode(block.data(at))
        assert record["$seq"] == 98 + at and record.get("$node") == ("n" if at % 3 else None)


def test_a_stamp_of_ours_is_taken_out_as_it_was_put_in() -> None:
    first = Records.of([{"data": 1, "meta": {"k": "v"}}]).encode(7, 5).as_block()
    (rest,) = Stamp(first, None, "a/").rests([0])
    again = msgspec.json.decode(rest, type=dict[str, msgspec.Raw])
    second = Records.check([bytes(again["data"])], metas=[bytes(again["meta"])]).encode(7, 5).as_block()
    (twice,) = Stamp(second, None, "b/").rests([0])
    assert twice == rest.replace(b'"a/7"', b'"b/7"')
