"""A backup is of one moment, whatever the engine does while it is read, and costs it nothing but disk space."""

from __future__ import annotations

import errno
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO

import msgspec
import pytest

from tests.engine.archives import restored
from tests.engine.rig import COLD, DAY_MS, SMALL, Rig, fill, tagged, with_limits
from topics.core.dedupe import IdempotencyKey
from topics.engine.backup import Backup
from topics.errors import BackupInterrupted, Damaged, InvalidRequest, LogStopped, Throttled
from topics.storage import snapshot
from topics.testing import SimulatedCrash

PIECE_BYTES = 100


def opened(rig: Rig) -> Backup:
    """A backup of this moment, of the newest snapshot and what came behind it."""
    backup = Backup.begin(rig.engine)
    backup.pin()
    answers: list[object] = []
    backup.cut(answers.append)
    rig.driver.wal.work()
    assert answers == [None]
    backup.open()
    return backup


def members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        return {info.name: tar.extractfile(info).read() for info in tar}  # type: ignore[union-attr]


def names(archive: bytes, place: str) -> list[str]:
    return [name.rpartition("/")[2] for name in members(archive) if name.startswith(place)]


def upto(pieces: Iterator[bytes], needle: bytes) -> bytes:
    """Read until these bytes have come."""
    read = b""
    while needle not in read:
        read += next(pieces)
    return read


def segment_count(rig: Rig) -> int:
    return len([path for path in rig.files("/segments/") if path.endswith(".data")])


class TestTheMoment:
    def test_all_that_was_answered_before_is_in_it_and_nothing_later(self) -> None:
        rig = Rig()
        rig.configure("a", durability="fsync", ttl_ms=60_000)
        rig.configure("b", partitions=2)
        fill(rig, "a")
        rig.write("b", 1, partition=1)
        rig.checkpoint()
        rig.write("a", "behind the checkpoint")
        rig.delete("a", match="tag:1")
        backup = opened(rig)
        expected = {topic: rig.text(topic) for topic in ("a", "b")}
        rig.write("a", "too late")
        rig.delete("a", before_seq=10)
        rig.configure("c")
        rig.drop("b")
        rig.checkpoint()
        copy = restored(rig, backup.chunks())
        assert {topic: copy.text(topic) for topic in ("a", "b")} == expected
        assert sorted(topic.name for topic in copy.engine.machine.topics) == ["a", "b"]
        assert copy.write("a", "goes on").first_seq == 22, "a clean stop: no seq is skipped"
        assert copy.gaps("a") == []

    def test_what_is_on_its_way_to_the_disk_is_in_it(self) -> None:
        rig = Rig()
        rig.write("a", 1)
        ticket = rig.submit("a", 2)
        assert not ticket.done
        backup = opened(rig)
        rig.submit("a", 3)
        rig.work()
        assert restored(rig, backup.chunks()).data("a") == [1, 2]

    def test_a_batch_is_in_all_of_its_topics_or_in_none(self) -> None:
        """At each step of a publish: decided, appended, finished."""
        outcomes = set()
        for rounds in range(6):
            rig = Rig()
            for topic in ("a", "b", "c"):
                rig.configure(topic, durability="fsync")
                rig.stage(f"stage-{topic}", topic, topic)
            rig.checkpoint()
            ticket = rig.publish("stage-a", "stage-b", "stage-c")
            for _ in range(rounds):
                rig.engine.flush()
                rig.driver.wal.work()
            copy = restored(rig, opened(rig).chunks())
            copy.work()
            found = tuple(tuple(copy.data(topic)) for topic in ("a", "b", "c"))
            assert found in (((), (), ()), (("a",), ("b",), ("c",))), f"after {rounds} rounds"
            assert not ticket.done or found[0], "an answered batch is in it"
            outcomes.add(found)
        # A decision is in the backup from the moment it was made, so nothing here is ever absent.
        assert outcomes == {(("a",), ("b",), ("c",))}

    def test_keys_and_stages_come_along(self) -> None:
        rig = Rig()
        first = rig.write("a", 1, key=IdempotencyKey("k"))
        rig.stage("s", "a", 2)
        copy = restored(rig, opened(rig).chunks())
        again = copy.write("a", 1, key=IdempotencyKey("k"))
        assert again.deduped and again.seqs == first.seqs
        copy.driver.wait(copy.publish("s"))
        assert copy.data("a") == [1, 2]

    def test_of_an_empty_engine(self) -> None:
        rig = Rig()
        copy = restored(rig, opened(rig).chunks())
        assert len(copy.engine.machine.topics) == 0
        assert copy.write("a", 1).first_seq == 1

    def test_of_an_engine_that_lost_its_power_before(self) -> None:
        """The gap that the source has is in the copy; it does not get another one."""
        rig = Rig()
        rig.write("a", 1)
        rig.crash()
        rig.work()
        seq = rig.write("a", 2).first_seq
        copy = restored(rig, opened(rig).chunks())
        assert copy.gaps("a") == rig.gaps("a") != [] and copy.seqs("a") == rig.seqs("a")
        assert copy.write("a", 3).first_seq == seq + 1

    def test_the_archive_says_what_it_is(self) -> None:
        rig = Rig()
        rig.write("a", 1)
        rig.checkpoint()
        rig.write("a", 2)
        backup = opened(rig)
        archive = b"".join(backup.chunks())
        said = msgspec.json.decode(members(archive)["backup.json"])
        assert said["format"] == 1 and said["program"].startswith("topics ")
        assert said["created_ms"] == rig.clock.now_ms() and said["snapshot_no"] == rig.engine.store.snapshots.number
        assert said["positions"] == {"0": 1, "1": 2}
        assert said["bytes"] == backup.total_bytes
        assert names(archive, "segments") == ["000000000001.idx", "000000000001.data"]
        assert rig.engine.last_backup_ms == rig.clock.now_ms()

    def test_a_backup_that_is_not_read_to_its_end_does_not_count(self) -> None:
        rig = Rig()
        rig.write("a", 1)
        backup = opened(rig)
        next(backup.chunks(chunk_bytes=PIECE_BYTES))
        backup.release()
        assert rig.engine.last_backup_ms == 0

    def test_compressed_it_is_the_same(self) -> None:
        rig = Rig()
        fill(rig)
        rig.checkpoint()
        plain = b"".join(opened_and_released(rig))
        pressed = b"".join(opened_and_released(rig, gzip_level=6))
        assert len(pressed) < len(plain) / 2
        assert restored(rig, pressed).text("odd") == rig.text("odd")

    @pytest.mark.parametrize("level", [-1, 10])
    def test_an_unknown_level_is_refused(self, level: int) -> None:
        rig = Rig()
        backup = opened(rig)
        with pytest.raises(InvalidRequest) as refused:
            backup.chunks(level)
        assert refused.value.detail["field"] == "gzip"


def opened_and_released(rig: Rig, gzip_level: int = 0) -> list[bytes]:
    backup = opened(rig)
    pieces = list(backup.chunks(gzip_level))
    backup.release()
    return pieces


class TestMeanwhile:
    def test_deletes_that_reach_a_segment_before_it_is_read_are_taken_back(self) -> None:
        rig = Rig()
        fill(rig, "a")
        rig.delete("a", match="tag:0")
        rig.checkpoint()
        rig.delete("a", match="tag:2")
        backup = opened(rig)
        expected = rig.text("a")
        rig.delete("a", match="tag:1")
        rig.checkpoint()
        assert restored(rig, backup.chunks()).text("a") == expected
        assert rig.data("a") == []

    def test_also_between_two_pieces_of_one_segment(self) -> None:
        rig = Rig()
        fill(rig, "a", 200)
        rig.checkpoint()
        expected = rig.text("a")
        backup = opened(rig)
        pieces = backup.chunks(chunk_bytes=PIECE_BYTES)
        read = upto(pieces, b'"n":50')
        for tag in ("tag:0", "tag:1", "tag:2"):
            rig.delete("a", match=tag)
            rig.checkpoint()
            read += next(pieces)
        assert restored(rig, [read, *pieces]).text("a") == expected

    def test_flags_of_a_process_that_died_are_not_taken_back(self) -> None:
        """They are written once more, and some of them are what the snapshot counts on."""
        rig = Rig()
        fill(rig, "a")
        rig.checkpoint()
        rig.delete("a", match="tag:0")
        rig.checkpoint()
        rig.delete("a", match="tag:1")
        job = rig.capture()
        rig.fs.crash("rename", path="*.delta*")
        with pytest.raises(SimulatedCrash):
            rig.engine.write_job(job)
        rig.kill()
        expected = rig.text("a")
        backup = opened(rig)
        rig.checkpoint()
        assert restored(rig, backup.chunks()).text("a") == expected

    def test_segments_that_retention_drops_are_read_all_the_same(self) -> None:
        rig = Rig()
        rig.configure("a", ttl_ms=1000)
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        expected, then_ms = rig.text("a"), rig.clock.now_ms()
        rig.clock.advance(5000)
        assert rig.data("a") == []
        rig.checkpoint()
        rig.write("a", 1)
        rig.checkpoint()
        assert segment_count(rig) == 2, "one that is dropped, one that is new"
        assert rig.engine.store.pins is not None and rig.engine.store.pins.held_bytes > 0
        archive = b"".join(backup.chunks())
        assert segment_count(rig) == 1, "it goes as soon as it is read"
        assert rig.engine.store.pins.held_bytes == 0
        rig.clock.set_now_ms(then_ms)
        assert restored(rig, archive).text("a") == expected

    def test_a_merge_goes_on_and_its_sources_stay(self) -> None:
        rig = Rig()
        for number in range(16):
            rig.write("a", *tagged(number))
            rig.checkpoint()
        expected = rig.text("a")
        backup = opened(rig)
        rig.write("a", "more")
        rig.checkpoint()
        rig.write("a", "and more")
        rig.checkpoint()
        assert segment_count(rig) > 17
        assert restored(rig, backup.chunks()).text("a") == expected
        assert segment_count(rig) <= 2

    def test_a_segment_may_move_to_the_cold_directory(self) -> None:
        rig = Rig(COLD)
        fill(rig, "a")
        rig.checkpoint()
        expected = rig.text("a")
        backup = opened(rig)
        pieces = backup.chunks(chunk_bytes=PIECE_BYTES)
        read = upto(pieces, b'"n":2')
        rig.clock.advance(DAY_MS)
        rig.write("a", 1)
        rig.checkpoint()
        assert rig.files("/cold/")
        assert restored(rig, [read, *pieces]).text("a") == expected

    def test_cold_segments_are_in_it(self) -> None:
        rig = Rig(COLD)
        fill(rig, "a")
        rig.checkpoint()
        rig.clock.advance(DAY_MS)
        rig.write("a", 1)
        rig.checkpoint()
        assert rig.files("/cold/")
        copy = restored(replaced(rig), opened(rig).chunks())
        assert copy.text("a") == rig.text("a") and not copy.files("/cold/")

    def test_the_wal_is_trimmed_and_read_all_the_same(self) -> None:
        rig = Rig()
        rig.write("a", "x" * 40_000)
        rig.write("a", "y" * 40_000)
        backup = opened(rig)
        expected = rig.text("a")
        wal_before = set(rig.files("/wal/"))
        rig.checkpoint()
        rig.write("a", 1)
        rig.checkpoint()
        assert not wal_before <= set(rig.files("/wal/")), "some are gone"
        assert restored(rig, backup.chunks()).text("a") == expected

    def test_snapshots_are_merged_and_read_all_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(snapshot, "BASE_BYTES_MIN", 1)
        rig = Rig()
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        expected, held = rig.text("a"), set(rig.files("/snapshots/"))
        for number in range(5):
            rig.write(f"t{number}", number)
            rig.checkpoint()
        assert restored(rig, backup.chunks()).text("a") == expected
        assert held & set(rig.files("/snapshots/"))
        backup.release()
        assert not held & set(rig.files("/snapshots/"))

    def test_one_backup_at_a_time(self) -> None:
        rig = Rig()
        backup = opened(rig)
        with pytest.raises(Throttled) as refused:
            Backup.begin(rig.engine)
        assert refused.value.detail["limit"] == "backups"
        backup.release()
        opened(rig).release()


def replaced(rig: Rig) -> Rig:
    """The same rig, for another that has no cold directory."""
    rig.options = replace(rig.options, cold_dir=None)
    return rig


class TestInterruptions:
    def test_an_erasure_does_not_wait(self) -> None:
        rig = Rig()
        rig.write("a", {"data": "secret-one", "tag": "x"}, {"data": "other", "tag": "y"})
        rig.checkpoint()
        backup = opened(rig)
        pieces = backup.chunks(chunk_bytes=PIECE_BYTES)
        next(pieces)
        rig.delete("a", match="x")
        rig.erase("a")
        assert rig.holding(b"secret-one") == []
        with pytest.raises(BackupInterrupted) as interrupted:
            list(pieces)
        assert "erased" in interrupted.value.detail["reason"]
        backup.release()
        assert restored(rig, opened(rig).chunks()).data("a") == ["other"]

    def test_an_erasure_takes_what_stays_for_the_backup_alone(self) -> None:
        rig = Rig()
        rig.configure("a", ttl_ms=1000)
        rig.write("a", "secret-two")
        rig.checkpoint()
        opened(rig)
        rig.clock.advance(2000)
        rig.write("a", "other")
        rig.checkpoint()
        assert rig.holding(b"secret-two"), "a backup holds it"
        rig.erase("a")
        assert rig.holding(b"secret-two") == []

    def test_one_that_holds_too_much_is_ended(self) -> None:
        rig = Rig(with_limits(SMALL, backup_held_bytes_max=100))
        rig.configure("a", ttl_ms=1000)
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        rig.clock.advance(2000)
        rig.write("a", 1)
        rig.checkpoint()
        with pytest.raises(BackupInterrupted, match="TOPICS_BACKUP_HELD_BYTES"):
            list(backup.chunks())
        rig.write("a", 2)
        rig.checkpoint()
        assert rig.engine.store.pins is not None and rig.engine.store.pins.held_bytes == 0
        assert segment_count(rig) == 2, "what it held is gone at the next checkpoint"
        backup.release()

    def test_a_release_removes_what_was_held_and_may_be_repeated(self) -> None:
        rig = Rig()
        rig.configure("a", ttl_ms=1000)
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        pieces = backup.chunks(chunk_bytes=PIECE_BYTES)
        next(pieces)
        rig.clock.advance(2000)
        rig.write("a", 1)
        rig.checkpoint()
        assert segment_count(rig) == 2
        assert backup.release() == set() and backup.release() == set()
        assert segment_count(rig) == 1 and rig.engine.store.pins is None
        with pytest.raises(BackupInterrupted):
            list(pieces)

    def test_what_cannot_be_removed_is_told_and_tried_again(self) -> None:
        rig = Rig()
        rig.configure("a", ttl_ms=1000)
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        rig.clock.advance(2000)
        rig.write("a", 1)
        rig.checkpoint()
        rig.fs.fail("unlink", errno.EIO, path="*.data")
        left = backup.release()
        assert left == {1} and "segment 1 could not be removed" in backup.problems[0]
        rig.engine.store.keep_unneeded(left)
        rig.write("a", 2)
        rig.checkpoint()
        assert not any("000000000001" in path for path in rig.files("/segments/"))


class TestFaults:
    def test_a_damaged_segment_is_not_backed_up(self) -> None:
        rig = Rig()
        fill(rig, "a")
        rig.checkpoint()
        (path,) = [path for path in rig.files("/segments/") if path.endswith(".data")]
        at = rig.files()[path].index(b'"n":3')
        file = rig.disk.open(path, "write")
        file.write_at(at, [b'"m"'])
        with pytest.raises(Damaged, match="fsck") as damage:
            list(opened(rig).chunks())
        assert damage.value.detail["file"] == path

    def test_a_missing_index_is_made_anew(self) -> None:
        rig = Rig()
        fill(rig, "a")
        rig.checkpoint()
        (path,) = [path for path in rig.files("/segments/") if path.endswith(".idx")]
        rig.disk.unlink(path)
        archive = b"".join(opened(rig).chunks())
        assert names(archive, "segments") == ["000000000001.data"]
        assert restored(rig, archive).text("a") == rig.text("a")

    def test_a_missing_segment_is_told(self) -> None:
        rig = Rig()
        fill(rig, "a")
        rig.checkpoint()
        backup = opened(rig)
        for path in rig.files("/segments/"):
            rig.disk.unlink(path)
        with pytest.raises(Damaged, match="missing"):
            list(backup.chunks())

    def test_a_read_error_ends_it_and_only_it(self) -> None:
        rig = Rig()
        fill(rig, "a")
        backup = opened(rig)
        rig.fs.fail("read_at", errno.EIO, path="*.wal")
        with pytest.raises(OSError):
            list(backup.chunks())
        backup.release()
        rig.fs.clear()
        assert rig.write("a", 1).first_seq == 21
        assert restored(rig, opened(rig).chunks()).text("a") == rig.text("a")

    def test_an_engine_whose_disk_failed_cannot_be_backed_up_online(self) -> None:
        rig = Rig()
        rig.write("a", 1)
        rig.fs.fail("write_at", errno.EIO, path="*/wal/1-*")
        with pytest.raises(LogStopped):
            rig.write("a", 2)
        backup = Backup.begin(rig.engine)
        backup.pin()
        answers: list[object] = []
        backup.cut(answers.append)
        rig.driver.wal.work()
        assert isinstance(answers[0], LogStopped | OSError)
        backup.release()
        assert rig.engine.store.pins is None

    def test_a_death_in_the_middle_leaves_the_source_as_it_was(self) -> None:
        rig = Rig()
        rig.configure("a", durability="fsync", ttl_ms=1000)
        fill(rig, "a")
        rig.checkpoint()
        pieces = opened(rig).chunks(chunk_bytes=PIECE_BYTES)
        next(pieces)
        rig.clock.advance(2000)
        rig.write("a", 1)
        rig.checkpoint()
        assert segment_count(rig) == 2
        rig.crash()
        assert rig.data("a") == [1] and rig.engine.store.pins is None
        assert segment_count(rig) == 1, "what the backup held is swept at the start"
