"""A lake: one Delta table, and what a commit in it means.

A commit names files that tasks wrote, and carries two kinds of marks, which Delta keeps in its log for good:

    the query and batch that it belongs to     a batch that comes again, after a crash, adds nothing
    how far each partition of each topic is    where a new query begins, and what the server is told

So the table alone says what is in it; a lost checkpoint makes neither holes nor doubles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

import msgspec
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from topics.clock import SystemClock
from topics.errors import Conflict, InvalidRequest, NotFound
from topics.spark.lakecolumns import LAYOUTS, SCHEMA, STATISTICS
from topics.spark.lakefile import LakeFile, Place, StoredFile

_QUERY: Final = "query:"
_PROGRESS: Final = "topic:"
_ATTEMPTS: Final = 20
"""How often others may come first."""
_CONFIGURATION: Final = {
    "delta.dataSkippingStatsColumns": ",".join(STATISTICS),
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.deletedFileRetentionDuration": "interval 7 days",
}


class Part(msgspec.Struct, frozen=True):
    """What one task has archived: everything of a partition behind `from_seq`, up to and with `to_seq`."""

    topic: str
    epoch: int
    partition: int
    from_seq: int
    to_seq: int
    files: list[LakeFile]

    @property
    def place(self) -> Place:
        return Place(self.topic, self.epoch, self.partition)


class Lake:
    """A table at a path or address, as it is when it is opened; `open` anew for what came since."""

    def __init__(self, root: str, table: DeltaTable) -> None:
        self.root = root
        self.table = table

    @classmethod
    def open(cls, root: str) -> Lake:
        try:
            return cls(root, DeltaTable(root))
        except TableNotFoundError:
            raise NotFound(f"there is no lake at {root}; `topics lake archive` makes one", location=root) from None

    @classmethod
    def create(cls, root: str, layout: str = "topic,date") -> Lake:
        """The lake there, made if there is none; one that is there must be laid out as asked."""
        if layout not in LAYOUTS:
            expected = " or ".join(f'"{name}"' for name in LAYOUTS)
            raise InvalidRequest(f'a lake is laid out by {expected}, not "{layout}"', field="layout", expected=expected)
        table = DeltaTable.create(
            root,
            Schema.from_arrow(SCHEMA),
            mode="ignore",
            partition_by=list(LAYOUTS[layout]),
            name="topics",
            configuration=_CONFIGURATION,
        )
        lake = cls(root, table)
        if lake.layout != LAYOUTS[layout]:
            raise Conflict(
                f"the lake at {root} is laid out by {','.join(lake.layout)}, not {layout}: that is fixed",
                location=root,
                layout=",".join(lake.layout),
            )
        return lake

    @property
    def layout(self) -> tuple[str, ...]:
        return tuple(self.table.metadata().partition_columns)

    @property
    def version(self) -> int:
        return self.table.version()

    def committed(self, query_id: str) -> int:
        """The last batch of a query that is in the table; -1 for none."""
        found = self.table.transaction_version(_QUERY + query_id)
        return -1 if found is None else int(found)

    def upto_seq(self, place: Place) -> int:
        """The table has what there was of a partition up to here; 0 for nothing."""
        found = self.table.transaction_version(_mark(place))
        return 0 if found is None else int(found)

    def commit(self, query_id: str, batch_id: int, parts: Sequence[Part]) -> bool:
        """Add what the parts of a batch hold, once for each batch of a query; whether this call did it.

        Each partition goes on exactly where the table ends, so that there is neither a hole nor anything twice. Where
        it does not, because another query archives the same topics, the batch is refused.
        """
        actions: list[AddAction | RemoveAction] = [_added(file) for part in parts for file in part.files]
        latest = self
        for _ in range(_ATTEMPTS):
            if latest.committed(query_id) >= batch_id:
                return False
            marks = [Transaction(_QUERY + query_id, batch_id)]
            marks += [Transaction(_mark(place), upto_seq) for place, upto_seq in latest._ends(parts).items()]
            if latest._write(actions, CommitProperties(app_transactions=marks)):
                return True
            # An attempt that was taken for dead has come first, another query takes the same topics, or something was
            # erased: a look at how it is now tells them apart.
            latest = Lake.open(self.root)
        raise _changed(self.root)

    def _ends(self, parts: Sequence[Part]) -> dict[Place, int]:
        """How far each partition is with these parts, which must follow on what is there."""
        ends: dict[Place, int] = {}
        for part in sorted(parts, key=lambda part: (part.place, part.from_seq)):
            place = part.place
            upto_seq = ends.get(place, self.upto_seq(place))
            if part.from_seq != upto_seq:
                raise Conflict(
                    f"{self.root} has topic {place.topic}, partition {place.partition}, up to seq {upto_seq}, but a "
                    f"batch begins behind {part.from_seq}: something else archives it as well",
                    topic=place.topic,
                    partition=place.partition,
                    upto_seq=upto_seq,
                )
            ends[place] = part.to_seq
        return ends

    def replace(self, removed: Sequence[StoredFile], added: Sequence[LakeFile], is_change: bool = True) -> None:
        """Put files in the place of others, in one commit; `Conflict` when somebody else changed those meanwhile.

        Without `is_change` the rows are the same in other files, which concerns nobody who follows the table.
        """
        now_ms = SystemClock().now_ms()
        actions: list[AddAction | RemoveAction] = [_added(file, is_change) for file in added]
        actions += [
            RemoveAction(file.path, is_change, now_ms, file.size_bytes, dict(file.partition_values)) for file in removed
        ]
        # Delta takes files out that a commit before took out already, so it may not move a commit behind others: each
        # attempt is for the version that was looked at, and for no other.
        as_it_was = CommitProperties(max_commit_retries=0)
        for _ in range(_ATTEMPTS):
            latest = Lake.open(self.root)
            if not {file.path for file in removed} <= {file.path for file in latest.files()}:
                break
            if latest._write(actions, as_it_was):
                return
        raise _changed(self.root)

    def _write(self, actions: list[AddAction | RemoveAction], properties: CommitProperties) -> bool:
        """Whether a commit was made; it is not where somebody else made one that it does not go with."""
        schema, layout = self.table.schema(), list(self.layout)
        try:
            self.table.create_write_transaction(actions, "append", schema, layout, commit_properties=properties)
        except CommitFailedError:
            return False
        return True

    def files(self, topics: Iterable[str] | None = None, first_seq: int = 0) -> Iterator[StoredFile]:
        """The files with rows of these topics (of all when None) that may hold seqs from `first_seq` on."""
        wanted = None if topics is None else set(topics)
        actions = pa.table(self.table.get_add_actions(flatten=True)).to_pylist()
        for action in actions:
            values = {name: action[f"partition.{name}"] for name in self.layout}
            if wanted is not None and values.get("topic", "") not in wanted and "topic" in values:
                continue
            # A column without statistics in the whole table has none here.
            last_seq = max(action.get("max.seq") or 0, action.get("max.gap_to") or 0)
            if last_seq < first_seq:
                continue
            yield StoredFile(
                unquote(action["path"]),
                action["size_bytes"],
                action["num_records"],
                values,
                action.get("min.seq") or 0,
                last_seq,
            )


def _changed(root: str) -> Conflict:
    return Conflict(f"{root} was changed meanwhile, and nothing was done: try again", location=root)


def _mark(place: Place) -> str:
    return f"{_PROGRESS}{place.topic}:{place.epoch}:{place.partition}"


def _added(file: LakeFile, is_change: bool = True) -> AddAction:
    values = dict(file.partition_values)
    return AddAction(file.path, file.size_bytes, values, file.modified_ms, is_change, file.statistics)
