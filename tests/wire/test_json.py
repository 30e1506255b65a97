from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.limits import NESTING_MAX
from topics.wire import config, diff, group, heap, json, nothing, queue, tokens

DEEP = b"[" * 200_000 + b"]" * 200_000


def test_a_body_that_is_too_deep_is_refused_by_both_parsers() -> None:
    """The second one looks for repeated keys, in its own way, at what the first has understood."""
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for refuse in (
        lambda: json.decode(decoder, b'{"a":%b}' % DEEP),
        lambda: json.refuse_repeated_keys(DEEP, lambda root: [("", root)]),
    ):
        with pytest.raises(InvalidRequest, match=f"nested at most {NESTING_MAX} deep"):
            refuse()


def test_a_key_that_is_given_twice_is_named_with_its_path() -> None:
    body = b'{"a":{"b":1,"b":%b}}' % (b"9" * 5000)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    with pytest.raises(InvalidRequest, match=r"a\.b is given twice") as caught:
        json.refuse_repeated_keys(body, lambda root: [("", root), ("a", root.last("a"))])
    assert caught.value.detail == {"field": "a.b", "expected": "each key once"}


MAY_BE_LEFT_OUT: tuple[Callable[[bytes], object], ...] = (
    config.decode_config,
    diff.decode_diff,
    heap.decode_purge,
    heap.decode_dead,
    nothing.check_nothing,
    partial(group.decode_consume, "t", "g"),
    queue.decode_redrive,
    queue.decode_discard,
    tokens.decode_token,
)


@pytest.mark.parametrize("decode", MAY_BE_LEFT_OUT)
def test_a_blank_body_is_not_one_that_is_left_out(decode: Callable[[bytes], object]) -> None:
    """Nothing at all asks for everything there is, some of it for good: a file that came empty does not."""
    assert decode(b"") == decode(b"{}")
    for blank in (b" ", b"\n", b"\r\n\r\n", b"\t"):
        with pytest.raises(InvalidRequest, match="the body is blank, which is not JSON"):
            decode(blank)


def test_an_empty_body_where_there_must_be_one_is_told() -> None:
    with pytest.raises(InvalidRequest, match="the body is empty, which is not JSON"):
        heap.decode_make(b"")
