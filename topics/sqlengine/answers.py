"""An answer while it grows, bounded in rows and bytes, in the process of its query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

from topics.limits import MIB
from topics.sqlengine.channel import Buffer
from topics.sqlengine.querymessages import Failure
from topics.sqlengine.result import RowsText, table_rows
from topics.sqlmodel import SqlColumn

PIECE_BYTES = 2 * MIB


class Refused(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.kind)
        self.failure = failure


class GrowingAnswer(Protocol):
    def add(self, batch: Any) -> int:
        """Take the rows of a batch; how many bytes they are."""

    def parts(self) -> list[Buffer]:
        """The whole answer."""


class JsonAnswer:
    """An object with columns, rows and their count."""

    def __init__(self, named: Sequence[SqlColumn]) -> None:
        self._named = named
        self._text = RowsText(named)

    def add(self, batch: Any) -> int:
        return self._text.add(table_rows(batch, self._named))

    def parts(self) -> list[Buffer]:
        return self._text.parts()


class ArrowAnswer:
    """An Arrow stream."""

    def __init__(self, schema: Any) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pa.ipc.new_stream(self._sink, schema)

    def add(self, batch: Any) -> int:
        before = self._sink.tell()
        self._writer.write_batch(batch)
        return int(self._sink.tell() - before)

    def parts(self) -> list[Buffer]:
        self._writer.close()
        return [memoryview(self._sink.getvalue())]


def pieces(batch: Any) -> Iterator[Any]:
    """A batch in parts of some MiB, so that a bound is met before much more than it was made; a row stays whole."""
    rows = max(1, batch.num_rows * PIECE_BYTES // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


class Bounds:
    """How much an answer may grow."""

    def __init__(self, rows_max: int, bytes_max: int) -> None:
        self._rows_left = rows_max
        self._bytes_left = bytes_max

    def take_rows(self, count: int) -> None:
        self._rows_left -= count
        if self._rows_left < 0:
            raise Refused(Failure("rows"))

    def take_bytes(self, count: int) -> None:
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise Refused(Failure("answer"))
