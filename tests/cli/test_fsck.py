from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.engine.damage import DIRECTORY, build
from topics.storage.fs import RealFs

ROOT = Path(__file__).parents[2]
SEGMENT = "segments/000000000001.data"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A healthy data directory on the real disk."""
    place = tmp_path / "data"
    for path, content in build(closed=True).contents().items():
        target = place / path.removeprefix(f"{DIRECTORY}/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return place


def damage(directory: Path, name: str = SEGMENT, offset: int = 300) -> None:
    content = bytearray((directory / name).read_bytes())
    content[offset] ^= 0x10
    (directory / name).write_bytes(content)


def topics(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "topics", "fsck", *map(str, arguments)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TOPICS_")}
    settings = clean | {"COLUMNS": "200", **environment}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=settings)


def test_a_healthy_directory(directory: Path) -> None:
    done = topics(directory, "--no-json")
    assert done.returncode == 0
    assert done.stdout.startswith("clean: ")
    assert "17 records; last stop: clean" in done.stdout
    assert done.stderr == ""


def test_the_directory_may_come_from_the_settings(directory: Path) -> None:
    assert topics(TOPICS_DATA_DIR=str(directory)).returncode == 0


def test_damage_is_shown_with_its_place_and_what_to_do(directory: Path) -> None:
    damage(directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "lock"}
    done = topics(directory, "--no-json")
    assert done.returncode == 1
    for part in (SEGMENT, "184", "ledger", "1..4", "would be lost", "--repair"):
        assert part in done.stdout, part
    after = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and path.name != "lock"}
    assert after == before


def test_a_repair_says_what_is_lost_and_where_the_damaged_files_are(directory: Path) -> None:
    damage(directory)
    bad = (directory / SEGMENT).read_bytes()
    done = topics(directory, "--repair", "--no-json")
    assert done.returncode == 1
    assert "repaired: " in done.stdout
    (aside,) = directory.glob("damaged-*/*")
    assert aside.read_bytes() == bad
    assert str(aside.parent) in done.stdout
    (report,) = directory.glob("repair-*.json")
    assert json.loads(report.read_text())["lost"][0]["topic"] == "ledger"
    assert topics(directory).returncode == 0


def test_a_pipe_gets_the_report_as_json_and_nothing_else(directory: Path) -> None:
    damage(directory)
    done = topics(directory)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["findings"][0]["file"] == str(directory / SEGMENT)
    assert report["lost"] == [{"topic": "ledger", "partition": 0, "gap_from": 1, "gap_to": 4, "reason": "damage"}]
    assert not report["repaired"]
    assert done.stderr == ""


def test_a_directory_in_use_cannot_be_checked(directory: Path) -> None:
    lock = RealFs().lock(str(directory / "lock"))
    try:
        done = topics(directory)
    finally:
        lock.release()
    assert done.returncode == 2
    assert "directory_locked" in done.stderr and f"{os.getpid()}" in done.stderr


@pytest.mark.parametrize("arguments", [("/nonexistent",), ("/",)], ids=["missing", "another"])
def test_what_is_no_data_directory_cannot_be_checked(arguments: tuple[str, ...]) -> None:
    done = topics(*arguments)
    assert done.returncode == 2
    assert "is no data directory" in done.stderr


def test_a_bad_setting_cannot_run(directory: Path) -> None:
    done = topics(directory, TOPICS_WAL_SHARDS="many")
    assert done.returncode == 2
    assert "TOPICS_WAL_SHARDS=many" in done.stderr


def test_a_terminal_gets_a_progress_bar(directory: Path) -> None:
    with Terminal("fsck", directory) as terminal:
        assert terminal.end() == 0
        assert "checking ━" in terminal.shown
        assert "bytes" in terminal.shown or "KiB" in terminal.shown
        assert "clean: " in terminal.shown


def test_damage_that_touches_no_record(directory: Path) -> None:
    (snapshot,) = (directory / "snapshots").iterdir()
    damage(directory, f"snapshots/{snapshot.name}", 60)
    shown = topics(directory, "--no-json").stdout
    (row,) = [line.split("│") for line in shown.splitlines() if snapshot.name in line]
    assert row[5].strip() == "", "no seqs are at risk"


def test_what_may_be_back_is_shown_by_topic(directory: Path) -> None:
    newest = max((directory / "snapshots").iterdir())
    newest.unlink()
    shown = topics(directory, "--no-json").stdout
    for part in ("may come back", "leases, deliveries, positions of groups and routers of an earlier moment", "parts"):
        assert part in shown, shown
    report = json.loads(topics(directory, "--repair", "--json").stdout)
    assert {"topic": "parts", "partition": 1, "doubt": "answers"}.items() <= report["may_be_back"][-1].items()
    kept = json.loads((directory / Path(report["report_file"]).name).read_text())
    assert kept["may_be_back"] == report["may_be_back"]
