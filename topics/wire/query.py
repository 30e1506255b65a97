"""The query of a request: the part of an address behind the question mark, as named values.

A name given twice is refused, because two readers would take two different values. Names nobody asks for are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import parse_qsl

from topics.core.names import shorten
from topics.errors import InvalidRequest

Default = TypeVar("Default", int, None)

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


class Query:
    def __init__(self, text: str) -> None:
        self._values: dict[str, str] = {}
        if not text:
            return
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict")
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the query is not UTF-8: {error.reason}", field="", expected="UTF-8") from None
        for name, value in pairs:
            if name in self._values:
                shown = shorten(name)
                raise InvalidRequest(f"{shown} is given twice in the query", field=shown, expected="each name once")
            self._values[name] = value

    def text(self, name: str) -> str:
        """The value of a name; empty when it is not given."""
        return self._values.get(name, "")

    def given(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the names that are given, and their values, empty ones too."""
        return {name: self._values[name] for name in names if name in self._values}

    def one_of(self, name: str, choices: Sequence[str], default: str = "") -> str:
        value = self._values.get(name)
        if value is None:
            return default
        if value not in choices:
            raise _refuse(name, value, f"one of {', '.join(choices)}")
        return value

    def flag(self, name: str, default: bool) -> bool:
        value = self._values.get(name)
        if value is None:
            return default
        if value not in _FLAGS:
            raise _refuse(name, value, "true or false")
        return _FLAGS[value]

    def whole(self, name: str, default: Default, most: int) -> int | Default:
        """A whole number from 0 to `most`; more is refused."""
        value = self._values.get(name)
        if value is None:
            return default
        # `isdecimal` alone would let other scripts' digits through; a longer text is out of any range here.
        if not (value.isascii() and value.isdecimal() and len(value) <= 20 and int(value) <= most):
            raise _refuse(name, value, f"a whole number from 0 to {most}")
        return int(value)


def _refuse(name: str, value: str, expected: str) -> InvalidRequest:
    shown = shorten(value)
    return InvalidRequest(f'{name} must be {expected}, not "{shown}"', field=name, value=shown, expected=expected)
