"""The lease table against a naive one, and what it costs."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from topics.core.leases import DELAYED, FREE, LEASED, LEAVING, LeaseTable, lease_id, parse_lease_id

FIRST, LAST = 9, 20
"""Seqs of two pages of runs."""
STRETCHES = st.tuples(st.integers(FIRST, LAST), st.integers(1, 6)).map(
    lambda stretch: list(range(stretch[0], min(LAST, sum(stretch)) + 1))
)
SEQS = st.one_of(
    st.lists(st.integers(FIRST, LAST), unique=True, min_size=1, max_size=4).map(sorted),
    STRETCHES,
)
NODES = st.sampled_from(["a", "b"])
CONNECTIONS = st.sampled_from([0, 0, 5])
TIMES = st.integers(0, 40)


@dataclass
class Row:
    due_ms: int
    node: str = ""
    connection: int = 0
    token: int = 0
    deliveries: int = 0
    leaving: bool = False

    def state(self, now_ms: int) -> int:
        if self.leaving:
            return LEAVING
        if self.due_ms <= now_ms:
            return FREE
        return LEASED if self.node else DELAYED


class TableMachine(RuleBasedStateMachine):
    """All that may be done to a table, in any order; the model is a dict of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.table = LeaseTable()
        self.rows: dict[int, Row] = {}
        self.now_ms = 0
        self.token = 1

    @rule(seqs=SEQS, node=NODES, connection=CONNECTIONS, lease_ms=st.integers(1, 10))
    def lease(self, seqs: list[int], node: str, connection: int, lease_ms: int) -> None:
        seqs = [seq for seq in seqs if seq not in self.rows or not self.rows[seq].leaving]
        due_ms = self.now_ms + lease_ms
        self.table.lease(seqs, due_ms, node, connection, self.token)
        for at, seq in enumerate(seqs):
            deliveries = self.rows[seq].deliveries if seq in self.rows else 0
            self.rows[seq] = Row(due_ms, node, connection, self.token + at, deliveries + 1)
        self.token += len(seqs)

    @rule(seqs=SEQS, due_ms=TIMES)
    def delay(self, seqs: list[int], due_ms: int) -> None:
        self.table.delay(seqs, due_ms)
        for seq in seqs:
            self.rows.setdefault(seq, Row(due_ms))

    @rule(seqs=SEQS, delay_ms=st.integers(0, 5))
    def release(self, seqs: list[int], delay_ms: int) -> None:
        seqs = [seq for seq in seqs if seq not in self.rows or not self.rows[seq].leaving]
        due_ms = self.now_ms + delay_ms
        self.table.release(seqs, due_ms, self.now_ms)
        for seq in seqs:
            if seq in self.rows:
                row = self.rows[seq]
                self.rows[seq] = Row(due_ms, token=row.token, deliveries=row.deliveries)

    @rule(seqs=SEQS, lease_ms=st.integers(1, 10))
    def extend(self, seqs: list[int], lease_ms: int) -> None:
        self.table.extend(seqs, self.now_ms + lease_ms)
        for seq in seqs:
            if seq in self.rows and self.rows[seq].node:
                self.rows[seq].due_ms = self.now_ms + lease_ms

    @rule(seqs=SEQS)
    def leave(self, seqs: list[int]) -> None:
        self.table.leave(seqs)
        for seq in seqs:
            row = self.rows.get(seq) or Row(0)
            self.rows[seq] = Row(row.due_ms, token=row.token, deliveries=row.deliveries, leaving=True)

    @rule(seqs=SEQS)
    def forget(self, seqs: list[int]) -> None:
        self.table.forget(seqs)
        for seq in seqs:
            self.rows.pop(seq, None)

    @rule(low=st.integers(FIRST, LAST + 1))
    def forget_below(self, low: int) -> None:
        self.table.forget_below(low)
        self.rows = {seq: row for seq, row in self.rows.items() if seq >= low}

    @rule(step_ms=st.integers(0, 12))
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(limit=st.integers(1, 5), upto=st.integers(FIRST, LAST))
    def take_free(self, limit: int, upto: int) -> None:
        self.table.expire(self.now_ms)
        free = sorted(seq for seq, row in self.rows.items() if row.state(self.now_ms) == FREE)
        wanted = [seq for seq in free if seq <= upto]
        taken = self.table.take_free(limit, upto)
        assert taken == wanted[:limit]
        more = self.table.take_free(limit, upto)
        assert more == wanted[limit : 2 * limit], "what was taken does not come again"
        self.table.give_back(taken + more)

    @rule()
    def keep_and_load(self) -> None:
        """A snapshot says the same, but for connections, which do not outlive their process."""
        leaving = [seq for seq, row in self.rows.items() if row.leaving]
        self.table = LeaseTable.of(self.table.columns())
        self.table.leave(leaving)
        for row in self.rows.values():
            row.connection = 0

    @invariant()
    def is_what_the_model_says(self) -> None:
        self.table.expire(self.now_ms)
        expected = [
            (seq, row.state(self.now_ms), row.due_ms, row.node, row.token, row.deliveries)
            for seq, row in sorted(self.rows.items())
        ]
        assert [tuple(lease) for lease in self.table] == expected
        states = [state for _, state, *_ in expected]
        assert self.table.counts == [states.count(state) for state in (FREE, LEASED, DELAYED, LEAVING)]
        assert len(self.table) == len(expected)
        held = sorted(s for s, row in self.rows.items() if row.connection == 5 and row.state(self.now_ms) == LEASED)
        assert self.table.holders.on_connection(5) == held
        holders = {(row.node, row.connection) for row in self.rows.values() if row.node}
        assert len(self.table.holders) == len(holders), "each as long as a lease names it"
        pending = [row.due_ms for row in self.rows.values() if row.state(self.now_ms) in (LEASED, DELAYED)]
        next_ms = self.table.next_due_ms()
        assert not pending or (next_ms is not None and next_ms <= min(pending)), "nothing is due before it is told"

    @rule(seq=st.integers(FIRST, LAST), node=NODES, token=st.integers(0, 30))
    def ask_who_holds(self, seq: int, node: str, token: int) -> None:
        row = self.rows.get(seq)
        own = row is not None and not row.leaving and row.node == node
        assert self.table.split(node, [seq, seq], None) == (([seq], []) if own else ([], [seq, seq]))
        fenced = own and row is not None and row.token == token
        assert self.table.split(node, [seq], [token]) == (([seq], []) if fenced else ([], [seq]))

    @rule(seqs=SEQS, node=NODES, off=st.sampled_from([0, 0, 1]))
    def ask_who_holds_several(self, seqs: list[int], node: str, off: int) -> None:
        rows = [self.rows.get(seq) for seq in seqs]
        held = [seq for seq, row in zip(seqs, rows, strict=True) if row and not row.leaving and row.node == node]
        assert self.table.split(node, seqs, None) == (held, [seq for seq in seqs if seq not in held])
        tokens = [(row.token if row else 0) + off for row in rows]
        fenced = [] if off else held
        assert self.table.split(node, seqs, tokens) == (fenced, [seq for seq in seqs if seq not in fenced])


TableMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestTable = TableMachine.TestCase


@pytest.mark.parametrize(("first", "last"), [(first, last) for first in range(1, 9) for last in range(first, 9)])
def test_what_is_left_of_a_run_runs_out_in_its_time(first: int, last: int) -> None:
    """Whichever part of it is done, kept for longer or given back."""
    part = range(first, last + 1)
    rest = [seq for seq in range(1, 9) if seq not in part]
    for done in (
        lambda table: table.forget(part),
        lambda table: table.extend(part, 500),
        lambda table: table.release(part, 500, 0),
    ):
        table = LeaseTable()
        table.lease(range(1, 9), 100, "a", 0, 1)
        done(table)
        table.expire(99)
        assert table.counts[FREE] == 0 and table.split("a", rest or [99], None) == (rest, [] if rest else [99])
        table.expire(100)
        assert table.take_free(9, 9) == rest
        table.expire(500)
        assert table.counts[LEASED] == table.counts[DELAYED] == 0
        table.forget(range(1, 9))
        assert (len(table), len(table.holders), table.counts) == (0, 0, [0, 0, 0, 0])


def test_leases_that_only_look_alike_are_kept_apart() -> None:
    table = LeaseTable()
    table.lease([1, 2], 50, "a", 0, 1)
    table.lease([3], 50, "a", 0, 9)
    table.lease([4], 50, "b", 0, 10)
    table.lease([5], 51, "b", 0, 11)
    assert list(LeaseTable.of(table.columns())) == list(table)
    assert [lease.token for lease in table] == [1, 2, 9, 10, 11]


def test_heaps_do_not_grow_with_what_is_done_with() -> None:
    """Leases of a day, completed at once: what is left is what is held."""
    table = LeaseTable()
    for round_no in range(300):
        seqs = range(1 + round_no * 100, 101 + round_no * 100)
        table.lease(seqs, 86_400_000 + round_no, "a", 0, 1)
        table.extend(seqs, 90_000_000 + round_no)
        table.forget(seqs)
    assert len(table) == 0
    assert table._schedule.count <= 2048 and len(table._rows.states) <= 100


def test_the_schedule_does_not_grow_with_leases_that_are_kept() -> None:
    table = LeaseTable()
    table.lease([1], 100, "a", 0, 1)
    table.lease([2, 3], 90_000, "b", 0, 2)
    table.delay([4], 80_000)
    table.lease([5], 100, "c", 0, 9)
    table.release([5], 0, 1)
    for due_ms in range(1000, 6000):
        table.extend([1], due_ms)
        assert table._schedule.count <= 2 * len(table) + 1024
    free = {}
    for now_ms in (5998, 5999, 80_000, 90_000):
        table.expire(now_ms)
        free[now_ms] = [lease.seq for lease in table if lease.state == FREE]
    assert free == {5998: [5], 5999: [1, 5], 80_000: [1, 4, 5], 90_000: [1, 2, 3, 4, 5]}


def test_conditions_tell_state_and_deliveries_of_each() -> None:
    table = LeaseTable()
    table.lease([1, 2], 100, "a", 0, 1)
    table.delay([4], 500)
    table.release([2], 0, 1)
    table.lease([2], 200, "b", 0, 3)
    table.release([1], 0, 1)
    assert table.conditions([4, 3, 2, 1]) == ([DELAYED, FREE, LEASED, FREE], [0, 0, 2, 1])


def test_the_free_heap_does_not_grow_with_leases_that_come_and_go() -> None:
    table = LeaseTable()
    for round_no in range(5000):
        table.lease([1], round_no + 1, "a", 0, 1)
        table.expire(round_no + 1)
    assert table.counts[FREE] == 1 and len(table._free) <= 1026


def test_a_lease_costs_little_and_a_hundred_thousand_can_run_out_at_once() -> None:
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        table = LeaseTable()
        for first in range(1, 100_001, 100):
            table.lease(range(first, first + 100), 1000 + first, f"worker-{first % 16}", 0, first)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 100_000 < 32
    table.expire(200_000)
    assert table.counts == [100_000, 0, 0, 0]
    assert table.take_free(3, 100_000) == [1, 2, 3]


@given(st.integers(1, 2**64 - 1))
def test_a_lease_id_names_its_token(token: int) -> None:
    assert parse_lease_id(lease_id(token)) == token


def test_other_texts_name_no_lease() -> None:
    texts = ["", "lease_", "lease_-1", "lease_0x1f", "1f", "lease_ 1", "lease_é", "lease_01", "lease_A"]
    texts.append("lease_" + "1" * 17)
    assert [parse_lease_id(text) for text in texts] == [0] * len(texts)
