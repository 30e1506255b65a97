"""A scan on the loop alone, step by step, while its topic changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.sqlengine.rig import engine_of, host_of
from topics import open as open_engine
from topics.core.match import Match
from topics.errors import TopicRecreated
from topics.sqlengine import scan
from topics.sqlengine.scan import PartitionScan, Wanted, extents


def seqs_of(part: PartitionScan) -> list[int]:
    found = []
    done = False
    while not done:
        step = part.step()
        done = step.done
        found += step_seqs(step)
    return found


def step_seqs(step: scan.Step) -> list[int]:
    return [
        span.block.first_seq + at
        for span in step.spans
        for at in (range(span.start, span.end) if span.chosen is None else span.chosen.tolist())
    ]


@on_loop
async def test_a_scan_ends_where_its_topic_ended_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "STEP_RECORDS", 10)
    async with open_engine(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": f"t{n % 2}"} for n in range(25)])
        engine = engine_of(client)
        (extent,) = extents(engine, "orders")
        part = PartitionScan(engine, extent, Wanted())
        assert step_seqs(part.step()) == list(range(1, 11))
        await orders.write_many([{"data": n} for n in range(25)])
        assert seqs_of(part) == list(range(11, 26))
        assert part.tombstone is None
        assert seqs_of(PartitionScan(engine, extent, Wanted(first_seq=20, last_seq=22))) == [20, 21, 22]
        assert seqs_of(PartitionScan(engine, extent, Wanted(match=Match(b"t1", False)))) == list(range(2, 26, 2))


@on_loop
async def test_what_is_lost_from_under_a_scan_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "STEP_RECORDS", 10)
    async with open_engine(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": "t"} for n in range(10)])
        await orders.write_many([{"data": n, "tag": "t"} for n in range(20)])
        engine = engine_of(client)
        (extent,) = extents(engine, "orders")
        part = PartitionScan(engine, extent, Wanted())
        assert len(step_seqs(part.step())) == 10
        await orders.configure(cap_records=5)
        assert seqs_of(part) == list(range(26, 31))
        assert part.tombstone is not None
        assert (part.tombstone.gap_from, part.tombstone.gap_to) == (11, 25)
        fresh = PartitionScan(engine, extent, Wanted())
        assert seqs_of(fresh) == list(range(26, 31)) and fresh.tombstone is None, "what was lost before is no row"


@on_loop
async def test_a_topic_made_anew_is_not_mixed_with_the_old_one(tmp_path: Path) -> None:
    async with open_engine(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write(1)
        engine = engine_of(client)
        (extent,) = extents(engine, "orders")
        part = PartitionScan(engine, extent, Wanted())
        await orders.drop()
        await orders.write(2)
        with pytest.raises(TopicRecreated):
            part.step()


@on_loop
async def test_what_is_lost_twice_from_under_a_scan_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "STEP_RECORDS", 10)
    async with open_engine(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(60)])
        engine = engine_of(client)
        (extent,) = extents(engine, "orders")
        part = PartitionScan(engine, extent, Wanted())
        assert step_seqs(part.step()) == list(range(1, 11))
        await orders.configure(cap_records=40)
        assert step_seqs(part.step()) == list(range(21, 31)), "11 to 20 are lost"
        await orders.configure(cap_records=20)
        assert seqs_of(part) == list(range(41, 61)), "and 31 to 40"
        assert part.tombstone is not None
        assert (part.tombstone.gap_from, part.tombstone.gap_to, part.tombstone.missed_estimate) == (11, 40, 20)


@on_loop
async def test_what_is_lost_from_under_a_scan_of_tags_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "STEP_RUNS", 1)
    async with open_engine(tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": f"t{n % 2}"} for n in range(10)])
        await host_of(client).checkpoint()
        await orders.write_many([{"data": n, "tag": f"t{n % 2}"} for n in range(20)])
        engine = engine_of(client)
        (extent,) = extents(engine, "orders")
        part = PartitionScan(engine, extent, Wanted(match=Match(b"t1", False)))
        assert step_seqs(part.step()) == [2, 4, 6, 8, 10]
        await orders.configure(cap_records=5)
        assert seqs_of(part) == [26, 28, 30]
        assert part.tombstone is not None
        assert (part.tombstone.gap_from, part.tombstone.gap_to, part.tombstone.reason) == (11, 25, "cap")
