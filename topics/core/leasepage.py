"""Leases in order of their seqs, a page at a time, in bounded time however many there are.

A lease table finds entries by seq and by due time, and has no order of seqs. Where it holds few entries, those in
question are sorted. Where it holds many, it is dense: seqs are looked at one by one, so many at most, and a page may
then be short, or empty, and says where to go on.
"""

from __future__ import annotations

from typing import Final

from topics.core.leaserows import LeaseRows
from topics.core.leaseruns import LeaseRuns

LOOKS_MAX: Final = 50_000
"""Entries that are sorted, or seqs that are looked at, for one page."""


def seqs_behind(
    rows: LeaseRows, runs: LeaseRuns, after: int, highest: int, limit: int, wanted: tuple[int, bool]
) -> tuple[list[int], int | None]:
    """Up to so many seqs behind `after` that are in a state, ascending, and where to go on; None when that is all.

    `wanted` is the state of rows, and whether what is in runs is in it.
    """
    state, with_runs = wanted
    if len(rows.slots) + runs.count > LOOKS_MAX:
        return _walk(rows, runs, after, highest, limit, wanted)
    begins = [seq for seq, slot in rows.slots.items() if seq > after and rows.states[slot] == state]
    if with_runs:
        begins += [max(run.first_seq, after + 1) for run in runs if run.last_seq > after]
    found: list[int] = []
    for begin in sorted(begins):
        run = runs.at(begin)
        found += (begin,) if run is None else range(begin, min(run.last_seq, begin + limit) + 1)
        if len(found) > limit:
            return found[:limit], found[limit - 1]
    return found, None


def _walk(
    rows: LeaseRows, runs: LeaseRuns, after: int, highest: int, limit: int, wanted: tuple[int, bool]
) -> tuple[list[int], int | None]:
    state, with_runs = wanted
    found: list[int] = []
    last = min(highest, after + LOOKS_MAX)
    for seq in range(after + 1, last + 1):
        slot = rows.slots.get(seq)
        if rows.states[slot] == state if slot is not None else with_runs and runs.at(seq) is not None:
            found.append(seq)
            if len(found) == limit:
                return found, seq if seq < highest else None
    return found, last if last < highest else None
