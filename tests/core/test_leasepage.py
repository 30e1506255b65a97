"""Pages of leases against the whole table, sorted or walked."""

from __future__ import annotations

import pytest

from topics.core import leasepage
from topics.core.leases import DELAYED, LEASED, LeaseTable


def table() -> LeaseTable:
    leases = LeaseTable()
    leases.lease([3, 4, 5, 6, 9], 100, "a", 0, token=1)
    leases.delay([7, 12], 500)
    leases.lease([10, 11], 200, "b", 0, token=9)
    leases.release([5], 0, now_ms=1)
    return leases


@pytest.mark.parametrize("looks_max", [leasepage.LOOKS_MAX, 2], ids=["sorted", "walked"])
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_pages_are_all_entries_in_a_state_in_order(monkeypatch: pytest.MonkeyPatch, looks_max: int, limit: int) -> None:
    monkeypatch.setattr(leasepage, "LOOKS_MAX", looks_max)
    leases = table()
    for state in (LEASED, DELAYED):
        found: list[int] = []
        after: int | None = 0
        pages = 0
        while after is not None:
            seqs, after = leases.page(after, limit, state)
            assert len(seqs) <= limit
            found += seqs
            pages += 1
            assert pages < 20
        assert found == [lease.seq for lease in leases if lease.state == state]


def test_an_empty_table_has_an_empty_page() -> None:
    assert LeaseTable().page(0, 10, LEASED) == ([], None)
