"""Checking and repairing a directory: what is said, what is changed, and what a crash in the middle leaves."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from tests.engine.damage import DIRECTORY, OPTIONS, START_MS, build, disk_of, flipped, opened, pages, records, see
from topics.core.commands import Append
from topics.engine.findings import FsckReport, Kind
from topics.engine.fsck import fsck, total_bytes
from topics.errors import DirectoryLocked, InvalidRequest
from topics.storage.fs import FileSystem
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import FaultFs, SimulatedCrash

LOCK = f"{DIRECTORY}/lock"
SEGMENT = f"{DIRECTORY}/segments/000000000001.data"


def run(fs: FileSystem, repair: bool = False) -> FsckReport:
    chance = random.Random(7)
    return fsck(fs, DIRECTORY, SimClock(START_MS + 2000), lambda: chance.getrandbits(64), OPTIONS, repair)


def without_lock(disk: FakeDisk) -> dict[str, bytes]:
    return {path: content for path, content in disk.contents().items() if path != LOCK}


def damaged_sample() -> FakeDisk:
    contents = build(closed=False).contents()
    return flipped(contents, SEGMENT, 300, 0x10)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "died"])
@pytest.mark.parametrize("checkpoints", [True, False], ids=["segments", "wal only"])
@pytest.mark.parametrize("power_lost", [True, False], ids=["power lost", "power kept"])
def test_a_healthy_directory_has_no_findings_and_is_not_changed(
    closed: bool, checkpoints: bool, power_lost: bool
) -> None:
    disk = build(closed=closed, checkpoints=checkpoints)
    disk = disk.crash("torn") if power_lost else disk
    before = without_lock(disk)
    report = run(disk)
    assert report.clean and not report.lost
    assert without_lock(disk) == before
    assert report.bytes == sum(map(len, before.values())) == total_bytes(disk, DIRECTORY)
    records = {(kept.topic, kept.partition): kept.records for kept in report.kept}
    driver = opened(disk)
    topics = driver.engine.topics()
    assert records == {
        (state.topic, partition): driver.engine.state(state.topic, partition).count
        for state in topics
        for partition in range(state.partitions)
    }


def test_a_directory_that_just_began_is_healthy() -> None:
    disk = FakeDisk()
    opened(disk)
    assert run(disk.kill()).clean


def test_every_byte_is_counted_for_the_progress_bar() -> None:
    disk = build(closed=False)
    done: list[int] = []
    chance = random.Random(7)
    fsck(disk, DIRECTORY, SimClock(START_MS), lambda: chance.getrandbits(64), OPTIONS, False, done.append)
    assert min(done) >= 0
    assert 0.5 * total_bytes(disk, DIRECTORY) < sum(done) <= total_bytes(disk, DIRECTORY)


def test_a_directory_in_use_is_refused_and_its_holder_named() -> None:
    disk = FakeDisk()
    opened(disk)
    with pytest.raises(DirectoryLocked, match="is held by a process on fake-boot-0"):
        run(disk)


def test_another_directory_is_refused_and_not_made() -> None:
    disk = FakeDisk()
    with pytest.raises(InvalidRequest, match="/data is no data directory"):
        run(disk)
    assert disk.list("/") == []


def test_a_check_of_a_damaged_directory_changes_nothing() -> None:
    disk = damaged_sample()
    before = without_lock(disk)
    report = run(disk)
    assert [(finding.kind, finding.file) for finding in report.findings] == [(Kind.SEGMENT, SEGMENT)]
    assert [(lost.topic, lost.partition, lost.gap_from, lost.gap_to) for lost in report.lost] == [("ledger", 0, 1, 4)]
    assert not report.repaired
    assert without_lock(disk) == before


def test_a_repair_keeps_the_damaged_file_and_reports() -> None:
    disk = damaged_sample()
    before = disk.contents()[SEGMENT]
    report = run(disk, repair=True)
    contents = disk.contents()
    assert report.repaired and len(report.set_aside) == 1
    assert contents[report.set_aside[0]] == before
    assert report.set_aside[0].startswith(f"{DIRECTORY}/damaged-20231114T221322Z/")
    assert report.report_file == f"{DIRECTORY}/repair-20231114T221322Z.json"
    stored = json.loads(contents[report.report_file])
    assert stored["lost"] == [{"topic": "ledger", "partition": 0, "gap_from": 1, "gap_to": 4, "reason": "damage"}]
    assert stored["findings"][0]["offset"] == 184
    assert {(kept["topic"], kept["records"]) for kept in stored["kept"]} >= {("ledger", 6), ("late", 3)}


def test_a_repaired_directory_has_no_findings_and_a_second_repair_does_nothing() -> None:
    disk = damaged_sample()
    run(disk, repair=True)
    before = without_lock(disk)
    again = run(disk, repair=True)
    assert again.clean and not again.repaired and not again.lost
    assert without_lock(disk) == before


def test_two_repairs_in_one_second_keep_both_their_files() -> None:
    disk = damaged_sample()
    first = run(disk, repair=True)
    contents = disk.contents()
    path = next(path for path in contents if path.startswith(f"{DIRECTORY}/segments/") and path.endswith(".data"))
    second = run(flipped(contents, path, 300, 0x10), repair=True)
    assert second.report_file == f"{DIRECTORY}/repair-20231114T221322Z-2.json"
    assert first.report_file != second.report_file


def test_a_repaired_directory_takes_writes_behind_what_was_lost() -> None:
    disk = damaged_sample()
    run(disk, repair=True)
    driver = opened(disk)
    answer = driver.do(Append("ledger", records(50, 1)))
    assert getattr(answer, "first_seq", 0) == 11
    driver.close()
    assert run(disk).clean


def test_a_repair_that_is_cut_short_anywhere_can_be_done_again() -> None:
    contents = damaged_sample().contents()
    finished = disk_of(contents)
    run(finished, repair=True)
    expected = see(opened(finished))
    counted = FaultFs(disk_of(contents))
    run(counted, repair=True)
    changes = [call.index for call in counted.calls if call.changes]
    assert len(changes) > 20
    for index in changes:
        disk = disk_of(contents)
        faulty = FaultFs(disk)
        faulty.crash_at(index, "before")
        with pytest.raises(SimulatedCrash):
            run(faulty, repair=True)
        left = disk.crash("lost")
        run(left, repair=True)
        assert run(left).clean
        assert see(opened(left)) == expected, index


def test_readers_get_one_tombstone_for_the_range() -> None:
    disk = damaged_sample()
    run(disk, repair=True)
    told = [missed for _, missed in pages(opened(disk), "ledger", 0) if missed is not None]
    assert told == [(1, 4, "damage")]


def test_the_cold_directory_is_checked_and_repaired_too() -> None:
    contents = build(closed=True).contents()
    cold = {
        path.replace(f"{DIRECTORY}/segments/000000000001", "/cold/000000000001"): contents[path] for path in contents
    }
    options = replace(OPTIONS, cold_dir="/cold")
    chance = random.Random(7)

    def check(disk: FakeDisk, repair: bool = False) -> FsckReport:
        return fsck(disk, DIRECTORY, SimClock(START_MS), lambda: chance.getrandbits(64), options, repair)

    assert check(disk_of(cold)).clean
    damaged = flipped(cold, "/cold/000000000001.data", 300, 0x10)
    report = check(damaged, repair=True)
    assert [finding.file for finding in report.findings] == ["/cold/000000000001.data"]
    assert [copy.rpartition("/")[2] for copy in report.set_aside] == ["cold-000000000001.data"]
    assert check(damaged).clean
    assert damaged.list("/cold") == []


def test_a_repair_that_fails_behind_its_snapshot_counts_and_its_report_tells() -> None:
    disk = damaged_sample()
    fs = FaultFs(disk)
    fs.fail("write_at", path="*.wal", always=True)
    with pytest.raises(OSError, match="Input/output error"):
        run(fs, repair=True)
    again = run(disk, repair=True)
    assert again.clean
    path = f"{DIRECTORY}/repair-20231114T221322Z.json"
    assert f"a repair was cut short; {path} says what it gave up, and what is left is checked here" in again.notes
    stored = json.loads(disk.contents()[path])
    assert not stored["repaired"]
    assert stored["lost"] == [{"topic": "ledger", "partition": 0, "gap_from": 1, "gap_to": 4, "reason": "damage"}]
    assert [missed for _, missed in pages(opened(disk), "ledger", 0)] == [(1, 4, "damage")]
