"""Images of rows, as a change data feed has them, made into changes: an operation, the row before and the row after.

A feed has one row for a delete or an insert, and two for an update, in no order within a version. Those two are found
by the declared key. An update of the key itself leaves one image without a partner on each side: it is a delete and an
insert. Whatever else does not fit is an error: a wrong pair would be a lie about two rows.

A writer that overwrites files, or finds nothing to change in them, tells of all their rows that they are gone and that
they are there: what has the same key then is an update, and what is the same altogether is nothing. So a version
changes a row once.

Within a version deletes come first, then updates, then inserts, each in the order of their keys: the order is the same
whenever a version is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from topics.spark.pipeline.stops import KeyBroken

KIND: Final = "_change_type"
VERSION: Final = "_commit_version"
TIME: Final = "_commit_timestamp"
DELETE: Final = "delete"
UPDATE: Final = "update"
INSERT: Final = "insert"
_RANKS: Final = {DELETE: 0, UPDATE: 1, INSERT: 2}


def changes_of(feed: Any, key: Sequence[str], row: Any, table: str) -> Any:
    """The changes that a feed tells, as a table with `op`, `before`, `after`, `version`, `at` (which of the version's)
    and `time`, in order. `row` is the type of a row."""
    kinds = feed[KIND]
    deletes = feed.filter(pc.equal(kinds, DELETE))
    inserts = feed.filter(pc.equal(kinds, INSERT))
    old = feed.filter(pc.equal(kinds, "update_preimage"))
    new = feed.filter(pc.equal(kinds, "update_postimage"))
    old_at, new_at, lone_old, lone_new = _pairs(old, new, [VERSION, *key], table)
    deletes = pa.concat_tables([deletes, old.take(lone_old)])
    inserts = pa.concat_tables([inserts, new.take(lone_new)])
    gone_at, back_at = _rewritten(deletes, inserts, [VERSION, *key])
    gone, back = deletes.take(gone_at), inserts.take(back_at)
    differ = pa.array(_differ(gone, back, [field.name for field in row]))
    parts = [
        _part(DELETE, _without(deletes, gone_at), None, key, row),
        _part(UPDATE, old.take(old_at), new.take(new_at), key, row),
        _part(UPDATE, gone.filter(differ), back.filter(differ), key, row),
        _part(INSERT, None, _without(inserts, back_at), key, row),
    ]
    together = pa.concat_tables(parts)
    keys = [f"key{number}" for number in range(len(key))]
    order = pc.sort_indices(together, [(name, "ascending") for name in ("version", "rank", *keys)])
    ordered = together.take(order).drop_columns(["rank", *keys])
    return ordered.append_column("at", pa.array(_within(ordered["version"].to_numpy())))


def _pairs(old: Any, new: Any, on: list[str], table: str) -> tuple[Any, Any, Any, Any]:
    """Places of images that belong together, and of those that are alone on either side."""
    for images in (old, new):
        _refuse_doubles(images, on, table)
    left = old.select(on).append_column("old", pa.array(np.arange(old.num_rows)))
    right = new.select(on).append_column("new", pa.array(np.arange(new.num_rows)))
    joined = left.join(right, keys=on, join_type="full outer")
    both = joined.filter(pc.and_(pc.is_valid(joined["old"]), pc.is_valid(joined["new"]))).sort_by("old")
    lone_old = joined.filter(pc.is_null(joined["new"])).sort_by("old")
    lone_new = joined.filter(pc.is_null(joined["old"])).sort_by("new")
    gone, come = (np.unique(each[VERSION].to_numpy(), return_counts=True) for each in (lone_old, lone_new))
    if not (np.array_equal(gone[0], come[0]) and np.array_equal(gone[1], come[1])):
        versions = sorted({*gone[0].tolist(), *come[0].tolist()})
        raise KeyBroken(
            f'version {versions[0]} of table "{table}" has {lone_old.num_rows} rows before and {lone_new.num_rows} '
            f"after an update that do not belong together by key ({', '.join(on[1:])}): register the table with the "
            "columns that identify a row",
            table=table,
            version=versions[0],
        )
    return both["old"], both["new"], lone_old["old"], lone_new["new"]


def _rewritten(gone: Any, come: Any, on: list[str]) -> tuple[Any, Any]:
    """Places of rows that one version removes and adds again, if their key is theirs alone."""
    left = gone.select(on).append_column("gone", pa.array(np.arange(gone.num_rows)))
    right = come.select(on).append_column("come", pa.array(np.arange(come.num_rows)))
    joined = left.join(right, keys=on, join_type="inner")
    pairs = [joined[name].to_numpy() for name in ("gone", "come")]
    alone = np.ones(joined.num_rows, bool)
    for places in pairs:
        _, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
        alone &= counts[inverse] == 1 if len(places) else alone
    return pa.array(pairs[0][alone]), pa.array(pairs[1][alone])


def _differ(old: Any, new: Any, names: Sequence[str]) -> Any:
    """Of each pair of rows whether they are not the same."""
    found = np.zeros(old.num_rows, bool)
    for name in names:
        if name in old.column_names:
            before, after = old[name].to_pylist(), new[name].to_pylist()
            found |= np.fromiter((a != b for a, b in zip(before, after, strict=True)), bool, old.num_rows)
    return found


def _without(rows: Any, places: Any) -> Any:
    kept = np.ones(rows.num_rows, bool)
    kept[places.to_numpy()] = False
    return rows.filter(pa.array(kept))


def _refuse_doubles(images: Any, on: list[str], table: str) -> None:
    counted = images.select(on).group_by(on).aggregate([([], "count_all")])
    if counted.num_rows == images.num_rows:
        return
    doubled = counted.filter(pc.greater(counted["count_all"], 1)).slice(0, 1).to_pylist()[0]
    shown = ", ".join(f"{name} = {doubled[name]!r}" for name in on[1:])
    raise KeyBroken(
        f'version {doubled[VERSION]} of table "{table}" updates {doubled["count_all"]} rows with {shown}: that is no '
        "key, so what was before and what is after cannot be told; register the table with the columns that identify a "
        "row",
        table=table,
        version=doubled[VERSION],
    )


def _part(op: str, old: Any | None, new: Any | None, key: Sequence[str], row: Any) -> Any:
    """Changes of one kind; the key that orders them is that of the row as it is last known."""
    known = new if new is not None else old
    assert known is not None
    count = known.num_rows
    columns = {
        "op": pa.array([op] * count, pa.string()) if count else pa.array([], pa.string()),
        "before": _rows(old, row, count),
        "after": _rows(new, row, count),
        "version": known[VERSION].cast(pa.int64()),
        "time": known[TIME].cast(pa.timestamp("ms")).cast(pa.int64()),
        "rank": pa.array(np.full(count, _RANKS[op], np.int8)),
    }
    columns |= {f"key{number}": known[name] for number, name in enumerate(key)}
    return pa.table(columns)


def _rows(images: Any | None, row: Any, count: int) -> Any:
    """The images as rows of the wanted type; a column that the feed has not is null."""
    if images is None:
        return pa.nulls(count, row)
    columns = [
        images[field.name].combine_chunks().cast(field.type) if field.name in images.column_names
        else pa.nulls(count, field.type)
        for field in row
    ]  # fmt: skip
    columns = [each.combine_chunks() if isinstance(each, pa.ChunkedArray) else each for each in columns]
    return pa.StructArray.from_arrays(columns, fields=list(row))


def _within(versions: Any) -> Any:
    """The number of each change within its version, from 0."""
    if not len(versions):
        return np.array([], np.int64)
    _, first, inverse = np.unique(versions, return_index=True, return_inverse=True)
    return np.arange(len(versions)) - first[inverse]
