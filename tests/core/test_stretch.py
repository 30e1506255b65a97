"""Stretches of a log, cut once."""

from __future__ import annotations

from topics.core.log import Log
from topics.core.match import Match
from topics.core.payload import Shape
from topics.core.records import Records
from topics.core.stretch import CUTS_MAX, Cuts, Load, Stretch, stretches
from topics.model import TopicConfig


def log_of(*batches: list[str]) -> Log:
    log = Log(1, "t", 0, 1)
    for tags in batches:
        log.append(Records.of([{"data": 1, "tag": tag} for tag in tags]).encode(log.next_seq, 5), TopicConfig())
    return log


def cut(log: Log, start: int, upto: int, cuts: Cuts) -> Stretch | None:
    return next(stretches(log, start, upto, cuts), None)


def test_stretches_follow_each_other_up_to_the_end() -> None:
    log = log_of(["x"] * 600, ["y"] * 700, ["z"] * 3)
    assert [(each.first_seq, each.last_seq) for each in stretches(log, 5, 1302, {})] == [
        (5, 600),
        (601, 1300),
        (1301, 1302),
    ]
    log.delete_seqs(range(601, 1301))
    assert [(each.first_seq, each.last_seq) for each in stretches(log, 600, 1303, {})] == [(600, 600), (1301, 1303)]


def test_what_was_cut_is_good_for_who_comes_later_and_kept_within_bounds() -> None:
    log, cuts = log_of(["x"] * 600), Cuts()
    first = cut(log, 1, 600, cuts)
    log.append(Records.of([{"data": 2}] * 600).encode(601, 5), TopicConfig())
    log.delete_seqs([700])
    assert cut(log, 1, 1200, cuts) is first
    for seq in range(2, CUTS_MAX + 2):
        cut(log, seq, 600, cuts)
    assert len(cuts) == CUTS_MAX and cut(log, 1, 600, cuts) is not first


def test_the_first_one_cuts_for_all_at_the_same_place() -> None:
    log, cuts = log_of(["x"] * 5), Cuts()
    first = cut(log, 2, 4, cuts)
    assert first is not None and (first.first_seq, first.last_seq) == (2, 4)
    assert cut(log, 2, 4, cuts) is first and cut(log, 3, 4, cuts) is not first
    log.append(Records.of([{"data": 2}]).encode(6, 5), TopicConfig())
    assert cut(log, 2, 4, cuts) is first, "what was written since makes no difference"
    log.delete_seqs([3])
    again = cut(log, 2, 4, cuts)
    assert again is not None and again is not first
    positions, selection = again.select(None, Shape())
    assert positions is not None and positions.tolist() == [0, 2] and selection is not None and selection.count == 2


def test_there_is_nothing_behind_the_end_or_where_all_is_deleted() -> None:
    log = log_of(["x"] * 3)
    assert cut(log, 4, 3, {}) is None and cut(log, 4, 9, {}) is None
    log.delete_seqs([1, 2, 3])
    found = cut(log, 1, 3, {})
    assert found is None or found.select(None, Shape())[1] is None


def test_routers_with_the_same_wishes_share_a_selection() -> None:
    found = cut(log_of(["x", "y", "x"]), 1, 3, {})
    assert found is not None
    positions, some = found.select(Match(b"x", prefix=False), Shape())
    assert positions is not None and positions.tolist() == [0, 2]
    assert found.select(Match(b"x", prefix=False), Shape())[1] is some
    assert found.select(Match(b"x", prefix=False), Shape(drops_tag=True))[1] is not some
    assert found.select(Match(b"z", prefix=False), Shape())[1] is None
    assert found.select(None, Shape())[0] is None
    without, _ = found.select(None, Shape(), {1, 3})
    assert without is not None and without.tolist() == [1]


def test_a_load_says_which_seqs_it_took() -> None:
    log = log_of(["x"] * 600, ["y"] * 600)
    load, cuts = Load(1), Cuts()
    for each in stretches(log, 1, 1200, cuts):
        load.add(each, *each.select(Match(b"y", prefix=False), Shape()))
    assert (load.count, load.scanned, load.next_seq, load.payload_bytes) == (600, 1200, 1201, 600)
    assert load.chosen() == b"\0" * 75 + b"\xff" * 75
    whole = Load(601)
    found = cut(log, 601, 1200, cuts)
    assert found is not None
    whole.add(found, *found.select(None, Shape()))
    assert whole.chosen() == b""
    part = whole.fitted(7, Shape())
    assert (part.count, part.next_seq, part.chosen()) == (7, 608, b"")
    assert whole.fitted(600, Shape()) is whole is whole.fitted(700, Shape())
