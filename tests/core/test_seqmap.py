"""The map of a log against a look at every seq, however records lie and whatever became of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.rig import Rig
from tests.core.test_live import logs
from topics.core.commands import ReportArchive
from topics.core.seqmap import Bucket, seq_map
from topics.model import Reason


@settings(max_examples=60, deadline=None)
@given(logs(), st.integers(1, 40))
def test_buckets_count_what_a_look_at_every_seq_finds(rig: Rig, count: int) -> None:
    log, alive = rig.log(), set(rig.seqs(limit=10_000))
    found = seq_map(log, count)
    assert len(found) == min(count, log.head_seq)
    assert [seq for each in found for seq in range(each.first_seq, each.last_seq + 1)] == [*range(1, log.next_seq)]
    widths = [each.last_seq - each.first_seq + 1 for each in found]
    assert max(widths) - min(widths) <= 1
    for each, width in zip(found, widths, strict=True):
        live = sum(seq in alive for seq in range(each.first_seq, each.last_seq + 1))
        assert (each.live, each.deleted) == (live, width - live)
        assert (each.evicted, each.lost, each.archived) == (0, 0, 0)


def test_a_log_that_never_had_a_record_has_no_bucket() -> None:
    rig = Rig()
    rig.configure("t")
    assert seq_map(rig.log()) == []


def test_what_a_cap_took_what_was_deleted_what_was_lost_and_what_an_archive_has() -> None:
    rig = Rig()
    rig.configure("t", cap_records=6)
    rig.write(*({"data": n, "tag": f"n{n}"} for n in range(1, 9)))
    rig.delete(match="n5")
    rig.log().add_hole(9, 10, Reason.DAMAGE)
    rig.step(ReportArchive("t", "lake", 4))
    assert seq_map(rig.log(), 5) == [
        Bucket(1, 2, live=0, deleted=0, evicted=2, lost=0, archived=2),
        Bucket(3, 4, live=2, deleted=0, evicted=0, lost=0, archived=2),
        Bucket(5, 6, live=1, deleted=1, evicted=0, lost=0, archived=0),
        Bucket(7, 8, live=2, deleted=0, evicted=0, lost=0, archived=0),
        Bucket(9, 10, live=0, deleted=0, evicted=0, lost=2, archived=0),
    ]


def test_a_prefix_that_was_deleted_is_not_told_as_evicted() -> None:
    rig = Rig()
    rig.write_numbers(*range(10))
    rig.delete(before_seq=5)
    assert seq_map(rig.log(), 1) == [Bucket(1, 10, live=6, deleted=4, evicted=0, lost=0, archived=0)]
