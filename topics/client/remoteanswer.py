"""Where a topic is over HTTP, and what a server answers as the value it stands for."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote, urlencode

import msgspec

from topics.client.connection import Answer
from topics.errors import Internal, InvalidRequest
from topics.jsontext import NOT_UNDERSTOOD

T = TypeVar("T")


def topic_path(topic: str, **query: str) -> str:
    if not isinstance(topic, str) or not topic:
        raise InvalidRequest(f"topic must be a name, not {topic!r}", field="topic", expected="a name")
    return f"/v0/topics/{quote(topic, safe='')}" + (f"?{urlencode(query)}" if query else "")


def decoded(answer: Answer, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except NOT_UNDERSTOOD as error:
        raise misunderstood(answer, error) from None


def misunderstood(answer: Answer, error: Exception) -> Internal:
    """What a server answered is not what its version of the wire has."""
    failure = Internal(f"the server's answer is not one that this client understands: {error}")
    failure.request_id = answer.headers.get("x-request-id")
    return failure
