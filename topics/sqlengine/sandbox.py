"""DuckDB without hands: an empty database in memory that reads what it is given, and nothing else.

No files, no network, no extensions, no look at Python's variables, and a configuration that is locked before the first
query. A query process has one such database, and each of its queries a connection, so that none sees the tables of
another. There is no directory to spill to: a query that does not fit into memory is refused.
"""

from __future__ import annotations

import duckdb
import msgspec
import pyarrow as pa

from topics.sqlengine.querymessages import ERROR_CHARS_MAX, Failure

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
    """On any thread. `close` it when no query runs."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        # The engine decides how many queries run at a time, each on one thread of its process.
        config: dict[str, str | bool | int | float | list[str]] = {"memory_limit": f"{memory_bytes}B", "threads": "1"}
        self._database = duckdb.connect(":memory:", config=config)
        for setting in _SETTINGS:
            self._database.execute(setting)

    def connect(self) -> duckdb.DuckDBPyConnection:
        return self._database.cursor()

    def close(self) -> None:
        self._database.close()


PREPARING = "PREPARE located AS "
"""Put before a query to find out where it is wrong."""

_NO_MEMORY = ("Out of Memory Error", "std::bad_alloc", "bad allocation", "malloc of size", "realloc of size")


class _Failure(msgspec.Struct):
    exception_message: str
    position: str = ""
    location: str = ""


_failure = msgspec.json.Decoder(_Failure)


def failure_of(error: BaseException, prepared: bool = False) -> Failure:
    """What an error of DuckDB says, and where in the text; `prepared` when PREPARING stood first."""
    said = str(error)
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError) or any(words in said for words in _NO_MEMORY):
        return Failure("memory")
    if isinstance(error, duckdb.InterruptException):
        return Failure("interrupted")
    message, position, length = _read(error)
    if position is not None and prepared:
        position -= len(PREPARING)
    # Of rows that are fetched batch by batch, Arrow reports what DuckDB said, or that it has no such type.
    kind = "sql" if isinstance(error, duckdb.Error | OSError | pa.ArrowException | RecursionError) else "internal"
    return Failure(kind, message[:ERROR_CHARS_MAX], position, length)


def is_broken(error: BaseException) -> bool:
    """Whether the database can run no other query after this error."""
    return isinstance(error, duckdb.FatalException | duckdb.InternalException)


def is_located(error: BaseException) -> bool:
    """Whether an error says where in the text it is, or would if that were known."""
    return _decoded(error) is not None


def _decoded(error: BaseException) -> _Failure | None:
    said = str(error)
    begin = said.find("{")
    try:
        return _failure.decode(said[begin:]) if begin >= 0 else None
    except msgspec.DecodeError:
        return None


def _read(error: BaseException) -> tuple[str, int | None, int]:
    """The message of an error, where in the text it begins, and how long that place is."""
    failure = _decoded(error)
    if failure is None:
        return str(error), None, 1
    try:
        length = max(1, msgspec.json.decode(failure.location, type=tuple[int, int])[1])
    except msgspec.DecodeError:
        # There is no place, or these are words of the query itself, see `error()`.
        length = 1
    position = int(failure.position) if failure.position.isdecimal() else None
    return failure.exception_message, position, length
