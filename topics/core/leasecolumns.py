"""All leases of a table as columns, as a snapshot keeps them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from topics.core.holders import NOBODY, Holders
from topics.core.leaserows import LeaseRows
from topics.core.leaseruns import LeaseRuns


class LeaseColumns(NamedTuple):
    """All entries, ascending by seq: eight bytes little endian each, or four."""

    seqs: bytes
    due_times: bytes
    tokens: bytes
    deliveries: bytes
    holders: bytes
    """Places in `nodes`, counted from 1; 0 is nobody."""
    nodes: list[str]


NO_LEASES: Final = LeaseColumns(b"", b"", b"", b"", b"", [])


def columns_of(rows: LeaseRows, runs: LeaseRuns, holders: Holders) -> LeaseColumns:
    """Of a run, a row for each of its records."""
    slots = np.fromiter(rows.slots.values(), np.int64, len(rows))
    table = np.array(
        [(run.first_seq, run.due_ms, run.token, run.holder, run.last_seq - run.first_seq + 1) for run in runs],
        np.uint64,
    ).reshape(-1, 5)
    counts = table[:, 4].astype(np.int64)
    in_runs = np.repeat(table, counts, axis=0)
    offsets = (np.arange(len(in_runs)) - np.repeat(np.cumsum(counts) - counts, counts)).astype(np.uint64)
    seqs = np.append(np.fromiter(rows.slots, np.uint64, len(rows)), in_runs[:, 0] + offsets)
    due_times = np.append(np.array(rows.due_times, np.uint64)[slots], in_runs[:, 1])
    tokens = np.append(np.array(rows.tokens, np.uint64)[slots], in_runs[:, 2] + offsets)
    deliveries = np.append(np.array(rows.deliveries, np.uint32)[slots], np.ones(len(in_runs), np.uint32))
    numbers = np.append(np.array(rows.holders, np.uint32)[slots], in_runs[:, 3].astype(np.uint32))
    order = np.argsort(seqs)
    ids, places = np.unique(numbers[order], return_inverse=True)
    named = bool(len(ids)) and int(ids[0]) == NOBODY
    return LeaseColumns(
        seqs[order].tobytes(),
        due_times[order].tobytes(),
        tokens[order].tobytes(),
        deliveries[order].tobytes(),
        (places + (0 if named else 1)).astype(np.uint32).tobytes(),
        [holders.nodes[holder] for holder in ids.tolist() if holder != NOBODY],
    )


def rows_of(columns: LeaseColumns) -> Iterator[tuple[int, int, int, int, str]]:
    """Seq, due time, token, deliveries and holder of each; nobody is called nothing."""
    names = ["", *columns.nodes]
    rows = zip(
        array("Q", columns.seqs),
        array("Q", columns.due_times),
        array("Q", columns.tokens),
        array("I", columns.deliveries),
        array("I", columns.holders),
        strict=True,
    )
    return ((seq, due_ms, token, deliveries, names[place]) for seq, due_ms, token, deliveries, place in rows)
