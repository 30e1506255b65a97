"""Files beside a checkpoint."""

from __future__ import annotations

from pathlib import Path

from topics.spark.pipeline.spool import Spool


def test_files_are_whole_and_in_order(tmp_path: Path) -> None:
    spool = Spool((tmp_path / "new" / "place").as_uri())
    assert spool.names() == []
    spool.write("b-2", b"two")
    spool.write("b-1", b"one")
    spool.write("b-1", b"ONE")
    spool.write("a", b"")
    assert spool.names("b-") == ["b-1", "b-2"]
    assert spool.read("b-1") == b"ONE"
    spool.delete("b-1")
    spool.delete("b-1")
    assert spool.names() == ["a", "b-2"]


def test_what_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    with spool.create(".half") as sink:
        sink.write(b"x")
    assert spool.names() == []
    with spool.create("whole") as sink:
        sink.write(b"x")
    with spool.open("whole") as source:
        assert source.read() == b"x"
