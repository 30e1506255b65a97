"""Tables as they were at one moment, put aside beside a checkpoint and read in parts.

A snapshot is a Parquet file. It is written before its offset is known to anybody, so that a batch that is done again
reads the same rows. A part is some of its row groups: what one batch has to carry is bounded, however large the table
is. An offset within it has three fields more than one behind it:

    {"rows": "snapshot-….parquet", "at": 3, "of": 17}      three of seventeen row groups were read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pyarrow.parquet as pq
from pyspark.sql.datasource import InputPartition

from topics.limits import MIB
from topics.spark.pipeline.spool import Spool

GROUP_ROWS: Final = 10_000
PART_BYTES: Final = 32 * MIB
"""Of one part, before it is compressed; as JSON it is a few times as much, and all of that is staged at once."""
_NAME: Final = "rows"
_AT: Final = "at"
_OF: Final = "of"


@dataclass(frozen=True)
class Part(InputPartition):
    """Some row groups of a snapshot, for one task."""

    name: str
    first: int
    end: int


class Snapshots:
    """Those in one spool."""

    def __init__(self, spool: str, rows_per_part: int) -> None:
        self._spool = Spool(spool)
        self._rows_per_part = rows_per_part
        self._rows_per_group = min(rows_per_part, GROUP_ROWS)

    def keep(self, schema: Any, batches: Iterable[Any]) -> dict[str, Any]:
        """Put rows aside; the offset before the first of them."""
        name, count = f"snapshot-{uuid4().hex}.parquet", 0
        with self._spool.create(name) as sink, pq.ParquetWriter(sink, schema) as writer:
            for batch in batches:
                for at in range(0, batch.num_rows, self._rows_per_group):
                    writer.write_batch(batch.slice(at, self._rows_per_group))
                    count += 1
        return {_NAME: name, _AT: 0, _OF: count}

    def further(self, offset: Mapping[str, Any]) -> dict[str, Any]:
        """The offset behind the next part."""
        with self._spool.open(offset[_NAME]) as source:
            found = pq.ParquetFile(source).metadata
            at, row_count, byte_count = int(offset[_AT]), 0, 0
            while at < found.num_row_groups:
                group = found.row_group(at)
                row_count, byte_count = row_count + group.num_rows, byte_count + group.total_byte_size
                if at > offset[_AT] and (row_count > self._rows_per_part or byte_count > PART_BYTES):
                    break
                at += 1
        return {**offset, _AT: at}

    def read(self, part: Part) -> Iterator[tuple[int, Any]]:
        """The rows of a part, in batches, each with how many rows are before it in the whole."""
        with self._spool.open(part.name) as source:
            file = pq.ParquetFile(source)
            before = sum(file.metadata.row_group(at).num_rows for at in range(part.first))
            for batch in file.iter_batches(row_groups=range(part.first, part.end)):
                yield before, batch
                before += batch.num_rows

    def forget(self, offset: Mapping[str, Any]) -> None:
        """A batch is done: when it was the last part, nobody needs the rows any more."""
        if is_within(offset) or _NAME not in offset:
            return
        self._spool.delete(offset[_NAME])


def is_within(offset: Mapping[str, Any]) -> bool:
    """Whether there is a part behind this."""
    return _NAME in offset and int(offset[_AT]) < int(offset[_OF])


def part_between(start: Mapping[str, Any], end: Mapping[str, Any]) -> Part | None:
    """What of a snapshot lies between two offsets."""
    if _NAME not in end or int(end[_AT]) == (first := int(start.get(_AT, 0))):
        return None
    return Part(end[_NAME], first, int(end[_AT]))
