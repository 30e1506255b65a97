"""The disk that loses power keeps its own promises: what is synced stays, and the rest may go."""

from __future__ import annotations

import random

import pytest

from tests.e2e.jepsen.platter import LOSS_MODES, SECTOR_BYTES, Directory, File, LossMode, Platter, Write

SEEDS = range(40)


def disk_with(file: File) -> Platter:
    platter = Platter()
    platter.root.names["file"] = file
    platter.root.changed()
    platter.root.sync(1)
    return platter


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_synced_bytes_survive_every_power_loss(mode: LossMode) -> None:
    for seed in SEEDS:
        file = File()
        platter = disk_with(file)
        file.write(Write(0, b"kept"))
        file.sync(file.pending_count())
        file.write(Write(4, b"x" * 2000))
        platter.lose_power(mode, random.Random(seed))
        assert file.content[:4] == b"kept"
        assert not file.pending


def test_dropped_mode_loses_all_unsynced_bytes() -> None:
    file = File()
    platter = disk_with(file)
    file.write(Write(0, b"gone"))
    platter.lose_power("dropped", random.Random(1))
    assert file.content == b""


def test_torn_mode_keeps_a_prefix_of_the_writes() -> None:
    lengths = set()
    for seed in SEEDS:
        file = File()
        platter = disk_with(file)
        for at in range(10):
            file.write(Write(at * 10, bytes([at]) * 10))
        platter.lose_power("torn", random.Random(seed))
        whole = b"".join(bytes([at]) * 10 for at in range(10))
        assert whole.startswith(bytes(file.content))
        lengths.add(len(file.content))
    assert any(length % 10 for length in lengths)
    assert len(lengths) > 5


def test_scattered_mode_loses_sectors_before_kept_ones() -> None:
    holes = 0
    for seed in SEEDS:
        file = File()
        platter = disk_with(file)
        file.write(Write(100, b"x" * 4 * SECTOR_BYTES))
        platter.lose_power("scattered", random.Random(seed))
        content = bytes(file.content).rstrip(b"\0")
        holes += b"\0" in content[100:]
        assert set(content) <= {0, ord("x")}
    assert holes


def test_a_write_after_the_sync_began_stays_pending() -> None:
    file = File()
    platter = disk_with(file)
    file.write(Write(0, b"a"))
    count = file.pending_count()
    file.write(Write(1, b"b"))
    file.sync(count)
    platter.lose_power("dropped", random.Random(1))
    assert file.content == b"a"


def test_a_truncation_is_pending_until_the_sync() -> None:
    file = File()
    platter = disk_with(file)
    file.write(Write(0, b"abc"))
    file.write(Write(size=5))
    file.sync(2)
    file.write(Write(size=1))
    assert file.content == b"a"
    platter.lose_power("dropped", random.Random(1))
    assert file.content == b"abc\0\0"


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_names_are_lost_from_the_last_change_back(mode: LossMode) -> None:
    seen = set()
    for seed in SEEDS:
        root = Directory()
        platter = Platter(root)
        for name in "abc":
            root.names[name] = File()
            root.changed()
        root.sync(1)
        del root.names["a"]
        root.changed()
        platter.lose_power(mode, random.Random(seed))
        seen.add("".join(sorted(root.names)))
    assert seen == ({"a"} if mode == "dropped" else {"a", "ab", "abc", "bc"})
