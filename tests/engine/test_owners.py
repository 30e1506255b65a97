"""Segments of other directories: copied back by mistake, whole, and not what they replace."""

from __future__ import annotations

import pytest

from tests.engine.damage import DIRECTORY, OPTIONS, START_MS, disk_of, flipped, opened, records, see
from tests.engine.rig import SMALL, Rig
from tests.engine.test_salvage import SEGMENTS, SNAPSHOTS, repaired, texts, told, without_snapshots
from topics.core.commands import Append, Configure, Publish, Stage
from topics.core.records import Records
from topics.engine.findings import Kind
from topics.engine.salvage import SEQS_SKIPPED
from topics.errors import Damaged
from topics.limits import PACKS_MAX
from topics.storage.segmentfile import scan
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk

TWO = {"odd": 3, "even": 3}


def written(topics: dict[str, int], seed: int = 0) -> dict[str, bytes]:
    """The files of a directory with so many records in each of these topics, all in one segment."""
    disk = FakeDisk()
    driver = Driver(disk, SimClock(START_MS + 2000), OPTIONS, seed=seed)
    for topic in topics:
        driver.do(Configure(topic, {"durability": "fsync"}))
    for topic, count in topics.items():
        if count:
            driver.do(Append(topic, Records.of([{"data": topic}] * count)))
    driver.checkpoint()
    driver.close()
    return disk.kill().contents()


def segments(contents: dict[str, bytes], suffix: str = "") -> dict[str, bytes]:
    return {path: content for path, content in contents.items() if path.startswith(SEGMENTS) and path.endswith(suffix)}


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ({"odd": 5, "even": 5}, "seqs 1..5"),
        ({"first": 0, "second": 3, "third": 3}, "nothing of it"),
        ({"first": 0, "second": 0, "third": 3}, "nothing of it"),
        (TWO, "those of another directory"),
    ],
    ids=["more records", "other topics", "fewer topics", "the same topics and records"],
)
@pytest.mark.parametrize("index_too", [True, False], ids=["both files", "data alone"])
def test_a_segment_of_another_directory_is_not_taken_for_the_one_it_replaces(
    others: dict[str, int], found: str, index_too: bool
) -> None:
    """Somebody copied a file back from the wrong backup: it is whole, and belongs to nobody here."""
    mixed = written(TWO) | segments(written(others, seed=1), "" if index_too else ".data")
    with pytest.raises(Damaged, match=f"holds {found}: the file is another than the snapshot is about"):
        opened(disk_of(mixed))
    disk = disk_of(mixed)
    report, seen = repaired(disk)
    assert not texts(seen) and told(report) == {("odd/0", 1, 3), ("even/0", 1, 3)}
    assert f"{DIRECTORY}/segments/000000000001.data" in {finding.file for finding in report.findings}
    assert any(path.endswith("segments-000000000001.data") for path in report.set_aside), "it may be wanted elsewhere"
    assert getattr(opened(disk).do(Append("even", Records.of([{"data": 1}]))), "first_seq", 0) == 4


def test_a_segment_of_another_directory_may_have_fewer_sections_than_the_one_it_replaces() -> None:
    """The records of `even` were in the second section, and those of the first one are dropped."""
    rig = Rig()
    for topic in TWO:
        rig.configure(topic, durability="fsync")
        rig.write(topic, 1, 2, 3)
    rig.checkpoint()
    rig.drop("odd")
    rig.checkpoint()
    mixed = rig.disk.kill().contents() | segments(written({"odd": 3}, seed=1))
    with pytest.raises(Damaged, match=r"section 1 should hold seqs 1\.\.3 of log 2 \(topic even\) and holds nothing"):
        opened(disk_of(mixed))
    report, _ = repaired(disk_of(mixed))
    assert told(report) == {("even/0", 1, 3)}


@pytest.mark.parametrize(("checkpoints", "number"), [(2, 1), (PACKS_MAX + 2, PACKS_MAX + 2)], ids=["kept", "merged"])
def test_every_snapshot_names_the_files_that_its_segments_are(checkpoints: int, number: int) -> None:
    """Also those of an earlier one, and those that were merged."""
    contents, other = (trickled(checkpoints, seed) for seed in (0, 1))
    name = f"{SEGMENTS}/{number:012d}."
    with pytest.raises(Damaged, match="those of another directory"):
        opened(disk_of(contents | {path: content for path, content in other.items() if path.startswith(name)}))


def trickled(checkpoints: int, seed: int) -> dict[str, bytes]:
    """The files of a directory that had so many checkpoints, with a record before each."""
    disk = FakeDisk()
    driver = Driver(disk, SimClock(START_MS), SMALL, seed=seed)
    for number in range(checkpoints):
        driver.do(Append("t", records(number, 1), config={"durability": "fsync"}))
        driver.checkpoint()
    return disk.kill().contents()


def test_what_can_be_read_of_a_damaged_segment_of_another_directory_is_not_taken_either() -> None:
    other = written(TWO, seed=1)
    path = f"{SEGMENTS}/000000000001.data"
    first, _ = scan(path, memoryview(other[path]), 1)
    report, seen = repaired(flipped(written(TWO) | segments(other), path, first.flags_at - 8, 1))
    assert not texts(seen) and told(report) == {("odd/0", 1, 3), ("even/0", 1, 3)}


# ---- without the newest snapshot


def lived(*topics: str, staged: str = "", seed: int = 0) -> dict[str, bytes]:
    """A directory whose process died: three records of each topic, in one segment, and all of it in the WAL as well."""
    disk = FakeDisk()
    driver = Driver(disk, SimClock(START_MS), SMALL, seed=seed)
    for topic in topics:
        driver.do(Configure(topic, {"durability": "fsync"}))
        driver.do(Append(topic, Records.of([{"data": topic}] * 3)))
    if staged:
        driver.do(Stage("later", staged, Records.of([{"data": "later"}])))
    driver.checkpoint()
    return disk.kill().contents()


@pytest.mark.parametrize("others", [("theirs",), ("mine", "yours"), ("other", "other", "mine")])
def test_a_segment_of_another_directory_tells_nothing_when_the_snapshot_is_lost_too(others: tuple[str, ...]) -> None:
    """The WAL tells whose the logs are, and has their records here."""
    disk = disk_of(without_snapshots(lived("mine", "ours")) | segments(lived(*others, seed=1)))
    report, seen = repaired(disk)
    assert texts(seen).keys() == {(f"{topic}/0", seq) for topic in ("mine", "ours") for seq in (1, 2, 3)}
    strangers = [finding for finding in report.findings if finding.kind is Kind.SEGMENT]
    assert [finding.file for finding in strangers] == [f"{SEGMENTS}/000000000001.data"]
    assert "the file is of another directory" in strangers[0].message
    assert not report.lost and any(path.endswith("segments-000000000001.data") for path in report.set_aside)


def test_the_log_of_a_stage_is_no_topic_s() -> None:
    disk = disk_of(without_snapshots(lived("mine", staged="mine")) | segments(lived("mine", "yours", seed=1)))
    report, seen = repaired(disk)
    assert texts(seen).keys() == {("mine/0", seq) for seq in (1, 2, 3)}
    [stranger] = [finding for finding in report.findings if finding.kind is Kind.SEGMENT]
    assert "is of topic yours" in stranger.message and "is a stage for topic mine" in stranger.message
    driver = opened(disk)
    driver.do(Publish(("later",), "spark", 1))
    assert texts(see(driver)).keys() == {("mine/0", seq) for seq in (1, 2, 3, 4)}


def test_an_old_snapshot_tells_which_file_is_of_another_directory() -> None:
    """The newest one is lost; the one before it names the segment that was there."""
    directories = []
    for seed in (0, 1):
        disk = FakeDisk()
        driver = Driver(disk, SimClock(START_MS), OPTIONS, seed=seed)
        driver.do(Configure("t", {"durability": "fsync"}))
        for number in range(2):
            driver.do(Append("t", records(3 * number, 3)))
            driver.checkpoint()
        driver.close()
        directories.append(disk.kill().contents())
    contents, other = directories
    newest = max(path for path in contents if path.startswith(SNAPSHOTS))
    left = {path: content for path, content in contents.items() if path != newest}
    first = {path: content for path, content in segments(other).items() if "000000000001." in path}
    report, seen = repaired(disk_of(left | first))
    assert told(report) == {("t/0", 1, 3), ("t/0", 7, 6 + SEQS_SKIPPED)}
    assert texts(seen).keys() == {("t/0", seq) for seq in (4, 5, 6)}
    assert any("not the file that a snapshot names" in finding.message for finding in report.findings)
