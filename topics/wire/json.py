"""Request bodies in JSON: what every decoder of one refuses, and how it says so.

msgspec does the parsing. What is added here: its `Raw` does not look at UTF-8, so the body is checked as a whole; keys
given twice are found; and its errors become ours, with the path of the field in the request (`records[3].tag`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from topics.errors import InvalidRequest
from topics.limits import NESTING_MAX

T = TypeVar("T")

_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_GOT = re.compile(r"^Expected `(?P<expected>.*)`, got `(?P<got>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_LETTER_ESCAPES = (b"\\u005", b"\\u006", b"\\u007")
"""How the escape of a small letter or an underscore begins: our keys are made of nothing else."""


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The body as the decoder's type, or `InvalidRequest` naming the field."""
    if not body.isascii():
        check_utf8(body)
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _translate(str(error)) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, str(error)) from None
    except RecursionError:
        raise _too_deep() from None


def check_utf8(body: bytes) -> None:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise _refuse("", f"the body is not UTF-8: {error.reason} at byte {error.start}", "UTF-8") from None


def spelled_in_escapes(body: bytes) -> bool:
    """Whether a key may be spelled with escapes (`"t\\u0061g"`), so that looking for its letters proves nothing."""
    return any(escape in body for escape in _LETTER_ESCAPES)


def refuse_repeated_keys(body: bytes, walk: Callable[[Pairs], Sequence[tuple[str, Pairs]]]) -> None:
    """Find a key given twice, exactly and slowly, in the objects of the body that `walk` names with their paths."""
    try:
        # Numbers do not matter here, and one may be too long for an int.
        root = json.loads(body, object_pairs_hook=Pairs, parse_int=bool, parse_float=bool)
    except RecursionError:
        raise _too_deep() from None
    for path, pairs in walk(root):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                field = f"{path}.{name}".lstrip(".")
                raise _refuse(field, f"{field} is given twice", "each key once")
            seen.add(name)


class Pairs(list[tuple[str, Any]]):
    """An object of a body with all its keys, repeated ones too."""

    def last(self, name: str) -> Any:
        return next((value for key, value in reversed(self) if key == name), None)


def _translate(message: str) -> InvalidRequest:
    """`Expected `str`, got `int` - at `$.records[3].tag`` in our words."""
    at = _AT.match(message)
    assert at is not None
    what, path = at["what"], at["path"] or ""
    if missing := _MISSING.match(what):
        field = f"{path}.{missing['name']}".lstrip(".")
        return _refuse(field, f"{field} is required", "a value")
    if got := _GOT.match(what):
        expected = " or ".join(got["expected"].replace("str", "string").split(" | "))
        return _refuse(path, f"{path or 'the body'} must be {expected}, not {got['got']}", expected)
    return _refuse(path, f"{path or 'the body'}: {what}", "see the message")


def _malformed(body: bytes, message: str) -> InvalidRequest:
    if not body.strip():
        return _refuse("", f"the body is {'blank' if body else 'empty'}, which is not JSON", "JSON")
    lone = _lone_surrogate(body)
    if lone is not None:
        text = f"the escape at byte {lone} is half of a surrogate pair: it stands for no character"
        return _refuse("", text, "both halves, high then low, or the character itself")
    return _refuse("", f"the body is not valid JSON: {message}", "JSON")


def _lone_surrogate(body: bytes) -> int | None:
    """Where a surrogate escape without its other half stands."""
    high_end = -1
    high_at = -1
    for escape in _ESCAPE.finditer(body):
        code = int(escape[1] or b"0", 16)
        if high_end >= 0 and not (0xDC00 <= code < 0xE000 and escape.start() == high_end):
            return high_at
        if high_end < 0 and 0xDC00 <= code < 0xE000:
            return escape.start()
        is_high = 0xD800 <= code < 0xDC00
        high_end, high_at = (escape.end(), escape.start()) if is_high else (-1, -1)
    return high_at if high_at >= 0 else None


def _too_deep() -> InvalidRequest:
    expected = f"nested at most {NESTING_MAX} deep"
    return _refuse("", f"the body must be {expected}", expected)


def _refuse(field: str, message: str, expected: str) -> InvalidRequest:
    return InvalidRequest(message, field=field, expected=expected)
