"""The error tree as a table, for both documents."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from reference.markdown import first_sentence, table
from topics import errors
from topics.errors import TopicsError


def as_table() -> str:
    rows = [
        [f"`{error.code}`", str(error.http_status), f"{'&ensp;' * depth}`{error.__name__}`", _meaning(error)]
        for depth, error in _below(TopicsError, 0)
    ]
    return table(("code", "HTTP", "class", "meaning"), rows)


def _below(parent: type[TopicsError], depth: int) -> Iterator[tuple[int, type[TopicsError]]]:
    """The errors of the module below one, each before its own, in the order of the file."""
    for error in vars(errors).values():
        if inspect.isclass(error) and issubclass(error, TopicsError) and error.__base__ is parent:
            yield depth, error
            yield from _below(error, depth + 1)


def _meaning(error: type[TopicsError]) -> str:
    return first_sentence(error.__dict__["__doc__"]) if error.__dict__.get("__doc__") else ""
