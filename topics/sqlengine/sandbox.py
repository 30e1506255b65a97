"""DuckDB without hands: an empty database in memory that reads what it is given, and nothing else.

No files, no network, no extensions, no look at Python's variables, and a configuration that is locked before the first
query. All queries of an engine share one such database, and with it one bound on memory; each has a connection of its
own, so that none sees what another was given. There is no directory to spill to: what does not fit is refused.
"""

from __future__ import annotations

import duckdb
import msgspec

from topics.errors import InvalidSql, QueryTooExpensive, TopicsError
from topics.sql import place
from topics.sql.grammar import Origin
from topics.sql.query import Spliced

_SETTINGS = (
    "SET GLOBAL errors_as_json = true",
    "SET GLOBAL TimeZone = 'UTC'",
    "SET GLOBAL temp_directory = ''",
    "SET GLOBAL python_enable_replacements = false",
    "SET GLOBAL autoload_known_extensions = false",
    "SET GLOBAL autoinstall_known_extensions = false",
    "SET GLOBAL allow_community_extensions = false",
    "SET GLOBAL disabled_filesystems = 'LocalFileSystem'",
    "SET GLOBAL enable_external_access = false",
    "SET GLOBAL lock_configuration = true",
)
"""In this order: the last ones forbid to set the others."""


class Sandbox:
    """On any thread. `close` when no query runs any more."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        # One thread a query: the caller decides how many queries run at a time.
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": f"{memory_bytes}B", "threads": "1"}
        self._database = duckdb.connect(":memory:", config=config)
        for setting in _SETTINGS:
            self._database.execute(setting)

    def connect(self) -> duckdb.DuckDBPyConnection:
        return self._database.cursor()

    def close(self) -> None:
        self._database.close()


PREPARING = "PREPARE located AS "
"""What stands before a query to find out where it is wrong."""


class _Failure(msgspec.Struct):
    exception_message: str
    position: str = ""
    location: str = ""


_failure = msgspec.json.Decoder(_Failure)


def refusal(
    error: Exception, origin: Origin, spliced: Spliced, memory_bytes: int, prepared: bool = False
) -> TopicsError:
    """What DuckDB says of a text, as an error of ours that says where in the original."""
    message, position, length = _read(error)
    if isinstance(error, duckdb.OutOfMemoryException) or str(error).startswith("Out of Memory Error"):
        return QueryTooExpensive(
            f"this query needs more memory than the {memory_bytes} bytes that all queries have together "
            "(TOPICS_SQL_MEMORY_BYTES): read less of a topic, or group by fewer values",
            limit="memory_bytes",
            max=memory_bytes,
        )
    if position is None:
        return InvalidSql(message)
    position -= len(PREPARING) if prepared else 0
    # Numbering parameters may have moved a word by a few characters.
    start = min(origin.start + spliced.place(position), len(origin.text))
    return place.wrong(origin.text, place.Place(start, start + length), message, statement=origin.number)


def is_located(error: Exception) -> bool:
    """Whether it says where in the text, or would if that were known."""
    return _decoded(error) is not None


def _decoded(error: Exception) -> _Failure | None:
    said = str(error)
    begin = said.find("{")
    try:
        return _failure.decode(said[begin:]) if begin >= 0 else None
    except msgspec.DecodeError:
        return None


def _read(error: Exception) -> tuple[str, int | None, int]:
    """The message, and from where in the text to where it is about."""
    failure = _decoded(error)
    if failure is None:
        return str(error), None, 1
    try:
        length = max(1, msgspec.json.decode(failure.location, type=tuple[int, int])[1])
    except msgspec.DecodeError:
        # There is none, or these are words of the query itself, see `error()`.
        length = 1
    position = int(failure.position) if failure.position.isdecimal() else None
    return failure.exception_message, position, length
