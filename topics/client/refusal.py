"""What a server refused, as the error it is: the envelope decoded into the class of `topics.errors` with its code.

A code that this version does not know becomes the nearest class by status, with the code in `detail.code`. An answer
without an envelope comes from something else that stands on the way, a proxy for example, and says so.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topics import errors
from topics.client.connection import Answer
from topics.errors import TopicsError
from topics.jsontext import NOT_UNDERSTOOD
from topics.limits import SECOND_MS

_BODY_CHARS_SHOWN = 200


class _Error(msgspec.Struct):
    code: str
    message: str
    detail: dict[str, Any] = {}
    reason: str = ""
    """Our code, where `code` is the canonical one of gRPC."""


class _Envelope(msgspec.Struct):
    error: _Error


_decoder = msgspec.json.Decoder(_Envelope)

_BY_STATUS: dict[int, type[TopicsError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    406: errors.NotAcceptable,
    408: errors.RequestTimeout,
    409: errors.Conflict,
    413: errors.PayloadTooLarge,
    415: errors.UnsupportedMediaType,
    429: errors.Throttled,
    431: errors.HeadersTooLarge,
    502: errors.Unavailable,
    503: errors.Unavailable,
    504: errors.Unavailable,
}


def _by_code(kind: type[TopicsError]) -> dict[str, type[TopicsError]]:
    found = {kind.code: kind}
    for below in kind.__subclasses__():
        found |= {code: each for code, each in _by_code(below).items() if code not in found}
    return found


_BY_CODE = _by_code(TopicsError) | {errors.Internal.code: errors.Internal}


def by_code(code: str) -> type[TopicsError] | None:
    """The class with this code; None when this version does not know it."""
    return _BY_CODE.get(code)


def refusal(answer: Answer) -> TopicsError:
    """The error that an answer above 299 stands for."""
    error = _read(answer)
    error.request_id = answer.headers.get("x-request-id")
    return error


def retry_after_ms(answer: Answer, error: TopicsError) -> int:
    """How long the server asks to be left alone; 0 when it does not say."""
    said = error.detail.get("retry_after_ms")
    if isinstance(said, int):
        return max(0, said)
    header = answer.headers.get("retry-after", "")
    return int(header) * SECOND_MS if header.isascii() and header.isdecimal() else 0


def _read(answer: Answer) -> TopicsError:
    try:
        said = _decoder.decode(answer.body).error
    except NOT_UNDERSTOOD:
        kind = nearest(answer.status)
        shown = answer.body[:_BODY_CHARS_SHOWN].decode(errors="replace")
        return kind(f"status {answer.status} without an error that we know: {shown!r}", status=answer.status)
    code = said.reason or said.code
    known = _BY_CODE.get(code)
    # `detail` is the server's, so it is not passed as keywords: one of them might be called like a parameter.
    error = (known or nearest(answer.status))(said.message)
    error.detail = said.detail if known is not None else said.detail | {"code": code}
    return error


def nearest(status: int) -> type[TopicsError]:
    """The class of an error of which only the status is known."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.InvalidRequest if 400 <= status < 500 else errors.Internal
