"""Commits of a lake: each batch once, each partition without a hole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.lakes import filled, part_of, rows_of
from topics.errors import Conflict, InvalidRequest, NotFound
from topics.spark.lakefile import Place
from topics.spark.laketable import Lake, Part

T = Place("t", 1, 0)


def test_a_batch_is_added_once(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=1)
    again = part_of(lake, 1, 10)
    assert lake.commit("q", 0, [again]) is False
    assert [row["seq"] for row in rows_of(lake.root)] == list(range(1, 11))
    assert (lake.committed("q"), lake.committed("other"), lake.upto_seq(T)) == (0, -1, 10)
    assert lake.upto_seq(Place("t", 2, 0)) == 0


def test_two_attempts_at_once_are_one(tmp_path: Path) -> None:
    """A driver that was taken for dead commits at the same time as the one that took over."""
    lake = filled(tmp_path, parts=1)
    one, other = Lake.open(lake.root), Lake.open(lake.root)
    assert one.commit("q", 1, [part_of(lake, 11, 15)]) is True
    assert other.commit("q", 1, [part_of(lake, 11, 15)]) is False
    assert [row["seq"] for row in rows_of(lake.root)] == list(range(1, 16))


@pytest.mark.parametrize("first", [10, 12])
def test_a_batch_that_does_not_follow_on_is_refused(tmp_path: Path, first: int) -> None:
    lake = filled(tmp_path, parts=1)
    with pytest.raises(Conflict, match="up to seq 10, but a batch begins behind"):
        lake.commit("other", 0, [part_of(lake, first, 20)])
    assert Lake.open(lake.root).version == lake.version


def test_two_queries_cannot_archive_the_same_topic_at_once(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=1)
    one, other = Lake.open(lake.root), Lake.open(lake.root)
    one.commit("q", 1, [part_of(lake, 11, 15)])
    with pytest.raises(Conflict):
        other.commit("another", 0, [part_of(lake, 11, 15)])
    assert [row["seq"] for row in rows_of(lake.root)] == list(range(1, 16))


def test_parts_of_a_batch_follow_each_other(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=1)
    lake.commit("q", 1, [part_of(lake, 13, 20), part_of(lake, 11, 12), part_of(lake, 1, 4, "u")])
    lake = Lake.open(lake.root)
    assert (lake.upto_seq(T), lake.upto_seq(Place("u", 1, 0))) == (20, 4)
    with pytest.raises(Conflict):
        lake.commit("q", 2, [part_of(lake, 21, 22), part_of(lake, 24, 25)])


def test_progress_without_records(tmp_path: Path) -> None:
    """All records of a range were deleted before they could be archived."""
    lake = filled(tmp_path, parts=1)
    assert lake.commit("q", 1, [Part("t", 1, 0, 10, 99, [])]) is True
    assert Lake.open(lake.root).upto_seq(T) == 99


def test_marks_outlive_the_log_they_were_written_to(tmp_path: Path) -> None:
    """Delta makes a checkpoint of its log every so often."""
    lake = filled(tmp_path, parts=25)
    assert list(Path(lake.root, "_delta_log").glob("*.checkpoint.parquet"))
    assert (lake.committed("q"), lake.upto_seq(T)) == (24, 250)


@pytest.mark.parametrize("layout", ["topic,date", "topic", "date"])
def test_layouts(tmp_path: Path, layout: str) -> None:
    lake = filled(tmp_path, layout=layout, topic="a:b")
    assert [row["data"] for row in rows_of(lake.root)] == [str(seq) for seq in range(1, 31)]
    assert {row["topic"] for row in rows_of(lake.root)} == {"a:b"}
    assert sum(file.row_count for file in lake.files(["a:b"])) == 30
    assert sum(file.row_count for file in lake.files(["a:b"], first_seq=25)) < 30
    if "topic" in layout:
        assert list(lake.files(["b"])) == []
    with pytest.raises(Conflict, match="that is fixed"):
        Lake.create(lake.root, "date" if "topic" in layout else "topic")


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match='not "month"'):
        Lake.create(str(tmp_path / "lake"), "month")
    with pytest.raises(NotFound, match="no lake at"):
        Lake.open(str(tmp_path / "nowhere"))


def test_files_are_replaced_behind_what_others_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(tmp_path, parts=2)
    old = list(lake.files(["t"]))
    new = part_of(lake, 1, 20, data="new").files
    Lake.open(lake.root).commit("q", 2, [part_of(lake, 21, 22)])
    with monkeypatch.context() as patch, pytest.raises(Conflict, match="nothing was done: try again"):
        # As when somebody else comes first each time.
        patch.setattr(Lake, "open", lambda root: lake)
        lake.replace(old, new)
    lake.replace(old, new)
    assert [row["data"] for row in rows_of(lake.root)] == ["new"] * 20 + ["21", "22"]
    with pytest.raises(Conflict, match="nothing was done: try again"):
        lake.replace(old, new)
    assert len(rows_of(lake.root)) == 22, "what is replaced already is not replaced again"


def test_a_batch_is_added_behind_what_was_erased(tmp_path: Path) -> None:
    lake = filled(tmp_path, parts=2)
    part = part_of(lake, 21, 22)
    Lake.open(lake.root).replace(list(lake.files(["t"])), [])
    assert lake.commit("q", 2, [part]) is True
    assert [row["seq"] for row in rows_of(lake.root)] == [21, 22]


def test_a_batch_that_others_always_come_before_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = filled(tmp_path, parts=1)
    Lake.open(lake.root).commit("q", 1, [part_of(lake, 11, 12)])
    with monkeypatch.context() as patch, pytest.raises(Conflict, match="nothing was done: try again"):
        patch.setattr(Lake, "open", lambda root: lake)
        lake.commit("q", 1, [part_of(lake, 11, 12)])
    assert [row["seq"] for row in rows_of(lake.root)] == [*range(1, 13)]
