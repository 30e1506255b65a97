"""Rings of samples: how much they keep, and what a coarser one makes of a finer one."""

from __future__ import annotations

from topics.server.series import STEPS, Ring, Series, Step


def test_a_ring_keeps_so_many_and_no_more() -> None:
    ring = Ring(Step("1s", 1, 3))
    for second in range(6):
        ring.add(second * 1000, {"records": second})
    assert ring.since(-1, ["records"]) == ([2000, 3000, 4000], {"records": [2.0, 3.0, 4.0]})
    assert ring.since(3000, ["records"]) == ([4000], {"records": [4.0]})


def test_a_coarse_ring_has_means_and_of_latencies_the_largest() -> None:
    ring = Ring(Step("10s", 10, 5))
    for second in range(11):
        ring.add(second * 1000, {"records": second, "sync_p99": second})
    assert ring.since(-1, ["records", "sync_p99"]) == ([0], {"records": [4.5], "sync_p99": [9.0]})


def test_what_was_not_measured_is_nothing() -> None:
    ring = Ring(Step("1s", 1, 3))
    ring.add(0, {"records": 1})
    ring.add(1000, {})
    ring.add(2000, {})
    assert ring.since(-1, ["records"])[1] == {"records": [1.0, None]}


def test_it_costs_the_same_however_long_it_runs() -> None:
    series = Series()
    sizes = []
    for second in range(2 * 1440):
        series.add(second * 60_000, {"records": 1.0})
        sizes.append(sum(len(column) for ring in series.rings.values() for column in ring._columns.values()))
    assert len(set(sizes)) == 1
    assert [ring.length for ring in series.rings.values()] == [step.count for step in STEPS]
