"""Archives report how far they are, and retention waits for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.rig import Rig, frozen
from topics.core import archiving
from topics.core.commands import DropArchive, ReportArchive
from topics.errors import InvalidRequest, Throttled, TopicNotFound, TopicRecreated, TopicsError
from topics.limits import ARCHIVE_LOCATION_BYTES_MAX, ARCHIVES_MAX
from topics.model import ArchiveDropped, ArchiveState


def report(rig: Rig, upto_seq: int, archive: str = "lake", **options: Any) -> ArchiveState:
    state = rig.step(ReportArchive("t", archive, upto_seq, **options)).reply
    assert isinstance(state, ArchiveState)
    return state


def test_a_capped_topic_keeps_what_is_not_archived() -> None:
    rig = Rig()
    rig.configure(cap_records=2, protect_unarchived=True)
    rig.write_numbers(*range(6))
    assert rig.seqs() == [1, 2, 3, 4, 5, 6]
    state = report(rig, 3, location="s3://lake/t")
    assert (state.upto_seq, state.location, state.reported_ts) == (3, "s3://lake/t", rig.now_ms)
    assert rig.seqs() == [4, 5, 6], "what was waited for goes at once"
    rig.write_numbers(7)
    assert rig.seqs() == [4, 5, 6, 7]
    report(rig, 7)
    assert rig.seqs() == [6, 7]
    again = rig.replayed()
    assert (again.seqs(), again.view(), again.log().holds) == (rig.seqs(), rig.view(), rig.log().holds)


def test_a_report_that_is_repeated_or_late_changes_nothing() -> None:
    rig = Rig()
    rig.configure(protect_unarchived=True)
    rig.write_numbers(1, 2, 3)
    report(rig, 3, location="a")
    facts = len(rig.facts)
    assert report(rig, 3, location="a").upto_seq == 3
    assert len(rig.facts) == facts
    assert report(rig, 1, location="b").upto_seq == 3
    assert rig.replayed().log().holds.archives["lake"].location == "b"


def test_what_expired_stays_gone_when_more_is_needed_than_before() -> None:
    """The last archive is dropped: all is needed again, but what retention took does not come back by a replay."""
    rig = Rig()
    rig.configure(ttl_ms=10, protect_unarchived=True)
    rig.write_numbers(1, 2, 3)
    report(rig, 2)
    rig.now_ms += 100
    assert rig.seqs() == [3]
    assert rig.step(DropArchive("t", "lake")).reply == ArchiveDropped(topic="t", archive="lake", dropped=True)
    assert rig.step(DropArchive("t", "lake")).reply == ArchiveDropped(topic="t", archive="lake", dropped=False)
    again = rig.replayed()
    assert again.seqs() == [3]
    assert again.view() == rig.view()
    tombstone = again.page(0).tombstone
    assert tombstone is not None and (tombstone.gap_from, tombstone.gap_to) == (1, 2)


def test_partitions_are_on_their_own() -> None:
    rig = Rig()
    rig.configure(partitions=2, cap_records=1, protect_unarchived=True)
    for partition in (0, 1):
        rig.write({"data": 1}, {"data": 2}, partition=partition)
    report(rig, 2, partition=1)
    rig.write({"data": 3}, partition=1)
    rig.write({"data": 3}, partition=0)
    assert (rig.seqs(partition=0), rig.seqs(partition=1)) == ([1, 2, 3], [3])
    assert [archive.partition for archive in archiving.archives(rig.log("t", 1))] == [1]
    rig.step(DropArchive("t", "lake"))
    assert archiving.archives(rig.log("t", 1)) == ()


def test_how_far_behind_an_archive_is_and_what_is_held() -> None:
    rig = Rig()
    rig.configure(cap_records=1)
    rig.write_numbers(1, 2, 3)
    config = rig.machine.topic("t").config
    assert archiving.holding(rig.log(), config) is None
    rig.configure(merge=True, protect_unarchived=True, protect_max_bytes=2)
    rig.write_numbers(4, 5, 6)
    log, config = rig.log(), rig.machine.topic("t").config
    log.visible_seq = log.head_seq
    held = archiving.holding(log, config)
    assert held is not None
    assert (held.needed_from, held.max_bytes, held.overrun_count) == (1, 2, 2)
    report(rig, 5)
    (archive,) = archiving.archives(log)
    assert (archive.archive, archive.upto_seq, archive.behind) == ("lake", 5, 1)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (ReportArchive("nobody", "lake", 0), TopicNotFound),
        (ReportArchive("t", "lake", 4), InvalidRequest),
        (ReportArchive("t", "lake", -1), InvalidRequest),
        (ReportArchive("t", "no name", 1), InvalidRequest),
        (ReportArchive("t", "lake", 1, partition=1), InvalidRequest),
        (ReportArchive("t", "lake", 1, "x" * (ARCHIVE_LOCATION_BYTES_MAX + 1)), InvalidRequest),
        (ReportArchive("t", "lake", 1, epoch=99), TopicRecreated),
        (ReportArchive("t", "one more", 1), InvalidRequest),
        (ReportArchive("t", "one-more", 1), Throttled),
        (DropArchive("nobody", "lake"), TopicNotFound),
        (DropArchive("t", "no name"), InvalidRequest),
    ],
)
def test_a_refused_command_changes_nothing(command: ReportArchive | DropArchive, error: type[TopicsError]) -> None:
    rig = Rig()
    rig.write_numbers(1, 2, 3)
    for number in range(ARCHIVES_MAX):
        report(rig, 1, f"a{number}")
    before = frozen(rig.machine)
    with pytest.raises(error):
        rig.step(command)
    assert frozen(rig.machine) == before


def test_an_ephemeral_topic_stores_nothing() -> None:
    rig = Rig()
    rig.configure(durability="ephemeral", protect_unarchived=True)
    rig.write_numbers(1, 2)
    facts = len(rig.facts)
    assert report(rig, 2).upto_seq == 2
    rig.step(DropArchive("t", "lake"))
    assert len(rig.facts) == facts
