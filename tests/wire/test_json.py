from __future__ import annotations

import msgspec
import pytest

from topics.errors import InvalidRequest
from topics.limits import NESTING_MAX
from topics.wire import json

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
