from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.rig import Command
from tests.cli.terminal import Terminal
from topics.cli import run


@pytest.fixture
def plain(capfd: pytest.CaptureFixture[str]) -> Command:
    """A command line without a place to work on."""
    return Command(capfd, [])


def test_there_and_back(topics: Command, plain: Command, topic: str, tmp_path: Path) -> None:
    for number in range(5):
        topics.good("write", topic, number, "--tag", f"t{number}")
    topics.good("delete", topic, "--tag", "t3")
    (made,) = topics.good("backup", tmp_path / "a.tar")
    assert made["archive"] == f"{tmp_path}/a.tar" and made["files"] >= 4
    topics.good("write", topic, '"too late"')
    assert plain.good("backup", "--verify", tmp_path / "a.tar") == [made]
    (restored,) = plain.good("restore", tmp_path / "a.tar", tmp_path / "copy")
    assert restored["directory"] == f"{tmp_path}/copy" and restored["created_ms"] == made["created_ms"]
    found = plain.good("read", topic, "--dir", tmp_path / "copy")
    assert [record["data"] for record in found] == [0, 1, 2, 4]
    assert [record["$tag"] for record in found] == ["t0", "t1", "t2", "t4"]


def test_the_name_or_the_flag_compresses(topics: Command, topic: str, tmp_path: Path) -> None:
    topics.good("write", topic, f'"{"x" * 5000}"')
    (pressed,) = topics.good("backup", tmp_path / "a.tar.gz")
    (flagged,) = topics.good("backup", tmp_path / "b", "--gzip", 1)
    (plain,) = topics.good("backup", tmp_path / "c.tar.gz", "--gzip", 0)
    assert pressed["bytes"] >= 5000 and plain["bytes"] >= flagged["bytes"] >= 5000
    sizes = [(tmp_path / name).stat().st_size for name in ("a.tar.gz", "b", "c.tar.gz")]
    assert max(sizes[:2]) < sizes[2]
    assert gzip.decompress((tmp_path / "b").read_bytes())[:11] == b"backup.json"


def test_nothing_is_written_over(topics: Command, topic: str, tmp_path: Path) -> None:
    topics.good("write", topic, 1)
    (tmp_path / "a.tar").write_text("mine")
    said = topics("backup", tmp_path / "a.tar")
    assert said.code == 4 and "is there already" in said.err
    assert (tmp_path / "a.tar").read_text() == "mine"
    topics.good("backup", tmp_path / "b.tar")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")
    assert run(["restore", f"{tmp_path}/b.tar", f"{tmp_path}/full"]) == 4
    assert os.listdir(tmp_path / "full") == ["file"]


def test_a_damaged_archive_is_refused_with_what_and_where(
    topics: Command, plain: Command, topic: str, tmp_path: Path
) -> None:
    topics.good("write", topic, 1)
    topics.good("backup", tmp_path / "a.tar")
    archive = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "short.tar").write_bytes(archive[:-2000])
    (tmp_path / "other.tar").write_bytes(archive.replace(b'"$seq":1', b'"$seq":2'))
    for name in ("short.tar", "other.tar"):
        for line in (("backup", "--verify", tmp_path / name), ("restore", tmp_path / name, tmp_path / "copy")):
            said = plain(*line)
            assert said.code == 1 and f"{name} offset " in said.err and "make one with `topics backup`" in said.err
            assert len(said.err.splitlines()) == 1
    assert not (tmp_path / "copy").exists() and not (tmp_path / "copy.restoring").exists()


@pytest.mark.parametrize("line", [("backup", "--verify", "nowhere.tar"), ("restore", "nowhere.tar", "copy")])
def test_a_file_that_is_not_there(plain: Command, line: tuple[str, ...], tmp_path: Path) -> None:
    said = plain(line[0], *(part if part.startswith("-") else tmp_path / part for part in line[1:]))
    assert said.code == 1 and "nowhere.tar" in said.err


def test_a_place_that_cannot_be_written_to(topics: Command, topic: str, tmp_path: Path) -> None:
    topics.good("write", topic, 1)
    said = topics("backup", tmp_path / "no" / "a.tar")
    assert said.code == 1 and "a.tar" in said.err
    topics.good("backup", tmp_path / "a.tar")


def test_a_level_that_is_none(topics: Command, topic: str, tmp_path: Path) -> None:
    topics.good("write", topic, 1)
    said = topics("backup", tmp_path / "a.tar", "--gzip", 12)
    assert said.code == 2 and "from 0 (none) to 9 (best)" in said.err
    assert os.listdir(tmp_path) in ([], ["data"])


def test_a_directory_that_a_server_has_open(plain: Command, tmp_path: Path) -> None:
    from topics.sync import open as open_directory

    with open_directory(tmp_path / "data") as client:
        client.topic("a").write(1)
        said = plain("backup", tmp_path / "a.tar", "--dir", tmp_path / "data")
    assert said.code == 2 and "held by" in said.err
    assert not (tmp_path / "a.tar").exists()


def test_a_person_sees_what_happened(tmp_path: Path) -> None:
    place = f"--dir={tmp_path}/data"
    assert run(["write", "orders", '"x"', place, "--json"]) == 0
    with Terminal("backup", tmp_path / "a.tar", place) as terminal:
        terminal.wait_for("verifying")
        assert terminal.end() == 0
        assert "is made and whole: " in terminal.shown.replace("\n", " ")
    with Terminal("restore", tmp_path / "a.tar", tmp_path / "copy") as terminal:
        terminal.wait_for("restoring")
        assert terminal.end() == 0
        assert "holds 1 topic, 1 record" in terminal.shown.replace("\n", " ")
