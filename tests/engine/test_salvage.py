"""Repairing every kind of damage: nothing readable is lost, nothing lost is silent, nothing comes back wrong."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from tests.engine.damage import (
    DIRECTORY,
    Seen,
    build,
    disk_of,
    flipped,
    opened,
    overwrite,
    records,
    see,
)
from tests.engine.rig import Rig, trickle
from tests.engine.test_fsck import run
from topics.core.commands import Append, Configure
from topics.core.run import DEAD
from topics.engine.findings import FsckReport, Kind
from topics.engine.salvage import SEQS_SKIPPED
from topics.limits import PACKS_MAX
from topics.model import Reason, TopicConfig
from topics.storage import frame
from topics.storage.segmentfile import scan
from topics.storage.walfile import parse_name, read_header
from topics.storage.walscan import valid_frames
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk

Place = tuple[str, int]
"""A partition's name and a seq."""
SEGMENTS = f"{DIRECTORY}/segments"
SNAPSHOTS = f"{DIRECTORY}/snapshots"
WAL = f"{DIRECTORY}/wal"
STEP_BYTES = 39
"""Every so many bytes one is damaged; the census has shown what each byte is."""


@cache
def sample(closed: bool) -> tuple[dict[str, bytes], Seen]:
    contents = build(closed=closed).contents()
    return contents, see(opened(disk_of(contents)))


def texts(seen: Seen) -> dict[Place, msgspec.Raw]:
    """The text of every record that a full scan gives."""
    found = {}
    for key, value in seen.items():
        if key.endswith(" pages") and isinstance(value, list):
            for body, _ in value:
                for text in msgspec.json.decode(b"[" + body + b"]", type=list[msgspec.Raw]):
                    found[(key.removesuffix(" pages"), msgspec.json.decode(text)["$seq"])] = text
    return found


def holes(seen: Seen) -> set[tuple[str, int, int]]:
    """Every range a full scan was told of, each once, all of them damage."""
    found = [
        (key.removesuffix(" pages"), *missed)
        for key, value in seen.items()
        if key.endswith(" pages") and isinstance(value, list)
        for _, missed in value
        if missed is not None
    ]
    assert len(found) == len(set(found))
    assert all(reason is Reason.DAMAGE for *_, reason in found)
    return {(name, first, last) for name, first, last, _ in found}


def told(report: FsckReport) -> set[tuple[str, int, int]]:
    """The ranges of topics; what a stage lost no reader can see."""
    lost_ranges = [lost for lost in report.lost if not lost.topic.startswith("stage ")]
    return {(f"{lost.topic}/{lost.partition}", lost.gap_from, lost.gap_to) for lost in lost_ranges}


def repaired(disk: FakeDisk) -> tuple[FsckReport, Seen]:
    """Repair, then open: no damage any more, and the report says what readers are told."""
    report = run(disk, repair=True)
    assert report.repaired
    again = run(disk)
    assert again.clean, again.findings
    seen = see(opened(disk_of(disk.contents())))
    assert holes(seen) == told(report)
    return report, seen


def check_kept(before: Seen, seen: Seen, report: FsckReport) -> None:
    """What is missing lies in a hole; what is there is byte for byte what it was."""
    old, new, gaps = texts(before), texts(seen), holes(seen)
    for place, text in old.items():
        if place in new:
            assert bytes(new[place]) == bytes(text)
        else:
            name, seq = place
            renamed = any(finding.kind is Kind.TOPIC for finding in report.findings)
            assert renamed or any(gap[0] == name and gap[1] <= seq <= gap[2] for gap in gaps), place


def flips(contents: dict[str, bytes]) -> Iterator[tuple[str, int]]:
    for path, content in contents.items():
        if not path.endswith(("lock", "spare")):
            yield from ((path, offset) for offset in range(len(path) % STEP_BYTES, len(content), STEP_BYTES))


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_a_repair_of_any_flipped_bit_gives_a_directory_that_opens(closed: bool) -> None:
    contents, before = sample(closed)
    kinds = set()
    for path, offset in flips(contents):
        disk = flipped(contents, path, offset, 1 << (offset % 8))
        if run(disk).clean:
            continue
        report, seen = repaired(disk)
        check_kept(before, seen, report)
        kinds |= {finding.kind for finding in report.findings}
    assert kinds >= {Kind.SEGMENT, Kind.MARKS, Kind.INDEX, Kind.SNAPSHOT, Kind.WAL}


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_a_repair_of_a_missing_file_gives_a_directory_that_opens(closed: bool) -> None:
    contents, before = sample(closed)
    for path in contents:
        remaining = {other: content for other, content in contents.items() if other != path}
        disk = disk_of(remaining)
        if run(disk).clean:
            continue
        report, seen = repaired(disk)
        check_kept(before, seen, report)


# ---- segments


def test_a_damaged_block_becomes_a_hole_and_its_neighbours_stay() -> None:
    contents, before = sample(closed=True)
    report, seen = repaired(flipped(contents, f"{SEGMENTS}/000000000002.data", 300, 1))
    assert told(report) == {("ledger/0", 5, 7)}
    assert texts(before).keys() - texts(seen).keys() == {("ledger/0", seq) for seq in (5, 6, 7)}


def test_a_missing_segment_is_a_hole_in_each_log_it_held() -> None:
    contents, _ = sample(closed=True)
    left = {path: content for path, content in contents.items() if "000000000001." not in path or "wal" in path}
    report, _ = repaired(disk_of(left))
    assert told(report) == {("ledger/0", 1, 4), ("parts/0", 1, 2), ("parts/1", 1, 2)}


def test_a_segment_without_both_its_ends_is_a_hole_in_each_log_it_held() -> None:
    contents, _ = sample(closed=True)
    path = f"{SEGMENTS}/000000000001.data"
    blank = bytes(40) + contents[path][40:-40] + bytes(40)
    report, _ = repaired(disk_of(contents | {path: blank}))
    assert told(report) == {("ledger/0", 1, 4), ("parts/0", 1, 2), ("parts/1", 1, 2)}


def test_a_flipped_deletion_flag_is_taken_for_what_it_is_nearest_to() -> None:
    contents, before = sample(closed=True)
    path = f"{SEGMENTS}/000000000001.data"
    block = next(iter(scan(path, memoryview(contents[path]), 1)))
    dead = bytes(block.flags).index(DEAD)
    for place, mask in ((dead, 0x40), (bytes(block.flags).index(0), 0x80)):
        report, seen = repaired(flipped(contents, path, block.flags_at + place, mask))
        assert [finding.kind for finding in report.findings] == [Kind.MARKS]
        assert report.findings[0].first_seq == block.block.first_seq + place
        assert seen == before


def test_deletions_that_were_wiped_out_are_noticed() -> None:
    contents, before = sample(closed=True)
    path = f"{SEGMENTS}/000000000001.data"
    block = next(iter(scan(path, memoryview(contents[path]), 1)))
    content = bytearray(contents[path])
    content[block.flags_at : block.flags_at + block.block.count] = bytes(block.block.count)
    report, seen = repaired(disk_of(contents | {path: bytes(content)}))
    assert [finding.kind for finding in report.findings] == [Kind.MARKS]
    assert "deleted records would come back" in report.findings[0].message
    assert texts(seen).keys() >= texts(before).keys()


# ---- the WAL


def frames_of(contents: dict[str, bytes], path: str) -> list[frame.Frame]:
    parsed = parse_name(path.rpartition("/")[2])
    assert parsed is not None
    view = memoryview(contents[path])
    header, first = read_header(view, path, *parsed)
    return list(valid_frames(view, first, header.salt))


def wal_only() -> tuple[FakeDisk, Driver]:
    disk = FakeDisk()
    driver = opened(disk)
    driver.do(Configure("calm", {"durability": "fsync"}))
    driver.do(Configure("busy", {"durability": "fsync"}))
    for number in range(5):
        driver.do(Append("busy", records(number, 2, plain=True)))
        driver.do(Append("calm", records(number, 1, plain=True)))
    driver.work()
    return disk, driver


def busy_frames(contents: dict[str, bytes]) -> list[tuple[str, frame.Frame]]:
    """The appends to the topic `busy`, in order."""
    return [
        (path, found)
        for path in sorted(contents)
        if path.endswith(".wal")
        for found in frames_of(contents, path)
        if found.kind == frame.Kind.APPENDED and found.log_id == 2
    ]


def test_a_lost_entry_in_the_middle_is_a_hole_of_its_seqs() -> None:
    disk, _ = wal_only()
    contents = disk.kill().contents()
    path, lost = busy_frames(contents)[2]
    for offset in (lost.offset + 5, lost.offset + 17, lost.offset + 60):
        report, seen = repaired(flipped(contents, path, offset, 1))
        assert ("busy/0", 5, 6) in told(report)
        assert {seq for name, seq in texts(seen) if name == "busy/0"} == {1, 2, 3, 4, 7, 8, 9, 10}


def test_seqs_of_a_lost_last_entry_are_never_assigned_again() -> None:
    disk, _ = wal_only()
    contents = disk.kill().contents()
    path, lost = busy_frames(contents)[-1]
    proof = [found for found in frames_of(contents, path) if found.mark > lost.offset]
    assert proof, "the sample must prove that the last entry was durable"
    for offset in (lost.offset + 9, lost.offset + 17, lost.offset + 60):
        damaged = flipped(contents, path, offset, 1)
        report, seen = repaired(damaged)
        assert any(name == "busy/0" and first == 9 and last >= 10 for name, first, last in told(report))
        driver = opened(damaged)
        answer = driver.do(Append("busy", records(90, 1, plain=True)))
        assert getattr(answer, "first_seq", 0) > 10
        assert {seq for name, seq in texts(seen) if name == "busy/0"} == set(range(1, 9))


def meta_frames(contents: dict[str, bytes]) -> list[tuple[str, frame.Frame]]:
    return [
        (path, found)
        for path in sorted(contents)
        if path.endswith(".wal")
        for found in frames_of(contents, path)
        if found.kind == frame.Kind.FACT and found.log_id == 0
    ]


def test_a_topic_whose_creation_is_lost_keeps_its_records_under_another_name() -> None:
    disk, _ = wal_only()
    contents = disk.kill().contents()
    path, created = meta_frames(contents)[1]
    report, seen = repaired(flipped(contents, path, created.offset + 60, 1))
    assert {name for name, _ in texts(seen)} == {"calm/0", "recovered-2/0"}
    assert seen["recovered-2 config"] == TopicConfig()
    assert [finding.topic for finding in report.findings if finding.kind is Kind.TOPIC] == ["recovered-2"]


def test_a_later_fact_gives_a_lost_topic_its_name_and_config_back() -> None:
    disk, driver = wal_only()
    driver.do(Configure("busy", {"durability": "fsync", "priority": 7}))
    driver.work()
    contents = disk.kill().contents()
    path, created = meta_frames(contents)[1]
    _, seen = repaired(flipped(contents, path, created.offset + 60, 1))
    assert {name for name, _ in texts(seen)} == {"calm/0", "busy/0"}
    config = seen["busy config"]
    assert isinstance(config, TopicConfig) and config.priority == 7


# ---- the snapshot


def test_without_any_snapshot_the_segments_tell_whose_records_they_hold() -> None:
    contents, before = sample(closed=True)
    left = {path: content for path, content in contents.items() if not path.startswith(SNAPSHOTS)}
    report, seen = repaired(disk_of(left))
    check_kept(before, seen, report)
    restored = {finding.topic for finding in report.findings if finding.kind is Kind.TOPIC}
    assert restored >= {"ledger", "late", "parts"}
    assert isinstance(seen["parts config"], TopicConfig) and seen["parts config"].partitions == 2


def test_an_unreadable_header_of_a_snapshot_costs_nothing() -> None:
    contents, before = sample(closed=True)
    path = next(path for path in contents if path.startswith(SNAPSHOTS))
    _, seen = repaired(flipped(contents, path, 40, 1))
    assert seen == before


def test_a_lost_newest_delta_is_made_good_from_segments_and_wal() -> None:
    contents, before = sample(closed=False)
    left = {path: content for path, content in contents.items() if not path.endswith(".delta")}
    report, seen = repaired(disk_of(left))
    check_kept(before, seen, report)


def test_missing_newest_delta_beside_a_damaged_snapshot_costs_no_records() -> None:
    contents, before = sample(closed=False)
    left = {path: content for path, content in contents.items() if not path.endswith(".delta")}
    (base,) = (path for path in left if path.endswith(".base"))
    for offset in range(0, len(left[base]), 3 * STEP_BYTES):
        report, seen = repaired(flipped(left, base, offset, 0x10))
        missing = texts(before).keys() - texts(seen).keys()
        assert not missing, f"records {missing} are gone after a flip at {offset}"
        assert any("snapshot 3 is missing" in finding.message for finding in report.findings)


def test_missing_segment_beside_a_damaged_delta_is_told_for_each_topic() -> None:
    rig = Rig()
    for topic in ("a", "b"):
        rig.configure(topic, durability="fsync")
        rig.write(topic, 1, 2, 3)
    rig.driver.checkpoint()
    rig.write("b", 4)
    rig.driver.checkpoint()
    rig.write("b", 5)
    contents = rig.disk.kill().contents()
    before = see(opened(disk_of(contents)))
    (delta,) = (path for path in contents if path.endswith("2.delta"))
    left = {path: content for path, content in contents.items() if "/segments/000000000001." not in path}
    for offset in range(0, len(left[delta]), STEP_BYTES):
        report, seen = repaired(flipped(left, delta, offset, 1))
        assert {place[0] for place in texts(before).keys() - texts(seen).keys()} == {"a/0", "b/0"}
        check_kept(before, seen, report)


def test_an_emptied_wal_directory_is_damage() -> None:
    contents, before = sample(closed=False)
    left = {path: content for path, content in contents.items() if not path.startswith(WAL)}
    report, seen = repaired(disk_of(left))
    assert [finding.file for finding in report.findings] == [WAL]
    back = texts(seen).keys() - texts(before).keys()
    assert back == {("ledger/0", 2)}, "only the delete that was in the WAL alone is lost with it"
    assert any("deletes" in note for note in report.notes)
    assert {name for name, _, _ in told(report)} == {"ledger/0", "parts/0", "parts/1"}


def test_several_damages_at_once() -> None:
    contents, before = sample(closed=False)
    disk = flipped(contents, f"{SEGMENTS}/000000000001.data", 300, 1)
    for path in contents:
        if path.endswith((".base", ".idx", "0-0000000004.wal")):
            content = bytearray(contents[path])
            content[200] ^= 1
            overwrite(disk, path, bytes(content))
    report, seen = repaired(disk)
    assert {finding.kind for finding in report.findings} >= {Kind.SEGMENT, Kind.SNAPSHOT, Kind.INDEX, Kind.WAL}
    assert texts(seen).keys() & texts(before).keys()


def test_a_damaged_segment_that_was_merged_already_adds_nothing() -> None:
    """A crash left the old file beside the one that it was copied to, and no snapshot tells which of them counts."""
    rig = trickle(PACKS_MAX + 1, topics=1)
    old = rig.files("/segments/000000000001.")
    rig.checkpoint()
    rig.write("t0", "behind")
    expected = rig.text("t0")
    contents = rig.disk.kill().contents()
    assert not old.keys() & contents.keys(), "it was merged"
    path = f"{SEGMENTS}/000000000001.data"
    flags_at = next(iter(scan(path, memoryview(old[path]), 1))).flags_at
    left = {path: content for path, content in contents.items() if not path.startswith(SNAPSHOTS)}
    disk = flipped(left | old, path, flags_at, 0x80)
    report = run(disk, repair=True)
    assert path in {finding.file for finding in report.findings} and not report.lost
    assert run(disk).clean
    assert Rig(disk=disk).text("t0") == expected


def without_snapshots(contents: dict[str, bytes]) -> dict[str, bytes]:
    return {path: content for path, content in contents.items() if not path.startswith(SNAPSHOTS)}


def test_a_section_whose_head_is_damaged_is_of_the_topic_that_another_section_names() -> None:
    disk = without_its_last_section_head(checkpoints=2)
    report = run(disk, repair=True)
    assert [finding.topic for finding in report.findings if finding.kind is Kind.TOPIC] == ["t"]
    assert Rig(disk=disk).data("t") == [0, 1]


def test_records_whose_topic_nothing_names_are_kept_under_a_made_up_name() -> None:
    disk = without_its_last_section_head(checkpoints=1)
    report = run(disk, repair=True)
    assert [finding.topic for finding in report.findings if finding.kind is Kind.TOPIC] == ["recovered-1"]
    assert Rig(disk=disk).data("recovered-1") == [0]


def without_its_last_section_head(checkpoints: int) -> FakeDisk:
    """No snapshot, and a WAL that begins behind all of it."""
    rig = Rig()
    rig.configure("t", durability="fsync")
    for number in range(checkpoints):
        rig.write("t", number)
        rig.checkpoint()
    rig.stop()
    contents = without_snapshots(rig.disk.kill().contents())
    path = f"{SEGMENTS}/{checkpoints:012d}.data"
    first_block = next(iter(scan(path, memoryview(contents[path]), checkpoints)))
    return flipped(contents, path, first_block.offset - 16, 1)


def test_what_was_gone_before_the_first_section_is_told_when_no_snapshot_says_why() -> None:
    rig = Rig()
    rig.configure("t", durability="fsync")
    rig.write("t", 1, 2, 3)
    rig.checkpoint()
    rig.delete("t", before_seq=4)
    rig.checkpoint()
    rig.write("t", 4, 5)
    rig.checkpoint()
    disk = disk_of(without_snapshots(rig.disk.kill().contents()))
    assert told(run(disk, repair=True)) == {("t/0", 1, 3)}
    back = Rig(disk=disk)
    assert back.data("t") == [4, 5]
    assert [(gap.gap_from, gap.gap_to, gap.reason) for gap in back.gaps("t")] == [(1, 3, Reason.DAMAGE)]


def test_a_topic_without_a_record_stays_when_the_newest_snapshot_is_lost() -> None:
    rig = Rig()
    for topic in ("empty", "t"):
        rig.configure(topic, durability="fsync")
    rig.checkpoint()
    rig.write("t", 1, 2)
    rig.checkpoint()
    contents = rig.disk.kill().contents()
    newest = max(path for path in contents if path.startswith(SNAPSHOTS))
    disk = disk_of({path: content for path, content in contents.items() if path != newest})
    report = run(disk, repair=True)
    assert {finding.kind for finding in report.findings} == {Kind.SNAPSHOT}
    assert told(report) == {("empty/0", 1, SEQS_SKIPPED)}, "which may have been assigned"
    back = Rig(disk=disk)
    assert [back.data(topic) for topic in ("empty", "t")] == [[], [1, 2]]
    assert back.write("empty", "first").first_seq == SEQS_SKIPPED + 1


def test_an_older_damage_does_not_hide_that_the_newest_snapshot_is_missing() -> None:
    disk = disk_of(without_the_newest_snapshot_and_an_entry_before_it())
    report = run(disk, repair=True)
    newest = f"{SNAPSHOTS}: snapshot 3 is missing, which the WAL needs; the newest is 2"
    assert newest in {finding.message for finding in report.findings}
    back = Rig(disk=disk)
    assert back.data("t") == [1, 2, 3, 4], "a segment has what the missing snapshot named"
    assert back.write("t", "behind").first_seq > 4


def test_a_segment_of_another_directory_is_told_when_the_newest_snapshot_is_missing_too() -> None:
    stranger = Rig()
    stranger.configure("theirs", durability="fsync")
    stranger.write("theirs", 1, 2)
    stranger.checkpoint()
    left = without_the_newest_snapshot_and_an_entry_before_it()
    report = run(disk_of(left | stranger.files(f"{SEGMENTS}/000000000001.")), repair=True)
    strangers = [finding.file for finding in report.findings if "of another directory" in finding.message]
    assert strangers == [f"{SEGMENTS}/000000000001.data"]


def without_the_newest_snapshot_and_an_entry_before_it() -> dict[str, bytes]:
    """Two topics with records in three segments. The second snapshot cannot tell of one of them, the third is gone."""
    rig = Rig()
    for topic in ("t", "other"):
        rig.configure(topic, durability="fsync")
    for numbers in ((1,), (2,), (3, 4)):
        for topic in ("t", "other"):
            rig.write(topic, *numbers)
        rig.checkpoint()
    contents = dict(rig.disk.kill().contents())
    _, second, newest = (path for path in sorted(contents) if path.startswith(SNAPSHOTS))
    del contents[newest]
    damaged = bytearray(contents[second])
    damaged[damaged.index(b"l/2") + 8] ^= 1
    return contents | {second: bytes(damaged)}
