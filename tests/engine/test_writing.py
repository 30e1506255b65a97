"""How segments are written: packs and their merging, splits, the cold tier."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from tests.engine.rig import COLD, Rig, fill, tagged, trickle, with_segments
from topics.errors import Damaged
from topics.limits import PACKS_MAX
from topics.storage.segmentrun import SegmentRun

# ---- packs


def test_merging_bounds_the_files_of_topics_that_trickle() -> None:
    rig = Rig()
    most = 0
    for number in range(200):
        rig.write(f"t{number % 5}", *tagged(number, number + 1))
        if number % 3 == 0:
            rig.delete(f"t{number % 5}", match="tag:1")
        rig.checkpoint()
        most = max(most, sum(name.endswith(".data") for name in rig.files("segments")))
    assert most <= PACKS_MAX + 2
    for topic in range(5):
        expected = [n + i for n in range(topic, 200, 5) for i in (0, 1)]
        found = [record.data["n"] for record in rig.read(f"t{topic}")]
        assert set(found) <= set(expected) and all(n % 3 != 1 or n > 190 for n in found)
        assert rig.log(f"t{topic}").count == len(found)
    texts = [rig.text(f"t{topic}") for topic in range(5)]
    rig.crash()
    assert [rig.text(f"t{topic}") for topic in range(5)] == texts


def test_reads_go_on_while_packs_are_merged() -> None:
    """The old files go only when nothing reads from them."""
    rig = trickle(PACKS_MAX + 1)
    rig.engine.store.maps.budget_bytes = 0
    expected = rig.text("t0")
    job = rig.capture()
    assert len(job.rewritten) == PACKS_MAX + 1
    rig.engine.write_job(job)
    assert rig.text("t0") == expected
    rig.engine.end_checkpoint(job, None)
    assert rig.text("t0") == expected
    rig.engine.clean_job(job)
    assert rig.text("t0") == expected
    rig.engine.cleaned(job)
    assert rig.text("t0") == expected
    assert sum(name.endswith(".data") for name in rig.files("segments")) == 1


def test_a_merge_that_fails_leaves_the_packs() -> None:
    rig = trickle(PACKS_MAX + 1)
    expected = rig.text("t0")
    rig.fs.fail("write_at", path="*/segments/*")
    with pytest.raises(OSError, match="Input/output"):
        rig.engine.checkpoint()
    assert rig.text("t0") == expected
    rig.checkpoint()
    assert rig.text("t0") == expected
    assert sum(name.endswith(".data") for name in rig.files("segments")) == 1


def test_merged_packs_are_no_larger_than_a_segment() -> None:
    rig = Rig(with_segments(bytes_max=20_000))
    for number in range(PACKS_MAX + 1):
        rig.write("odd", *[{"data": f"{number}:{'x' * 100}"}] * 20)
        rig.checkpoint()
    expected = rig.text("odd")
    rig.write("odd", 1)
    rig.checkpoint()
    sizes = [len(content) for name, content in rig.files("segments").items() if name.endswith(".data")]
    assert len(sizes) >= 2 and max(sizes) < 30_000
    assert rig.text("odd").startswith(expected)


def test_large_logs_are_split_at_bytes_and_records() -> None:
    rig = Rig(with_segments(bytes_max=1 << 20, records_max=3000))
    for _ in range(8):
        rig.write("odd", *(["x" * 1000] * 600))
    rig.write("even", *range(2000))
    rig.write("even", *range(2000))
    rig.checkpoint()
    runs = rig.log("odd").runs
    assert len({run.segment_no for run in runs if isinstance(run, SegmentRun)}) >= 4
    sizes = [len(content) for name, content in rig.files("segments").items() if name.endswith(".data")]
    assert max(sizes) < 1.2 * (1 << 20)
    assert [run.last_seq - run.first_seq + 1 for run in rig.log("even").runs] == [2000, 2000]
    rig.kill()
    assert len(rig.read("odd")) == 4800 and rig.data("even") == [*range(2000), *range(2000)]


# ---- the cold tier


def cold(rig: Rig) -> list[str]:
    return [name for name in rig.files("/cold/") if name.endswith(".data")]


def hot(rig: Rig) -> list[str]:
    return [name for name in rig.files("/segments/") if name.endswith(".data")]


def chill(rig: Rig) -> None:
    """Time passes, and something else makes a checkpoint due."""
    rig.clock.advance(1001)
    rig.write("other", "warm")
    rig.checkpoint()


def test_segments_grow_cold_and_read_the_same() -> None:
    rig = Rig(COLD)
    fill(rig)
    rig.checkpoint()
    expected = rig.text("odd")
    chill(rig)
    assert len(cold(rig)) == 1 and rig.text("odd") == expected
    rig.delete("odd", match="tag:1")
    expected = rig.text("odd")
    rig.checkpoint()
    for end in (rig.stop, rig.kill, rig.crash):
        end()
        assert rig.text("odd") == expected and len(cold(rig)) == 1


@pytest.mark.parametrize("how", ["cap", "ttl", "delete", "drop"])
def test_cold_segments_are_dropped(how: str) -> None:
    rig = Rig(COLD)
    rig.configure("odd", ttl_ms=10_000 if how == "ttl" else 0)
    rig.configure("other")
    fill(rig)
    rig.checkpoint()
    chill(rig)
    (name,) = cold(rig)
    match how:
        case "cap":
            rig.configure("odd", merge=True, cap_records=2)
            rig.write("odd", 1, 2)
        case "ttl":
            rig.clock.advance(20_000)
            assert rig.read("odd") == []
        case "delete":
            rig.delete("odd", before_seq=100)
        case "drop":
            rig.drop("odd")
    rig.checkpoint()
    assert name not in cold(rig) and name.replace("data", "idx") not in rig.files()


def test_a_segment_that_cannot_be_moved_is_reported_and_stays_readable() -> None:
    rig = Rig(COLD)
    fill(rig)
    rig.checkpoint()
    expected = rig.text("odd")
    rig.fs.fail("write_at", errno.ENOSPC, path="/cold/*")
    chill(rig)
    assert "could not be moved to the cold directory" in rig.engine.problems[0]
    assert cold(rig) == [] and rig.text("odd") == expected
    chill(rig)
    assert rig.engine.problems == [] and len(cold(rig)) >= 1
    assert rig.text("odd") == expected


# ---- memory


def test_the_map_cache_keeps_its_budget_and_reads_are_right() -> None:
    rig = Rig(replace(with_segments(bytes_max=1 << 16), hot_bytes=600_000))
    for number in range(40):
        rig.write("odd", *[f"{number}:{'x' * 300}"] * 100)
    rig.checkpoint()
    rig.kill()
    maps = rig.engine.store.maps
    assert sum(len(content) for content in rig.files("segments").values()) > 2 * maps.budget_bytes
    for number in range(40):
        page = rig.engine.read("odd", 100 * number, limit=100)
        assert [record.data[: len(f"{number}:")] for record in page.records] == [f"{number}:"] * 100
        assert maps.used_bytes <= maps.budget_bytes
    maps.budget_bytes = 1
    assert len(rig.read("odd")) == 4000


def test_a_pack_that_is_damaged_ends_the_merging_and_nothing_else() -> None:
    rig = trickle(PACKS_MAX + 1)
    count = sum(name.endswith(".data") for name in rig.files("segments"))
    assert count == PACKS_MAX + 1
    path = min(name for name in rig.files("segments") if name.endswith(".data"))
    content = rig.disk.contents()[path]
    file = rig.disk.open(path, "write")
    file.write_at(content.index(b'"data":'), [b"?"])
    file.close()
    rig.kill()
    with pytest.raises(Damaged):
        rig.checkpoint()
    for number in range(3):
        rig.write("t0", *tagged(100 + number))
        rig.checkpoint()
        assert rig.engine.checkpoint_error is None
    left = sum(name.endswith(".data") for name in rig.files("segments"))
    assert left == count + 3, "what cannot be copied stays, and so do the others"
    assert [record.seq for record in rig.read("t0", 2)] == list(range(3, 2 * (PACKS_MAX + 1) + 4))


def test_flags_of_a_segment_that_goes_in_the_same_checkpoint_are_not_written() -> None:
    rig = Rig()
    fill(rig)
    rig.checkpoint()
    (path,) = [name for name in rig.files("segments") if name.endswith(".data")]
    rig.delete("odd", match="tag:1")
    rig.write("odd", "new")
    rig.delete("odd", before_seq=21)
    rig.fs.fail("write_at", path=path, always=True)
    rig.checkpoint()
    assert rig.engine.checkpoint_error is None
    assert rig.data("odd") == ["new"] and path not in rig.files("segments")
    rig.kill()
    assert rig.data("odd") == ["new"]


def test_a_segment_that_goes_while_others_are_captured_is_left_alone() -> None:
    """Its flags were to be written when its topic was dropped: it is neither written nor opened any more."""
    rig = Rig()
    fill(rig, "odd")
    rig.checkpoint()
    (path,) = [name for name in rig.files("segments") if name.endswith(".data")]
    fill(rig, "even")
    rig.checkpoint()
    rig.delete("odd", match="tag:1")
    rig.delete("even", match="tag:1")
    expected = rig.text("even")
    capture = rig.engine.begin_checkpoint()
    job = next(capture)
    assert [pending.number for pending in job.marks] == [1], "what was captured first"
    rig.drop("odd")
    rig.fs.fail("write_at", path=path, always=True)
    *_, job = capture
    rig.finish(job)
    assert [segment.number for segment in rig.engine.store.open_segments()] == [2]
    assert path not in rig.files("segments") and rig.engine.problems == []
    rig.erase("even")
    assert rig.text("even") == expected
    rig.kill()
    assert rig.text("even") == expected
