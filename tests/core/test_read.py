from __future__ import annotations

from typing import Any

import pytest

from tests.core.rig import PLENTY, Rig
from topics.core import log as log_module
from topics.core.cut import cut
from topics.core.facts import SeqsSkipped
from topics.core.log import Log
from topics.core.match import Match
from topics.core.read import ReadPlan, cursor_at, plan_read, text_at_head
from topics.model import Page, Reason, Tombstone


def skip(rig: Rig, length: int, reason: Reason = Reason.RESTART) -> None:
    log = rig.log()
    log.apply(SeqsSkipped(log.next_seq, log.head_seq + length, reason))


def outline(page: Page) -> tuple[list[int], tuple[int, int, str] | None, int]:
    """Seqs, tombstone and next cursor of a page."""
    gap = page.tombstone
    told = None if gap is None else (gap.gap_from, gap.gap_to, gap.reason.value)
    return [record.seq for record in page.records], told, page.next_from_seq


def written(count: int, **config: Any) -> Rig:
    """A topic with so many records, three to a block."""
    rig = Rig()
    rig.configure(**config)
    for number in range(1, count + 1):
        rig.write_numbers(number)
        if number % 3 == 0:
            rig.log().freeze_tail()
    return rig


def test_a_cursor_is_an_exclusive_lower_bound() -> None:
    rig = written(7)
    assert outline(rig.page(0)) == ([1, 2, 3, 4, 5, 6, 7], None, 7)
    assert outline(rig.page(2)) == ([3, 4, 5, 6, 7], None, 7)
    assert outline(rig.page(7)) == ([], None, 7)
    assert rig.page(7).caught_up and not rig.page(0, limit=6).caught_up


def test_an_empty_topic_is_read_from_the_beginning() -> None:
    assert outline(written(0).page(0)) == ([], None, 0)


@pytest.mark.parametrize("limit", range(1, 9))
def test_a_limit_ends_a_page_wherever_the_blocks_end(limit: int) -> None:
    rig = written(8)
    for from_seq in range(9):
        last = min(8, from_seq + limit)
        assert outline(rig.page(from_seq, limit)) == (list(range(from_seq + 1, last + 1)), None, last)


def test_the_tombstone_of_the_specification() -> None:
    rig = Rig()
    rig.configure(cap_records=1134)
    skip(rig, 478_000)
    rig.write_numbers(*range(2234))
    assert rig.view().head_seq == 480_234
    page = rig.page(478_500, limit=100)
    assert page.tombstone == Tombstone(478_501, 479_100, Reason.CAP, 600, 479_101, 480_234)
    assert [record.seq for record in page.records] == list(range(479_101, 479_201))
    assert (page.next_from_seq, page.earliest_seq, page.caught_up) == (479_200, 479_101, False)
    assert rig.page(479_099).tombstone == Tombstone(479_100, 479_100, Reason.CAP, 1, 479_101, 480_234)
    assert rig.page(479_100).tombstone is None, "nothing is missing at the floor itself"


def test_a_deleted_gap_is_silent() -> None:
    rig = written(8)
    rig.delete(before_seq=4)
    assert outline(rig.page(0)) == ([4, 5, 6, 7, 8], None, 8)
    rig.delete(before_seq=99)
    assert outline(rig.page(0)) == ([], None, 8)
    assert outline(rig.page(3)) == ([], None, 8)


def test_loss_below_a_deleted_gap_is_told_with_the_gap() -> None:
    rig = written(6, cap_records=5)
    rig.delete(before_seq=4)
    assert outline(rig.page(0)) == ([4, 5, 6], (1, 3, "cap"), 6)
    assert outline(rig.page(1)) == ([4, 5, 6], None, 6), "2 and 3 were deleted"


def test_when_everything_is_lost_the_cursor_goes_to_the_head() -> None:
    rig = written(4, ttl_ms=5)
    rig.now_ms += 6
    assert outline(rig.page(1)) == ([], (2, 4, "ttl"), 4)
    assert outline(rig.page(4)) == ([], None, 4)


def test_both_reasons_are_mixed() -> None:
    rig = written(3, cap_records=2, ttl_ms=5)
    rig.now_ms += 6
    rig.write_numbers(4)
    assert outline(rig.page(0)) == ([4], (1, 3, "mixed"), 4)
    assert outline(rig.page(1)) == ([4], (2, 3, "ttl"), 4)


def test_a_cursor_behind_the_head_means_recreated() -> None:
    rig = written(9)
    rig.drop()
    rig.configure()
    page = rig.page(9)
    assert page.tombstone == Tombstone(1, 0, Reason.RECREATED, 0, 1, 0) and page.next_from_seq == 0
    rig.write_numbers(1, 2, 3)
    rig.delete(before_seq=2)
    assert outline(rig.page(9)) == ([2, 3], (1, 3, "recreated"), 3)
    assert outline(rig.page(4, limit=1)) == ([2], (1, 3, "recreated"), 2)
    assert outline(rig.page(3)) == ([], None, 3)


def test_a_recreated_topic_is_read_from_its_first_live_record() -> None:
    rig = Rig()
    rig.write({"data": 1, "tag": "a"})
    skip(rig, 2)
    rig.write_numbers(4)
    rig.delete(match="a")
    assert outline(rig.page(9)) == ([4], (1, 4, "recreated"), 4)


def test_skipped_seqs_are_told_once_where_they_would_have_come() -> None:
    rig = written(4)
    skip(rig, 3)
    rig.write_numbers(8, 9)
    assert outline(rig.page(0)) == ([1, 2, 3, 4], None, 4), "the page ends before the gap"
    assert outline(rig.page(4)) == ([8, 9], (5, 7, "restart"), 9)
    assert outline(rig.page(5)) == ([8, 9], (6, 7, "restart"), 9)
    assert outline(rig.page(7)) == ([8, 9], None, 9)
    assert [outline(page) for page in rig.walk(limit=10)] == [
        ([1, 2, 3, 4], None, 4),
        ([8, 9], (5, 7, "restart"), 9),
    ]


def test_skipped_seqs_at_the_end_and_at_the_beginning() -> None:
    rig = Rig()
    rig.configure()
    skip(rig, 2)
    assert outline(rig.page(0)) == ([], (1, 2, "restart"), 2)
    assert outline(rig.page(2)) == ([], None, 2)
    rig.write_numbers(3)
    skip(rig, 1, Reason.DAMAGE)
    skip(rig, 1, Reason.RESTART)
    assert [outline(page) for page in rig.walk(limit=10)] == [
        ([3], (1, 2, "restart"), 3),
        ([], (4, 4, "damage"), 4),
        ([], (5, 5, "restart"), 5),
    ]


def test_a_delete_does_not_hide_what_was_lost() -> None:
    rig = written(4)
    skip(rig, 3)
    rig.write_numbers(8)
    skip(rig, 1)
    rig.write_numbers(10)
    rig.delete(before_seq=10)
    assert [outline(page) for page in rig.walk(limit=10)] == [
        ([], None, 4),
        ([], (5, 7, "restart"), 8),
        ([10], (9, 9, "restart"), 10),
    ]


def test_expiry_behind_a_gap_does_not_hide_it() -> None:
    rig = written(2, ttl_ms=5)
    skip(rig, 2)
    rig.now_ms += 6
    rig.write_numbers(5)
    assert outline(rig.page(0)) == ([5], (1, 4, "ttl"), 5), "one gap, one tombstone"
    assert outline(rig.page(2)) == ([5], (3, 4, "restart"), 5)


def test_own_nodes_are_dropped_silently_and_take_up_room() -> None:
    rig = Rig()
    for seq, node in enumerate(["a", "b", "", "a", "c", "a", "a"], 1):
        rig.write({"data": seq, "node": node})
    assert outline(rig.page(0, nodes=["a"])) == ([2, 3, 5], None, 7)
    assert outline(rig.page(0, nodes=["a", "c"])) == ([2, 3], None, 7)
    assert outline(rig.page(0, nodes=["nobody"])) == ([1, 2, 3, 4, 5, 6, 7], None, 7)
    assert outline(rig.page(0, limit=4, nodes=["a"])) == ([2, 3], None, 4), "the page is bounded before the filter"
    assert outline(rig.page(5, limit=2, nodes=["a"])) == ([], None, 7)
    assert outline(rig.page(0, nodes=["A"])) == ([1, 2, 3, 4, 5, 6, 7], None, 7), "nodes are compared byte by byte"


def test_a_tag_filter_is_like_a_node_filter() -> None:
    rig = Rig()
    for seq, tag in enumerate(["a:1", "", "b", "a:2"], 1):
        rig.write({"data": seq, "tag": tag})
    assert outline(rig.page(0, match=["tag", "Glob", "a:*"])) == ([1, 4], None, 4)
    assert outline(rig.page(0, match="b", limit=2)) == ([], None, 2)
    assert outline(rig.page(0, match=["tag", "Glob", "*"], nodes=["n"])) == ([1, 3, 4], None, 4)


def test_the_byte_budget_counts_payload_and_lets_the_first_record_through() -> None:
    rig = Rig()
    for data in ("12345678", "1", "123", "12345678", "1"):
        rig.write({"data": data})
    sizes = [10, 3, 5, 10, 3]
    assert [record.seq for record in rig.page(0, byte_budget=sum(sizes)).records] == [1, 2, 3, 4, 5]
    assert outline(rig.page(0, byte_budget=30)) == ([1, 2, 3, 4], None, 4)
    assert outline(rig.page(0, byte_budget=18)) == ([1, 2, 3], None, 3)
    assert outline(rig.page(0, byte_budget=17)) == ([1, 2], None, 2)
    assert outline(rig.page(0, byte_budget=1)) == ([1], None, 1)
    assert outline(rig.page(3, byte_budget=9)) == ([4], None, 4)


def test_the_budget_is_spent_in_the_same_way_over_blocks() -> None:
    rig = written(8)
    for from_seq in range(8):
        for budget in range(1, 9):
            last = min(8, from_seq + budget)
            assert outline(rig.page(from_seq, byte_budget=budget)) == (list(range(from_seq + 1, last + 1)), None, last)


def test_what_a_reader_filters_out_has_spent_the_budget() -> None:
    rig = Rig()
    rig.write({"data": 1, "node": "own"})
    rig.log().freeze_tail()
    rig.write({"data": "123456789"})
    assert outline(rig.page(0, byte_budget=3, nodes=["own"])) == ([], None, 1)
    assert outline(rig.page(1, byte_budget=3, nodes=["own"])) == ([2], None, 2)


def test_a_full_page_ends_with_its_last_record_however_the_deleted_ones_lie() -> None:
    for frozen in (False, True):
        rig = Rig()
        for seq in range(1, 7):
            rig.write({"data": seq, "tag": "gone" if seq in (3, 4, 6) else "kept"})
            if frozen and seq in (2, 4):
                rig.log().freeze_tail()
        rig.delete(match="gone")
        assert outline(rig.page(0, limit=2)) == ([1, 2], None, 2)
        assert outline(rig.page(2, limit=1)) == ([5], None, 5)
        assert outline(rig.page(2, limit=2)) == ([5], None, 6)
        assert outline(rig.page(0, byte_budget=2)) == ([1, 2], None, 2)


def test_large_batches_are_read_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "TAIL_BATCH_RECORDS_MAX", 2)
    rig = Rig()
    rig.write_numbers(1, 2)
    rig.write_numbers(3, 4, 5)
    rig.write_numbers(6)
    assert outline(rig.page(1, limit=4)) == ([2, 3, 4, 5], None, 5)


def plan(log: Log, visible_seq: int, from_seq: int) -> ReadPlan:
    return plan_read(log, visible_seq, from_seq, 100, PLENTY)


def spans(found: ReadPlan) -> list[tuple[int, int]]:
    return [(span.block.first_seq + span.start, span.block.first_seq + span.end - 1) for span in found.spans]


def test_nothing_is_seen_before_it_is_safe() -> None:
    log = written(7).log()
    found = plan(log, 4, 0)
    assert (spans(found), found.next_from_seq, found.tombstone) == ([(1, 3), (4, 4)], 4, None)
    found = plan(log, 4, 6)
    assert (spans(found), found.next_from_seq, found.tombstone) == ([], 6, None), "a cursor ahead of what is seen waits"
    assert plan(log, 4, 8).tombstone == Tombstone(1, 4, Reason.RECREATED, 4, 1, 4)


def test_loss_is_told_as_far_as_is_seen_and_the_rest_later() -> None:
    rig = written(6)
    rig.configure(cap_records=1)
    log = rig.log()
    assert plan(log, 0, 0) == ReadPlan([], None, 0, 0)
    found = plan(log, 3, 0)
    assert found.tombstone == Tombstone(1, 3, Reason.CAP, 3, 6, 3) and found.next_from_seq == 3
    found = plan(log, 6, 3)
    assert found.tombstone == Tombstone(4, 5, Reason.CAP, 2, 6, 6) and spans(found) == [(6, 6)]


def test_scanned_counts_what_was_looked_at() -> None:
    rig = Rig()
    for seq in range(1, 5):
        rig.write({"data": seq, "tag": "even" if seq % 2 == 0 else "odd"})
    rig.delete(match="odd")
    log = rig.log()
    assert plan_read(log, 4, 0, 10, PLENTY).scanned == 4
    assert plan_read(log, 4, 0, 10, PLENTY, match=Match(b"none", prefix=False)).scanned == 4
    assert plan_read(log, 4, 0, 1, PLENTY).scanned == 2


# ---- reading by time


def by_time(count: int, **config: Any) -> Rig:
    """A topic with a record a second, three to a block: record n has the time n seconds."""
    rig = Rig()
    rig.configure(**config)
    for number in range(1, count + 1):
        rig.now_ms = number * 1000
        rig.write_numbers(number)
        if number % 3 == 0:
            rig.log().freeze_tail()
    rig.log().visible_seq = rig.log().head_seq
    return rig


def test_a_time_is_the_cursor_before_its_first_record() -> None:
    log = by_time(8).log()
    for number in range(2, 9):
        assert cursor_at(log, number * 1000) == cursor_at(log, number * 1000 - 999) == number - 1
    assert cursor_at(log, 0) == cursor_at(log, 1000) == 0
    assert cursor_at(log, 8001) == 8


def test_a_time_before_the_floor_is_the_beginning_so_that_the_loss_is_told() -> None:
    rig = by_time(8, cap_records=4)
    assert cursor_at(rig.log(), 3000) == cursor_at(rig.log(), 5000) == 0
    assert outline(rig.page(cursor_at(rig.log(), 3000))) == ([5, 6, 7, 8], (1, 4, "cap"), 8)
    assert cursor_at(rig.log(), 6000) == 5, "5 is older and there: nothing of that time was lost"


def test_a_time_behind_a_hole_begins_before_the_hole() -> None:
    rig = by_time(3)
    skip(rig, 4)
    rig.now_ms = 9000
    rig.write_numbers(8)
    rig.log().visible_seq = rig.log().head_seq
    cursor = cursor_at(rig.log(), 5000)
    assert cursor == 3
    assert outline(rig.page(cursor)) == ([8], (4, 7, "restart"), 8)


def test_a_time_leads_to_nothing_that_is_not_visible_yet() -> None:
    rig = by_time(6)
    rig.log().visible_seq = 2
    assert cursor_at(rig.log(), 5000) == 2
    assert cursor_at(rig.log(), 9000) == 2


def test_a_time_of_which_everything_was_deleted() -> None:
    rig = by_time(6)
    rig.log().delete_seqs([4, 5, 6])
    assert cursor_at(rig.log(), 5000) == 3
    assert outline(rig.page(3)) == ([], None, 6)
    rig.log().delete_seqs([1, 2, 3])
    assert cursor_at(rig.log(), 5000) == 0
    assert outline(rig.page(0)) == ([], None, 6)


def test_deleted_records_do_not_count_as_older() -> None:
    rig = by_time(6)
    rig.delete(before_seq=4)
    assert cursor_at(rig.log(), 4000) == 0
    assert outline(rig.page(0)) == ([4, 5, 6], None, 6)


def at_head(rig: Rig, from_seq: int, limit: int = PLENTY, byte_budget: int = PLENTY) -> bytes | None:
    log = rig.log()
    return text_at_head(log, log.head_seq, from_seq, limit, byte_budget)


def test_what_is_new_needs_no_plan() -> None:
    rig = written(8)
    assert at_head(rig, 6) == b'{"$seq":7,"$ts":%d,"data":7},{"$seq":8,"$ts":%d,"data":8}' % (rig.now_ms, rig.now_ms)
    assert at_head(rig, 8) is None, "nothing is"
    assert at_head(rig, 9) is None, "a cursor from another life"
    assert at_head(rig, 5) is None, "some of it is frozen"


def test_what_is_over_the_limits_takes_a_plan() -> None:
    rig = written(8)
    text = at_head(rig, 6)
    assert text is not None
    assert at_head(rig, 6, limit=2) == at_head(rig, 6, byte_budget=len(text)) == text
    assert at_head(rig, 6, limit=1) is None
    assert at_head(rig, 6, byte_budget=len(text) - 1) is None


def test_what_is_lost_or_deleted_takes_a_plan() -> None:
    capped = written(0, cap_records=2)
    capped.write_numbers(1, 2, 3)
    assert at_head(capped, 0) is None
    assert at_head(capped, 1) is not None
    holed = written(7)
    skip(holed, 2)
    holed.write_numbers(10)
    assert at_head(holed, 7) is None and at_head(holed, 8) is None
    assert at_head(holed, 9) is not None
    marked = written(6)
    marked.write({"data": 7}, {"data": 8, "tag": "x"}, {"data": 9})
    assert at_head(marked, 6) is not None
    marked.delete(match="x")
    assert at_head(marked, 6) is None


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("byte_budget", [1, 3, 100, PLENTY])
@pytest.mark.parametrize("from_seq", range(12))
def test_what_needs_no_plan_is_what_the_plan_takes(limit: int, byte_budget: int, from_seq: int) -> None:
    rig = written(7, cap_records=9)
    rig.write_numbers(8, 9)
    rig.write_numbers(10)
    log = rig.log()
    text = text_at_head(log, log.head_seq, from_seq, limit, byte_budget)
    if text is not None:
        plan = plan_read(log, log.head_seq, from_seq, limit, byte_budget)
        assert (cut(plan.spans), plan.tombstone, plan.next_from_seq) == (text, None, log.head_seq)
