"""Reading across the seam: what a lake has comes from the lake, everything behind that from the server.

The seam of a partition is the seq up to which the lake has everything. A range that lies below is read out of the
lake's files, one that lies above from the server, one that reaches over it is two. So nothing is read twice and nothing
is left out; what neither has any more is a gap, as the lake or the server tells it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from topics.limits import ARROW_RECORDS_MAX
from topics.spark.columns import Columns
from topics.spark.lakecolumns import SCHEMA
from topics.spark.lakefile import Place, StoredFile, read_file
from topics.spark.options import EARLIEST, LAKE, Options
from topics.spark.pages import told, with_tags
from topics.spark.ranges import SeqRange
from topics.spark.server import ArchiveProgress, Gap, PartitionState, Server

if TYPE_CHECKING:
    from topics.spark.laketable import Lake

_RECORD: Final = ["seq", "ts", "node", "tag", "meta", "data"]
"""What the source makes its rows of."""


@dataclass(frozen=True)
class LakeRange(InputPartition):
    """A range of seqs that is read out of files of a lake."""

    wanted: SeqRange
    root: str
    files: tuple[StoredFile, ...]
    node: str
    """Whose records are passed over."""


class History:
    """The lakes that the topics of a query are in, as they are when it is planned."""

    def __init__(self, options: Options, server: Server) -> None:
        self._options = options
        self._server = server
        self._lakes: dict[str, tuple[Lake, list[StoredFile]]] = {}

    def divided(self, ranges: Iterable[SeqRange]) -> Iterator[InputPartition]:
        """Ranges of a lake and of the server in the place of those given, in their order."""
        locations: dict[str, tuple[str, str]] = {}
        for wanted in ranges:
            if wanted.topic not in locations:
                locations[wanted.topic] = self._place(wanted.topic)
            location, node = locations[wanted.topic]
            yield from self._divided(wanted, location, node) if location else [wanted]

    def _place(self, topic: str) -> tuple[str, str]:
        """Where the lake of a topic is, "" for nowhere; and whose records the reader does not want."""
        state = self._server.state(topic)
        others = (self._server.state(topic, partition) for partition in range(1, state.partitions))
        # A partition without records has nothing archived, and says nothing of the others.
        reported = next((found for found in map(_located, chain([state], others)) if found), [])
        location = self._options.location or (
            max(reported, key=lambda each: each.upto_seq).location if reported else ""
        )
        return location, self._options.node if state.config.get("dedupe_node") else ""

    def _divided(self, wanted: SeqRange, location: str, node: str) -> Iterator[InputPartition]:
        lake, files = self._open(location)
        seam = lake.upto_seq(Place(wanted.topic, wanted.epoch, wanted.partition))
        if wanted.from_seq < seam:
            below = _with_bounds(wanted, wanted.from_seq, min(wanted.to_seq, seam))
            yield LakeRange(below, location, tuple(_holding(files, below)), node)
        if seam < wanted.to_seq:
            yield _with_bounds(wanted, max(seam, wanted.from_seq), wanted.to_seq)

    def _open(self, location: str) -> tuple[Lake, list[StoredFile]]:
        # Most queries need no lake, and what opens one takes time to load.
        from topics.spark.laketable import Lake

        if location not in self._lakes:
            lake = Lake.open(location)
            self._lakes[location] = lake, list(lake.files())
        return self._lakes[location]


def _located(state: PartitionState) -> list[ArchiveProgress]:
    return [archive for archive in state.archives if archive.location]


def _holding(files: list[StoredFile], wanted: SeqRange) -> Iterator[StoredFile]:
    for file in files:
        topic = file.partition_values.get("topic", wanted.topic)
        if topic == wanted.topic and file.first_seq <= wanted.to_seq and file.last_seq > wanted.from_seq:
            yield file


def _with_bounds(wanted: SeqRange, from_seq: int, to_seq: int) -> SeqRange:
    recreated = wanted.recreated and from_seq == wanted.from_seq
    return SeqRange(wanted.topic, wanted.partition, from_seq, to_seq, wanted.epoch, recreated)


def begins_in_lake(options: Options) -> bool:
    """Whether a query that is not told a seq begins with the first record there ever was."""
    return options.history == LAKE and options.starting_seq == EARLIEST


def read_lake(wanted: LakeRange, options: Options, columns: Columns) -> Iterator[Any]:
    """The batches of a range, in the order of their seqs; a gap in the lake is one here."""
    rows = _rows(wanted)
    gaps = rows.filter(pc.is_valid(rows["gap_to"])).to_pylist()
    records = with_tags(_wanted(rows.filter(pc.is_null(rows["gap_to"])), wanted.node, options), options.tags)
    done = 0
    for gap in gaps:
        upto = int(pc.sum(pc.less(records["seq"], gap["seq"])).as_py() or 0)
        yield from _batches(columns, wanted.wanted, records.slice(done, upto - done))
        lost = Gap(
            max(gap["gap_from"], wanted.wanted.from_seq + 1),
            min(gap["gap_to"], wanted.wanted.to_seq),
            gap["gap_reason"],
        )
        yield told(options, columns, wanted.wanted, lost)
        done = upto
    yield from _batches(columns, wanted.wanted, records.slice(done))


def _wanted(records: Any, node: str, options: Options) -> Any:
    chosen = pc.is_valid(records["seq"])
    if node:
        chosen = pc.and_(chosen, pc.fill_null(pc.not_equal(records["node"], node), True))
    if options.starting_ms is not None:
        chosen = pc.and_(chosen, pc.greater_equal(records["ts"], _time(options.starting_ms)))
    if options.ending_ms is not None:
        chosen = pc.and_(chosen, pc.less(records["ts"], _time(options.ending_ms)))
    return records.filter(chosen)


def _time(ms: int) -> Any:
    return pa.scalar(ms, pa.timestamp("ms", tz="UTC")).cast(SCHEMA.field("ts").type)


def _batches(columns: Columns, wanted: SeqRange, records: Any) -> Iterator[Any]:
    for start in range(0, records.num_rows, ARROW_RECORDS_MAX):
        yield columns.batch(wanted.topic, wanted.partition, records.slice(start, ARROW_RECORDS_MAX).select(_RECORD))


def _rows(wanted: LakeRange) -> Any:
    """What the files have of the range, as a table of the lake's columns, ordered by seq."""
    tables = [_within(read_file(wanted.root, file.path, file.partition_values), wanted.wanted) for file in wanted.files]
    return pa.concat_tables([SCHEMA.empty_table(), *tables]).sort_by("seq")


def _within(rows: Any, wanted: SeqRange) -> Any:
    last_seqs = pc.coalesce(rows["gap_to"], rows["seq"])
    inside = pc.and_(pc.greater(last_seqs, wanted.from_seq), pc.less_equal(rows["seq"], wanted.to_seq))
    named = pc.and_(pc.equal(rows["topic"], wanted.topic), pc.equal(rows["partition"], wanted.partition))
    return rows.filter(pc.and_(pc.and_(inside, named), pc.equal(rows["epoch"], wanted.epoch)))
