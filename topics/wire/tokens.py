"""The body of a request for a stream token."""

from __future__ import annotations

from typing import Literal

import msgspec

from topics.core.names import check_topic
from topics.errors import InvalidRequest
from topics.limits import STREAM_TOKEN_MS_DEFAULT, STREAM_TOKEN_MS_MAX, STREAM_TOKEN_MS_MIN, STREAM_TOKEN_TOPICS_MAX
from topics.wire import json

WID_CHARS_MAX = 128
WILDCARD = "*"


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    ttl_ms: int = STREAM_TOKEN_MS_DEFAULT
    scopes: tuple[str, ...] = ("read",)
    topics: tuple[str, ...] = ()
    """Names, and beginnings of names with a `*` behind; empty is whatever the key may."""
    wid: str = ""
    """The watch session that it is for; empty is any."""


class _Body(msgspec.Struct):
    ttl_ms: int = STREAM_TOKEN_MS_DEFAULT
    scopes: list[Literal["read", "write"]] = []
    topics: list[str] = []
    wid: str = ""


_decoder = msgspec.json.Decoder(_Body)


def decode_token(body: bytes) -> TokenRequest:
    """The token a body asks for; an empty body is one for everything that the key may stream."""
    if not body:
        return TokenRequest()
    parsed = json.decode(_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return TokenRequest(
        ttl_ms=_ttl_ms(parsed.ttl_ms),
        scopes=tuple(dict.fromkeys(parsed.scopes)) or ("read",),
        topics=_topics(parsed.topics),
        wid=_wid(parsed.wid),
    )


def _ttl_ms(ttl_ms: int) -> int:
    if not STREAM_TOKEN_MS_MIN <= ttl_ms <= STREAM_TOKEN_MS_MAX:
        expected = f"milliseconds from {STREAM_TOKEN_MS_MIN} to {STREAM_TOKEN_MS_MAX}"
        raise InvalidRequest(f"ttl_ms must be {expected}, not {ttl_ms}", field="ttl_ms", expected=expected)
    return ttl_ms


def _topics(names: list[str]) -> tuple[str, ...]:
    if len(names) > STREAM_TOKEN_TOPICS_MAX:
        expected = f"at most {STREAM_TOKEN_TOPICS_MAX} names"
        raise InvalidRequest(f"topics must have {expected}, not {len(names)}", field="topics", expected=expected)
    for name in names:
        # Every beginning of a name is itself one.
        beginning = name.removesuffix(WILDCARD)
        if beginning or not name:
            check_topic(beginning, "topics")
    return tuple(names)


def _wid(wid: str) -> str:
    if len(wid) > WID_CHARS_MAX:
        expected = "what POST /v0/watch answered"
        raise InvalidRequest(f"wid has more than {WID_CHARS_MAX} characters", field="wid", expected=expected)
    return wid
