"""What engine and query process say to each other, as JSON in the frames of a `Channel`."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.limits import MIB

MESSAGE_BYTES_MAX = MIB
"""What a process may say at once, apart from an answer."""
EXIT_NO_MEMORY = 71
"""How a process exits that was refused memory outside of a query."""
ERROR_CHARS_MAX = 16 * 1024
"""An error message is cut at this length."""


class Confinement(msgspec.Struct, frozen=True):
    """What a process is told when it starts."""

    memory_bytes: int


class TimeExpression(msgspec.Struct, frozen=True):
    """A time that only DuckDB can evaluate, for narrowing a scan."""

    text: str
    parameters: list[Any]
    after: bool


class Table(msgspec.Struct, frozen=True):
    name: str
    schema: bytes
    """As Arrow IPC."""
    view: str | None
    """What the query sees instead of the scanned table; None when it sees the table itself."""
    times: list[TimeExpression] = []


class Query(msgspec.Struct, frozen=True):
    number: int
    text: str
    parameters: list[Any]
    tables: list[Table]
    rows_max: int
    answer_bytes_max: int
    arrow: bool = False
    explain: bool = False


class Open(msgspec.Struct, frozen=True):
    """A scan that a process begins."""

    table: int
    columns: list[str]
    from_us: int | None = None
    to_us: int | None = None
    """Rows outside of these times are not needed."""


class Failure(msgspec.Struct, frozen=True):
    """Why a query has no result."""

    kind: str
    """`sql`, `memory`, `rows`, `answer`, `interrupted` or `internal`."""
    message: str = ""
    position: int | None = None
    """Where in the text that ran."""
    length: int = 1


class Explained(msgspec.Struct, frozen=True):
    """The plan of a query, a line each."""

    lines: list[str]


def encode(message: msgspec.Struct) -> bytes:
    return msgspec.json.encode(message)
