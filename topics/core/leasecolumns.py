"""All leases of a table as columns, as a snapshot keeps them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

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


def columns_of(rows: LeaseRows, runs: LeaseRuns, holders: Holders) -> LeaseColumns:
    slots = np.fromiter(rows.slots.values(), np.int64, len(rows))
    own = [
        np.fromiter(rows.slots, np.uint64, len(rows)),
        np.array(rows.due_times, np.uint64)[slots],
        np.array(rows.tokens, np.uint64)[slots],
        np.array(rows.deliveries, np.uint32)[slots],
        np.array(rows.holders, np.uint32)[slots],
    ]
    all_runs = [(run.first_seq, run.due_ms, run.token, run.holder, run.last_seq - run.first_seq + 1) for run in runs]
    table = np.array(all_runs, np.uint64).reshape(-1, 5)
    counts = table[:, 4].astype(np.int64)
    first_seqs, due_times, tokens, numbers = (np.repeat(table[:, column], counts) for column in range(4))
    offsets = (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)).astype(np.uint64)
    ones = np.ones(len(offsets), np.uint32)
    theirs = [first_seqs + offsets, due_times, tokens + offsets, ones, numbers.astype(np.uint32)]
    seqs, due_times, tokens, deliveries, numbers = (np.concatenate(pair) for pair in zip(own, theirs, strict=True))
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
