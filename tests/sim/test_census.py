"""The census: every byte of a data directory is damaged, one at a time, and nobody is ever told something wrong.

What may happen to a flipped bit:

    damaged    refused with `Damaged`, naming a file and an offset: at the open, or at the read that touches it
    rebuilt    an index was made again from its data, reported, and everything reads as before
    torn       reported as a torn tail: the bytes were not known to be durable
    harmless   everything reads as before: padding, spares, files that are not needed any more

A torn tail is the one outcome that takes something away, so it is allowed only behind the last byte that the file
itself proves to be durable.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache

import pytest

from tests.engine.damage import DIRECTORY, Seen, build, disk_of, opened, overwrite, see
from topics.errors import Damaged
from topics.model import parse_records
from topics.storage.walfile import parse_name, read_header
from topics.storage.walscan import valid_frames
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk

LOCK = f"{DIRECTORY}/lock"


class Sample:
    """A healthy directory and what it tells."""

    def __init__(self, closed: bool) -> None:
        self.contents = build(closed=closed).contents()
        self.seen: Seen = see(opened(disk_of(self.contents)))
        self.paths = [path for path in self.contents if path != LOCK and kind(path) != "spare"]


@cache
def sample(closed: bool) -> Sample:
    return Sample(closed)


def kind(path: str) -> str:
    return path.rpartition(".")[2]


def known_durable(path: str, content: bytes) -> int:
    """How many bytes of a WAL file its own frames prove to have been synced."""
    parsed = parse_name(path.rpartition("/")[2])
    assert parsed is not None
    view = memoryview(content)
    header, first = read_header(view, path, *parsed)
    return max((frame.mark for frame in valid_frames(view, first, header.salt)), default=first)


def reported(driver: Driver) -> str | None:
    rebuilt = [segment.index_rebuilt for segment in driver.engine.store.open_segments() if segment.index_rebuilt]
    if rebuilt:
        return "rebuilt"
    return "torn" if any("TornTail" in note for note in driver.engine.report.notes) else None


def outcome(disk: FakeDisk, expected: Seen) -> str:
    """What happens to whoever opens this directory and reads all of it; an assertion when it is something wrong."""
    try:
        driver = opened(disk)
        seen = see(driver)
    except Damaged as damage:
        assert damage.detail.get("file"), damage
        assert str(damage.detail["file"]).split("/")[-1] in damage.message
        assert "offset" in damage.detail, damage
        return "damaged"
    said = reported(driver)
    if said == "torn":
        return said
    assert seen == expected
    return said or "harmless"


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_every_flipped_bit_is_found_or_harmless(closed: bool) -> None:
    census(sample(closed), sample(not closed).contents if closed else {}, masks=1)


@pytest.mark.soak
@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_all_eight_bits_of_every_byte(closed: bool) -> None:
    census(sample(closed), {}, masks=8)


def census(tested: Sample, known: dict[str, bytes], masks: int) -> None:
    """Flip `masks` bits of each byte; files that are in `known` with the same content were flipped elsewhere."""
    table: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    healthy = disk_of(tested.contents)
    for path in tested.paths:
        content = tested.contents[path]
        if known.get(path) == content:
            continue
        durable = known_durable(path, content) if kind(path) == "wal" else len(content)
        counts = table.setdefault(kind(path), Counter())
        for offset in range(len(content)):
            for bit in range(masks):
                damaged = bytearray(content)
                damaged[offset] ^= 1 << ((offset + bit) % 8)
                overwrite(healthy, path, bytes(damaged))
                try:
                    found = outcome(healthy, tested.seen)
                    assert found != "torn" or offset >= durable
                    counts[found] += 1
                except Exception as error:
                    counts["WRONG"] += 1
                    found = "wrong"
                    what = f"{type(error).__name__} {error}"[:300]
                    wrong.append(f"{path} offset {offset} bit {(offset + bit) % 8}: {what}")
                if found == "damaged" and healthy.contents().keys() == tested.contents.keys():
                    # Nothing was changed by an open that refused, so the disk serves for the next flip.
                    overwrite(healthy, path, content)
                else:
                    healthy = disk_of(tested.contents)
    print_table(table)
    assert not wrong, "\n".join(wrong[:20]) + f"\n{len(wrong)} in all"
    check_classes(table)


def check_classes(table: dict[str, Counter[str]]) -> None:
    """Each kind of file has the outcomes it should have, and no other."""
    allowed = {
        "wal": {"damaged", "torn", "harmless"},
        "data": {"damaged", "harmless"},
        "idx": {"rebuilt", "harmless"},
        "base": {"damaged", "harmless"},
        "delta": {"damaged", "harmless"},
    }
    for name, counts in table.items():
        assert set(counts) <= allowed[name], (name, counts)
        assert counts["damaged"] + counts["rebuilt"] > counts["harmless"] - counts["torn"], name


def print_table(table: dict[str, Counter[str]]) -> None:
    outcomes = ["damaged", "rebuilt", "torn", "harmless", "WRONG"]
    lines = ["file   " + "".join(f"{name:>10}" for name in outcomes)]
    lines += [f"{name:7}" + "".join(f"{counts[each]:10}" for each in outcomes) for name, counts in table.items()]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


# ---- whole files


def without(contents: dict[str, bytes], path: str) -> dict[str, bytes]:
    return {other: content for other, content in contents.items() if other != path}


def newest_wal_files(contents: dict[str, bytes]) -> set[str]:
    """The last file of each shard."""
    newest: dict[int, str] = {}
    for path in sorted(contents):
        parsed = parse_name(path.rpartition("/")[2])
        if parsed is not None:
            newest[parsed[0]] = path
    return set(newest.values())


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_what_a_spare_holds_does_not_matter(closed: bool) -> None:
    tested = sample(closed)
    spares = [path for path in tested.contents if kind(path) == "spare"]
    other = next(content for path, content in tested.contents.items() if kind(path) == "wal")
    for content in (b"", b"\xff" * 100, other):
        changed = dict.fromkeys(spares, content)
        assert outcome(disk_of(tested.contents | changed), tested.seen) == "harmless"


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_a_missing_file_is_found_or_harmless(closed: bool) -> None:
    tested = sample(closed)
    for path in tested.paths:
        if not closed and path in newest_wal_files(tested.contents):
            continue  # see the next test
        found = outcome(disk_of(without(tested.contents, path)), tested.seen)
        # A clean stop has put everything into segments and a snapshot, so the WAL may go, but not all of it.
        assert found in {"damaged", "rebuilt"} or (closed and kind(path) == "wal"), path


def test_without_its_newest_file_a_shard_looks_as_if_it_had_stopped_before_it() -> None:
    """The limit of what can be known: a file is sealed before its successor has a name, and a crash may fall between.

    What is left is older, and is not wrong.
    """
    tested = sample(closed=False)
    for path in newest_wal_files(tested.contents):
        seen = see(opened(disk_of(without(tested.contents, path))))
        for name, pages in seen.items():
            if name.endswith(" pages") and isinstance(pages, list):
                expected = tested.seen[name]
                assert isinstance(expected, list)
                # A batch that was decided is published again, at a later time: its data counts.
                left, all_there = (parse_records(page[0][0]) for page in (pages, expected))
                assert [(r.seq, r.data) for r in left] == [(r.seq, r.data) for r in all_there[: len(left)]]


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_without_any_wal_a_directory_is_refused(closed: bool) -> None:
    contents = sample(closed).contents
    left = {path: content for path, content in contents.items() if not path.startswith(f"{DIRECTORY}/wal")}
    with pytest.raises(Damaged, match="the WAL is missing"):
        opened(disk_of(left))


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_a_shortened_file_is_found_or_harmless(closed: bool) -> None:
    tested = sample(closed)
    for path in tested.paths:
        content = tested.contents[path]
        for length in {0, 1, 40, len(content) // 3, len(content) // 2, len(content) - 8, len(content) - 1}:
            found = outcome(disk_of(tested.contents | {path: content[:length]}), tested.seen)
            if found == "torn":
                # What proved more to be durable may have been cut off with it.
                assert length >= known_durable(path, content[:length]), (path, length)
            assert found != "harmless" or kind(path) != "data", (path, length)


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_files_that_changed_places_are_found(closed: bool) -> None:
    tested = sample(closed)
    for path in tested.paths:
        for other in tested.paths:
            if other > path:
                swapped = {path: tested.contents[other], other: tested.contents[path]}
                found = outcome(disk_of(tested.contents | swapped), tested.seen)
                assert found in {"damaged", "rebuilt"}, (path, other)


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_a_copy_under_another_number_is_found_or_removed(closed: bool) -> None:
    tested = sample(closed)
    for path in tested.paths:
        stem, _, suffix = path.rpartition(".")
        copy = f"{stem[:-1]}9.{suffix}"
        found = outcome(disk_of(tested.contents | {copy: tested.contents[path]}), tested.seen)
        assert found in ({"harmless"} if kind(path) in ("data", "idx") else {"damaged"}), copy
