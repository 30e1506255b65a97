"""Where something stands in a text of statements, and the error that shows it.

line 1, column 21: PARTITION is not understood here; expected PARTITIONS, ALIAS, WITH or the end
  CREATE TOPIC orders PARTITION 4
                      ^^^^^^^^^
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from topics.errors import InvalidSql

SHOWN_CHARS = 120
"""As much of a line as an error repeats."""


class Place(NamedTuple):
    """From `start` to before `end`."""

    start: int
    end: int


def wrong(text: str, place: Place, what: str, expected: Sequence[str] = (), statement: int = 0) -> InvalidSql:
    """The error about a place: its line and column, both from 1, and the line itself with a caret below."""
    line_start = text.rfind("\n", 0, place.start) + 1
    line_end = text.find("\n", place.start)
    shown_line = text[line_start : len(text) if line_end < 0 else line_end]
    line = text.count("\n", 0, place.start) + 1
    column = place.start - line_start + 1
    sentence = f"{what}; expected {listed(expected)}" if expected else what
    message = f"line {line}, column {column}: {sentence}\n{_pointed(shown_line, column - 1, place.end - place.start)}"
    detail = {"line": line, "column": column, "expected": list(expected)}
    if statement:
        detail["statement"] = statement
    return InvalidSql(message, **detail)


def listed(words: Sequence[str]) -> str:
    """`PARTITIONS, ALIAS or the end`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _pointed(line: str, at: int, length: int) -> str:
    """The line, or what is around the place when it is long, and carets under the place."""
    begin = max(0, at - SHOWN_CHARS // 2) if len(line) > SHOWN_CHARS else 0
    part = line[begin : begin + SHOWN_CHARS].replace("\t", " ").rstrip()
    carets = max(1, min(length, len(part) - (at - begin)))
    return f"  {part}\n  {' ' * (at - begin)}{'^' * carets}"
