"""The body of a request for statements."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.wire import json


class SqlRequest(msgspec.Struct, frozen=True):
    sql: str
    params: list[Any] = []
    """The values of the parameters, in order."""


_decoder = msgspec.json.Decoder(SqlRequest)


def decode_sql(body: bytes) -> SqlRequest:
    """The statements and parameters of a body, or `InvalidRequest` naming the field."""
    request = json.decode(_decoder, body)
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return request
