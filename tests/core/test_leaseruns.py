"""Runs of leases against a naive table of single ones."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from topics.core.leaseruns import LeaseRun, LeaseRuns

Row = tuple[int, int, int]
"""Due time, holder and token of one job."""

SEQS_MAX = 80


def filled(cuts: list[int]) -> tuple[LeaseRuns, dict[int, Row]]:
    """Runs between these seqs, some of them with gaps before the next."""
    runs = LeaseRuns()
    rows: dict[int, Row] = {}
    token = 1
    for place, (first, end) in enumerate(pairwise(cuts)):
        last = end - 1 - place % 2
        if last < first:
            continue
        runs.add(LeaseRun(first, last, 1000 + place, place + 1, token))
        rows |= {seq: (1000 + place, place + 1, token + seq - first) for seq in range(first, last + 1)}
        token += last - first + 1
    return runs, rows


def rows_of(runs: LeaseRuns) -> dict[int, Row]:
    return {
        seq: (run.due_ms, run.holder, run.token_of(seq))
        for run in runs
        for seq in range(run.first_seq, run.last_seq + 1)
    }


CUTS = st.lists(st.integers(1, SEQS_MAX), unique=True, max_size=12).map(sorted)


@given(CUTS, st.lists(st.tuples(st.integers(1, SEQS_MAX), st.integers(0, 20)), max_size=12))
def test_a_run_is_found_by_any_of_its_seqs_and_cut_anywhere(cuts: list[int], taken: list[tuple[int, int]]) -> None:
    runs, rows = filled(cuts)
    for first, more in taken:
        run = runs.at(first)
        if run is None:
            assert first not in rows
            continue
        last = min(run.last_seq, first + more)
        behind = runs.cut(run, first, last)
        assert (behind is None) == (last == run.last_seq)
        assert behind is None or (behind.first_seq, behind.last_seq) == (last + 1, run.last_seq)
        for seq in range(first, last + 1):
            del rows[seq]
    assert rows_of(runs) == rows
    assert (runs.job_count, runs.count) == (len(rows), len(list(runs)))
    assert {seq for seq in range(SEQS_MAX + 2) if runs.at(seq) is not None} == rows.keys()


@given(CUTS, st.integers(0, SEQS_MAX), st.integers(0, SEQS_MAX))
def test_runs_are_found_by_where_they_begin(cuts: list[int], first: int, count: int) -> None:
    runs, _ = filled(cuts)
    found = sorted(run.first_seq for run in runs.between(first, first + count))
    assert found == sorted(run.first_seq for run in runs if first <= run.first_seq < first + count)


def test_a_run_grows_over_pages_and_nothing_is_left_of_what_is_cut() -> None:
    runs = LeaseRuns()
    run = LeaseRun(10, 10, 5, 1, 100)
    runs.add(run)
    for _ in range(90):
        runs.grow(run)
    assert (run.last_seq, runs.job_count, runs.at(100), runs.at(101)) == (100, 91, run, None)
    assert runs.cut(run, 10, 100) is None
    assert (runs.count, runs.job_count, list(runs), runs._pages) == (0, 0, [], {})
