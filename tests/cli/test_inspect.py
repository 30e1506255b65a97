from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rig import Command


@pytest.fixture
def bare(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.fixture
def directory(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Path:
    local = Command(capfd, ["--dir", str(tmp_path / "data")])
    lines = '{"data": {"sku": "A1"}, "tag": "order-1"}\n{"data": 2, "tag": "order-2"}'
    (tmp_path / "orders.jsonl").write_text(lines)
    local.good("write", "orders", "--records", "--file", tmp_path / "orders.jsonl")
    local.good("delete", "orders", "--tag", "order-1")
    return tmp_path / "data"


def test_a_directory(bare: Command, directory: Path) -> None:
    found = {each["file"]: each for each in bare.good("inspect", directory)}
    assert found["segments/000000000001.data"]["records"] == 2
    assert found["segments/000000000001.data"]["kinds"]["BLOCK"] == 1
    assert {name.partition("/")[0] for name in found} == {"wal", "segments", "snapshots"}
    shown = bare("inspect", directory, "--no-json").out
    assert "segments/000000000001.data" in shown and "1 BLOCK" in shown


def test_the_frames_of_a_file(bare: Command, directory: Path) -> None:
    frames = bare.good("inspect", directory / "segments/000000000001.data", "--records")
    assert [frame["kind"] for frame in frames] == ["FILE_HEADER", "SECTION", "BLOCK", "FILE_END"]
    assert frames[1]["about"]["topic"] == "orders"
    block = frames[2]
    assert (block["about"]["count"], block["about"]["deleted"]) == (2, 1)
    assert [record.get("deleted", False) for record in block["records"]] == [True, False]
    assert block["records"][1]["data"] == 2 and block["records"][1]["$tag"] == "order-2"
    shown = bare("inspect", directory / "segments/000000000001.data", "--records", "--no-json").out
    assert "BLOCK" in shown and "first_seq=1" in shown and '"sku": "A1"' in shown


def test_only_some_of_them(bare: Command, directory: Path) -> None:
    path = directory / "segments/000000000001.data"
    assert len(bare.good("inspect", path, "--limit", "2")) == 2
    log_id = bare.good("inspect", path)[2]["log_id"]
    assert {frame["log_id"] for frame in bare.good("inspect", path, "--log", log_id)} == {log_id}


def test_what_cannot_be_read_fails_and_the_rest_is_shown(bare: Command, directory: Path) -> None:
    path = directory / "segments/000000000001.data"
    content = bytearray(path.read_bytes())
    offset = bare.good("inspect", path)[2]["offset"]
    content[offset + 50] ^= 1
    path.write_bytes(content)
    said = bare("inspect", path)
    assert said.code == 1
    assert [frame["kind"] for frame in said.lines] == ["FILE_HEADER", "SECTION", "UNREADABLE", "FILE_END"]
    assert bare("inspect", directory).code == 1


@pytest.mark.parametrize(("name", "code"), [("nowhere", 3), ("nowhere.wal", 3), (".", 3), ("lock", 3)])
def test_what_is_not_ours(bare: Command, tmp_path: Path, name: str, code: int) -> None:
    (tmp_path / "lock").touch()
    said = bare("inspect", tmp_path / name)
    assert (said.code, said.out) == (code, "")
    assert said.err.count("\n") == 1


def test_only_files_of_ours_are_looked_into(bare: Command, directory: Path) -> None:
    (directory / "wal" / "notes.txt").write_text("not a frame")
    assert [each["file"] for each in bare.good("inspect", directory) if "notes" in each["file"]] == []
    (directory / "odd.wal").mkdir()
    said = bare("inspect", directory / "odd.wal")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"topics: invalid_request: {directory / 'odd.wal'}: Is a directory; expected a data ")
