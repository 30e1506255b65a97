"""Why a query has no result, in words for whoever asked."""

from __future__ import annotations

from signal import SIGABRT, SIGBUS, SIGKILL, SIGSEGV
from typing import Final

from topics.errors import Internal, InvalidSql, QueryTooExpensive, TopicsError, Unavailable
from topics.limits import GIB, KIB, MIB
from topics.settings import Settings
from topics.sql import place
from topics.sql.grammar import Origin
from topics.sql.query import Spliced
from topics.sqlengine.querymessages import EXIT_NO_MEMORY, Failure

_CRASHES: Final = frozenset({SIGABRT, SIGBUS, SIGKILL, SIGSEGV})
"""How a process ends whose memory was refused where its program could not report it."""


def of_failure(failure: Failure, settings: Settings, origin: Origin, spliced: Spliced) -> TopicsError:
    """What a query process reports, as an error that says where in the original text."""
    match failure.kind:
        case "memory":
            return too_much_memory(settings.sql_memory_bytes)
        case "rows":
            return _too_many_rows(settings.sql_rows_max)
        case "answer":
            return _too_large(settings.sql_answer_bytes)
        case "sql":
            return _wrong(failure, origin, spliced)
    return Internal(f"a query failed: {failure.message or failure.kind}")


def crashed(code: int, memory_bytes: int) -> TopicsError:
    """A query process ended by itself; `code` is minus a signal, or its exit status."""
    if code == EXIT_NO_MEMORY or -code in _CRASHES:
        return too_much_memory(memory_bytes)
    return Internal(f"the process of a query ended with status {code}; see what it wrote to the server's stderr")


def not_started(limit_seconds: int, code: int | None = None) -> Unavailable:
    """A query process was not ready in time, or ended before that with an exit status."""
    why = f"was not ready within {limit_seconds} s" if code is None else f"ended at its start with status {code}"
    return Unavailable(f"the process of a query {why}; try again later, and see the server's stderr")


def too_long(limit_ms: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the query took longer than {limit_ms} ms; narrow it by seq, ts or tag, or raise TOPICS_SQL_TIMEOUT_MS",
        limit="time_ms",
        max=limit_ms,
    )


def too_much_memory(memory_bytes: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the query needs more than {_size(memory_bytes)} of memory; read fewer records or columns, group by fewer "
        "values, or raise TOPICS_SQL_MEMORY_BYTES",
        limit="memory_bytes",
        max=memory_bytes,
    )


def _too_many_rows(rows_max: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the answer has more than {rows_max} rows; add a LIMIT, read the topic page by page with a diff, or raise "
        "TOPICS_SQL_ROWS_MAX",
        limit="rows",
        max=rows_max,
    )


def _too_large(bytes_max: int) -> QueryTooExpensive:
    return QueryTooExpensive(
        f"the answers of this request are larger than {_size(bytes_max)}; add a LIMIT, select fewer columns, or raise "
        "TOPICS_SQL_ANSWER_BYTES",
        limit="answer_bytes",
        max=bytes_max,
    )


def _wrong(failure: Failure, origin: Origin, spliced: Spliced) -> TopicsError:
    if failure.position is None:
        return InvalidSql(failure.message)
    # Numbering parameters may have moved a word by a few characters.
    start = min(origin.start + spliced.place(failure.position), len(origin.text))
    where = place.Place(start, start + failure.length)
    return place.wrong(origin.text, where, failure.message, statement=origin.number)


def _size(count: int) -> str:
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if count >= scale:
            return f"{count / scale:g} {unit}"
    return f"{count} bytes"
