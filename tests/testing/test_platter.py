"""Each crash mode can produce its effect, and nothing beyond it."""

from __future__ import annotations

import random

import pytest

from topics.testing.platter import (
    CRASH_MODES,
    SECTOR_BYTES,
    Allocate,
    Blob,
    Change,
    CrashMode,
    Create,
    Folder,
    Rename,
    Truncate,
    Unlink,
    Write,
)

SEEDS = range(400)


def blob(durable: bytes, *pending: Change) -> Blob:
    made = Blob(durable)
    for change in pending:
        made.change(change)
    return made


def outcomes(made: Blob, mode: CrashMode) -> set[bytes]:
    return {bytes(made.survivor(mode, random.Random(seed)).content) for seed in SEEDS}


class TestBytes:
    def test_lost_keeps_what_was_synced(self) -> None:
        made = blob(b"old", Write(0, b"new"), Write(3, b"more"), Truncate(1), Allocate(9))
        assert outcomes(made, "lost") == {b"old"}

    def test_kept_keeps_what_was_seen(self) -> None:
        made = blob(b"old", Write(0, b"new"), Truncate(1), Allocate(4), Write(6, b"x"))
        assert outcomes(made, "kept") == {b"n\0\0\0\0\0x"} == {bytes(made.content)}

    def test_torn_keeps_a_prefix_and_cuts_the_next_write_at_any_byte(self) -> None:
        made = blob(b"-", Write(1, b"ab"), Write(3, b"cde"))
        assert outcomes(made, "torn") == {b"-", b"-a", b"-ab", b"-abc", b"-abcd", b"-abcde"}

    def test_torn_replaces_bytes_only_up_to_the_cut(self) -> None:
        assert outcomes(blob(b"old", Write(0, b"NEW")), "torn") == {b"old", b"Nld", b"NEd", b"NEW"}

    def test_torn_loses_a_change_of_length_whole(self) -> None:
        assert outcomes(blob(b"abc", Truncate(1), Allocate(2)), "torn") == {b"abc", b"a", b"a\0"}

    def test_torn_cuts_at_sector_borders_of_the_file_too(self) -> None:
        start, length = 100, 4 * SECTOR_BYTES
        lengths = {len(content) for content in outcomes(blob(b"-" * start, Write(start, b"x" * length)), "torn")}
        assert {start, SECTOR_BYTES, 2 * SECTOR_BYTES, 3 * SECTOR_BYTES, 4 * SECTOR_BYTES, start + length} <= lengths
        assert any(length % SECTOR_BYTES for length in lengths - {start, start + length})

    def test_zeroed_keeps_the_length_and_restores_replaced_bytes(self) -> None:
        made = blob(b"old", Write(1, b"NEW"), Write(4, b"x"))
        assert outcomes(made, "zeroed") == {b"old\0\0", b"oNEW\0", b"oNEWx"}

    def test_zeroed_keeps_truncations(self) -> None:
        made = blob(b"abcdef", Truncate(2), Write(2, b"XY"))
        assert outcomes(made, "zeroed") == {b"ab\0\0", b"abXY"}

    def test_reordered_keeps_any_subset(self) -> None:
        made = blob(b"", Write(0, b"a"), Write(1, b"b"), Write(2, b"c"))
        assert outcomes(made, "reordered") == {
            b"", b"a", b"\0b", b"\0\0c", b"ab", b"a\0c", b"\0bc", b"abc",
        }  # fmt: skip

    def test_reordered_scatters_one_write_by_sectors_of_the_file(self) -> None:
        start = SECTOR_BYTES - 10
        found = outcomes(blob(b"", Write(start, b"x" * (10 + SECTOR_BYTES + 10))), "reordered")
        parts = {
            tuple(content[at : at + 1] == b"x" for at in (start, SECTOR_BYTES, 2 * SECTOR_BYTES)) for content in found
        }
        assert parts == {(a, b, c) for a in (False, True) for b in (False, True) for c in (False, True)}
        assert {len(content) for content in found} == {0, SECTOR_BYTES, 2 * SECTOR_BYTES, 2 * SECTOR_BYTES + 10}
        for content in found:
            pieces = content[start:SECTOR_BYTES], content[SECTOR_BYTES : 2 * SECTOR_BYTES], content[2 * SECTOR_BYTES :]
            assert all(len(set(piece)) <= 1 for piece in pieces), "a sector survived in part"

    def test_an_allocation_never_shortens_where_a_truncation_was_lost(self) -> None:
        made = blob(b"abcdef", Truncate(1), Allocate(3))
        assert outcomes(made, "reordered") == {b"abcdef", b"a", b"a\0\0"}

    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_synced_bytes_survive_every_mode(self, mode: CrashMode) -> None:
        made = blob(b"", Write(0, b"synced"), Truncate(4), Allocate(5))
        made.sync()
        assert outcomes(made, mode) == {b"sync\0"}
        made.change(Write(5, b"waiting"))
        assert all(content.startswith(b"sync\0") for content in outcomes(made, mode))

    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_what_survived_is_durable(self, mode: CrashMode) -> None:
        survivor = blob(b"old", Write(3, b"x" * 2000)).survivor(mode, random.Random(1))
        assert outcomes(survivor, "lost") == {bytes(survivor.content)}


def folder(durable: dict[str, Blob]) -> Folder:
    made = Folder()
    for name, content in durable.items():
        made.change(Create(name, content))
    made.sync()
    return made


def names(made: Folder, mode: CrashMode) -> set[tuple[tuple[str, bytes], ...]]:
    survivors = (made.survivor(mode, random.Random(seed)) for seed in SEEDS)
    return {tuple((name, bytes(blob.content)) for name, blob in survivor.names.items()) for survivor in survivors}


class TestNames:
    def test_a_created_file_may_vanish_with_its_synced_content(self) -> None:
        made = folder({})
        made.change(Create("a", Blob(b"synced")))
        assert names(made, "lost") == {()}
        assert names(made, "kept") == {(("a", b"synced"),)}
        assert names(made, "torn") == names(made, "reordered") == {(), (("a", b"synced"),)}

    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_a_name_is_never_both_nor_neither_when_one_file_replaces_another(self, mode: CrashMode) -> None:
        new = Blob(b"new")
        made = folder({"a": Blob(b"old"), "a.tmp": new})
        made.change(Rename("a.tmp", "a", new))
        before, after = (("a", b"old"), ("a.tmp", b"new")), (("a", b"new"),)
        expected = {"lost": {before}, "kept": {after}, "zeroed": {after}}
        assert names(made, mode) == expected.get(mode, {before, after})

    def test_a_replacement_made_and_renamed_without_a_sync_shows_the_old_or_the_new(self) -> None:
        new = Blob(b"new")
        made = folder({"a": Blob(b"old")})
        made.change(Create("a.tmp", new))
        made.change(Rename("a.tmp", "a", new))
        found = names(made, "reordered")
        assert found == {(("a", b"old"),), (("a", b"old"), ("a.tmp", b"new")), (("a", b"new"),)}
        assert names(made, "torn") == found

    def test_torn_keeps_names_in_the_order_they_were_given_and_reordered_does_not(self) -> None:
        made = folder({})
        made.change(Create("a", Blob()))
        made.change(Create("b", Blob()))
        only_b = (("b", b""),)
        assert only_b in names(made, "reordered")
        assert only_b not in names(made, "torn")

    def test_an_unlinked_file_may_come_back(self) -> None:
        old = Blob(b"old")
        made = folder({"a": old})
        made.change(Unlink("a", old))
        assert (("a", b"old"),) in names(made, "lost")
        assert names(made, "kept") == {()}

    def test_an_unlink_takes_only_the_file_it_was_meant_for(self) -> None:
        old, new = Blob(b"old"), Blob(b"new")
        made = folder({"a": old, "b": new})
        made.change(Rename("b", "a", new))
        made.change(Unlink("a", new))
        assert names(made, "reordered") == {(("a", b"old"), ("b", b"new")), (("a", b"new"),), ()}

    def test_a_rename_moves_only_the_file_it_was_meant_for(self) -> None:
        first, second = Blob(b"first"), Blob(b"second")
        made = folder({"a": first})
        made.change(Unlink("a", first))
        made.change(Create("a", second))
        made.change(Rename("a", "b", second))
        assert names(made, "reordered") == {(("a", b"first"),), (), (("a", b"second"),), (("b", b"second"),)}

    @pytest.mark.parametrize("mode", CRASH_MODES)
    def test_synced_names_survive_every_mode(self, mode: CrashMode) -> None:
        kept, gone = Blob(b"kept"), Blob(b"gone")
        made = folder({})
        made.change(Create("a", kept))
        made.change(Create("b", gone))
        made.change(Unlink("b", gone))
        made.sync()
        assert names(made, mode) == {(("a", b"kept"),)}

    def test_a_name_may_survive_with_nothing_or_zeros_behind_it(self) -> None:
        made = folder({})
        made.change(Create("a", blob(b"", Write(0, b"never synced"))))
        assert (("a", bytes(12)),) in names(made, "zeroed")
        assert (("a", b""),) in names(made, "torn")
        made.sync()
        assert names(made, "lost") == {(("a", b""),)}
