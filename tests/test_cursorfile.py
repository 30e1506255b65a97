from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from topics import Cursor, FileCursors, errors
from topics.testing import CRASH_MODES, CrashMode, FakeDisk, FaultFs, SimulatedCrash

OLD = {"orders": Cursor(17, 3)}
NEW = {"orders": Cursor(18, 3), "stock/2": Cursor(5, 4)}


@on_loop
async def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    cursors = FileCursors(tmp_path / "new" / "billing.cursors")
    assert await cursors.load() == {}
    for saved in (OLD, NEW):
        await cursors.save(saved)
        assert await cursors.load() == await FileCursors(tmp_path / "new" / "billing.cursors").load() == saved
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["billing.cursors"]


@on_loop
async def test_a_bare_name_is_beside_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await FileCursors("billing.cursors").save(OLD)
    assert (tmp_path / "billing.cursors").exists()
    assert await FileCursors("billing.cursors").load() == OLD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"orders": 5}',
        '{"orders": {"seq": "x"}}',
        '{"orders": {"seq": -1}}',
        '{"orders": {"seq": 18446744073709551616}}',
        '{"orders": {"seq": 1, "epoch": -1}}',
        '{"orders": {"seq": 1, "deep": ' + "[" * 100_000 + "]" * 100_000 + "}}",
        "\xff",
    ],
    ids=lambda text: text[:40],
)
@on_loop
async def test_a_file_that_holds_something_else_is_not_taken_for_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "billing.cursors"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(errors.Damaged, match="does not hold cursors"):
        await FileCursors(path).load()


def crash_points() -> int:
    """How many calls a save makes."""
    watched = FaultFs(FakeDisk())
    FileCursors("/data/c", watched)._save(NEW)
    return len(watched.calls) + 2


@pytest.mark.parametrize("mode", CRASH_MODES)
def test_a_power_loss_at_any_moment_leaves_the_old_or_the_new(mode: CrashMode) -> None:
    seen = set()
    for index in range(crash_points()):
        for seed in range(5):
            disk = FakeDisk(seed=seed)
            FileCursors("/data/c", disk)._save(OLD)
            faulty = FaultFs(disk)
            faulty.crash_at(index)
            with suppress(SimulatedCrash):
                FileCursors("/data/c", faulty)._save(NEW)
            left = FileCursors("/data/c", disk.crash(mode))
            found = left._load()
            assert found in (OLD, NEW)
            seen.add("old" if found == OLD else "new")
            left._save(NEW)
            assert left._load() == NEW
    assert seen == {"old", "new"}


@on_loop
async def test_a_full_disk_is_told_and_leaves_the_old_one() -> None:
    disk = FakeDisk()
    await FileCursors("/data/c", disk).save(OLD)
    faulty = FaultFs(disk)
    faulty.fail("write_at", code=errno.ENOSPC)
    cursors = FileCursors("/data/c", faulty)
    with pytest.raises(OSError, match="No space"):
        await cursors.save(NEW)
    assert await cursors.load() == OLD
    await cursors.save(NEW)
    assert await cursors.load() == NEW


@on_loop
async def test_a_cancelled_save_does_not_meet_the_next_one(tmp_path: Path) -> None:
    cursors = FileCursors(tmp_path / "c")
    for seq in range(20):
        saving = asyncio.create_task(cursors.save({"orders": Cursor(seq)}))
        await asyncio.sleep(0)
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        await cursors.save({"orders": Cursor(1000 + seq)})
        assert await cursors.load() == {"orders": Cursor(1000 + seq)}
