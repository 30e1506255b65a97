"""Who needs which segment, and when its files go."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.engine.rig import Rig
from topics.errors import Damaged, DirectoryLocked
from topics.storage.segmentrun import SegmentRun
from topics.storage.store import Store
from topics.testing import FakeDisk, SimClock


def salts() -> Callable[[], int]:
    numbers = count(1)
    return lambda: next(numbers)


def open_store(disk: FakeDisk, hot_bytes: int = 1 << 20, cold_dir: str | None = None) -> Store:
    return Store(disk, "/data", SimClock(), salts(), hot_bytes, cold_dir)


def two_sections() -> FakeDisk:
    """Segment 1 with a section each of two topics."""
    rig = Rig()
    rig.write("odd", 1, 2)
    rig.write("even", 1)
    rig.driver.close()
    return rig.disk


def test_the_directory_is_held_until_the_store_is_closed() -> None:
    disk = FakeDisk()
    store = open_store(disk)
    with pytest.raises(DirectoryLocked):
        open_store(disk)
    store.close()
    store.close()
    open_store(disk).close()
    assert {"segments", "snapshots", "wal", "lock"} == set(disk.list("/data"))


def test_a_segment_is_needed_as_long_as_a_run_of_it_is() -> None:
    store = open_store(two_sections())
    first, second = store.run(1, 0), store.run(1, 1)
    assert isinstance(first, SegmentRun) and first.segment_no == 1
    store.release(first)
    assert store.take_unneeded() == set()
    store.release(second)
    assert store.take_unneeded() == {1}
    assert store.take_unneeded() == set(), "it is taken once"
    assert list(store.open_segments()) == []


def test_a_segment_that_was_not_removed_is_taken_again() -> None:
    store = open_store(two_sections())
    store.release(store.run(1, 0))
    store.keep_unneeded(store.take_unneeded())
    assert store.take_unneeded() == {1}


def test_a_run_makes_its_segment_needed_again() -> None:
    store = open_store(two_sections())
    store.release(store.run(1, 0))
    store.run(1, 1)
    assert store.take_unneeded() == set()


def test_releasing_a_run_of_a_segment_that_was_rewritten_says_nothing() -> None:
    store = open_store(two_sections())
    run = store.run(1, 0)
    store.forget(1)
    store.release(run)
    assert store.take_unneeded() == set()


def test_new_segments_nobody_uses_are_unneeded() -> None:
    store = open_store(two_sections())
    number = store.new_segment_number()
    store.drop_unused([number])
    assert store.take_unneeded() == {number}


def test_numbers_are_never_used_twice() -> None:
    store = open_store(two_sections())
    store.run(1, 0)
    assert [store.new_segment_number() for _ in range(3)] == [2, 3, 4]


def test_a_missing_segment_is_damage_that_names_the_file() -> None:
    store = open_store(FakeDisk())
    with pytest.raises(Damaged) as found:
        store.segment(3)
    assert found.value.detail["file"] == "/data/segments/000000000003.data"


def test_a_sweep_removes_what_no_run_needs() -> None:
    disk = two_sections()
    store = open_store(disk)
    store.snapshots.load()
    store.run(1, 0)
    assert store.sweep() == []
    store.close()
    other = open_store(disk)
    other.snapshots.load()
    assert sorted(other.sweep()) == ["/data/segments/000000000001.data", "/data/segments/000000000001.idx"]


def test_files_are_counted_in_every_place() -> None:
    disk = two_sections()
    disk.make_dir("/cold")
    disk.open("/cold/000000000009.data", "create").close()
    store = open_store(disk, cold_dir="/cold")
    names = [path for path in disk.contents() if path != "/data/lock"]
    assert store.file_count() == len(names)
