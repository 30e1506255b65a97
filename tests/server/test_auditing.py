from __future__ import annotations

import pytest

from topics.server.auditing import name_in
from topics.server.message import Request


def request(body: bytes, **params: str) -> Request:
    return Request("POST", "/", "", {}, body, 0, params=params)


def test_a_request_is_about_what_its_path_or_its_body_names() -> None:
    assert name_in(request(b'{"topic":"other"}', topic="orders")) == "orders"
    assert name_in(request(b'{"topic":"orders","more":[1]}')) == "orders"
    assert name_in(request(b'{"topic":"%b"}' % (b"x" * 10_000))).startswith("xxx")
    assert len(name_in(request(b'{"topic":"%b"}' % (b"x" * 10_000)))) < 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"topic":5}', b'{"topic":"\xff"}', b'{"more":%b%b}' % (b"[" * 100_000, b"]" * 100_000)],
    ids=len,
)
def test_what_is_not_understood_is_left_to_the_handler(body: bytes) -> None:
    assert name_in(request(body)) == ""
