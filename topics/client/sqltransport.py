"""How a client has an engine run statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from topics import jsontext
from topics.sqlmodel import SqlResult


def sql_body(text: str, params: Sequence[Any]) -> bytes:
    """The body of a request; `InvalidRequest` when a parameter is nothing that JSON has."""
    return jsontext.encode({"sql": text, "params": list(params)}, "params")


class SqlTransport(Protocol):
    async def sql(self, text: str, params: Sequence[Any]) -> list[SqlResult]:
        """A result for each statement."""

    async def sql_arrow(self, text: str, params: Sequence[Any]) -> bytes:
        """The result of one statement as an Arrow stream."""
