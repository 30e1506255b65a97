"""What every commit log promises, whatever it is made of."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from tests.storage.walrig import Heard, Rig, entry, flat
from topics.clock import SystemClock
from topics.errors import Deposed, LogStopped, Throttled
from topics.storage.commitlog import CommitLog, Covered, Cut
from topics.storage.fs import FileSystem, RealFs
from topics.storage.wal import WalSettings
from topics.storage.walrecovery import LastStop
from topics.testing import FakeDisk, FaultFs

SETTINGS = WalSettings(shards=2, file_bytes=4096, queue_bytes_max=100_000)


class Subject(Protocol):
    """One implementation under test, which can be stopped and opened again."""

    heard: Heard
    faults: FaultFs

    def open(self, settings: WalSettings = SETTINGS) -> CommitLog: ...

    def replayed(self) -> list[tuple[int, int, bytes]]:
        """What the last `open` found stored."""

    def wait(self, event: str, shard: int, group: int) -> None:
        """Let the log work until the listener was told."""

    def wait_for(self, answers: list[Cut | Exception], count: int) -> None:
        """Let the log work until so many cuts are answered."""

    def end(self) -> None: ...


class InlineWal:
    def __init__(self, fs: FileSystem, directory: str) -> None:
        self.faults = FaultFs(fs)
        self.rig = Rig(self.faults, directory)

    @property
    def heard(self) -> Heard:
        return self.rig.heard

    def open(self, settings: WalSettings = SETTINGS) -> CommitLog:
        self.rig.settings = settings
        return self.rig.start()

    def replayed(self) -> list[tuple[int, int, bytes]]:
        return self.rig.replayed

    def wait(self, event: str, shard: int, group: int) -> None:
        while not self.heard.knows(event, shard, group):
            assert self.rig.wal.work(), f"nothing left to do, and {event} of group {group} was not said"

    def wait_for(self, answers: list[Cut | Exception], count: int) -> None:
        while len(answers) < count:
            assert self.rig.wal.work(), "nothing left to do, and a cut was not answered"

    def end(self) -> None:
        pass


class ThreadedWal(InlineWal):
    """The reports of the threads are run here, as an event loop would."""

    def __init__(self, fs: FileSystem, directory: str) -> None:
        super().__init__(fs, directory)
        self.posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.rig.clock = SystemClock()
        self.rig.post = self.posted.put

    def wait(self, event: str, shard: int, group: int) -> None:
        while not self.heard.knows(event, shard, group):
            self.posted.get(timeout=30)()

    def wait_for(self, answers: list[Cut | Exception], count: int) -> None:
        while len(answers) < count:
            self.posted.get(timeout=30)()

    def end(self) -> None:
        with suppress(LogStopped):  # Some tests have stopped it on purpose.
            self.rig.wal.close()


@pytest.fixture(params=["threads on the real disk", "inline on the real disk", "inline on a fake disk"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    made: InlineWal
    match request.param:
        case "threads on the real disk":
            made = ThreadedWal(RealFs(), str(tmp_path / "wal"))
        case "inline on the real disk":
            made = InlineWal(RealFs(), str(tmp_path / "wal"))
        case _:
            made = InlineWal(FakeDisk(), "/data/wal")
    yield made
    made.end()


def test_groups_are_numbered_per_shard_and_positions_per_log(subject: Subject) -> None:
    log = subject.open()
    assert [log.shard_of(log_id) for log_id in (0, 1, 2)] == [0, 1, 0]
    assert log.append(0, [entry(0, 1), entry(2, 1), entry(0, 2)], sync=True) == 1
    assert log.append(1, [entry(1, 1)], sync=True) == 1
    assert log.append(0, [entry(2, 2)], sync=True) == 2
    assert [log.tail(log_id) for log_id in (0, 1, 2, 3)] == [2, 1, 2, 0]


def test_every_group_is_written_before_it_is_synced(subject: Subject) -> None:
    log = subject.open()
    for position in range(1, 6):
        log.append(0, [entry(0, position)], sync=True)
        subject.wait("synced", 0, position)
    groups = {"written": 0, "synced": 0}
    for event, _, group in subject.heard.events:
        assert group > groups[event]
        groups[event] = group
        assert groups["synced"] <= groups["written"]
    assert groups == {"written": 5, "synced": 5}


def test_a_stored_log_is_read_in_order_from_any_position(subject: Subject) -> None:
    log = subject.open()
    for position in range(1, 101):
        log.append(0, [entry(0, position), entry(2, position)], sync=True)
    subject.wait("synced", 0, 100)
    assert flat(list(log.read(2, 1))) == flat([entry(2, position) for position in range(1, 101)])
    assert flat(list(log.read(0, 97))) == flat([entry(0, position) for position in range(97, 101)])
    assert list(log.read(0, 101)) == []
    assert list(log.read(4, 1)) == []


@pytest.mark.parametrize("position", [0, 1, 2, 4, 5])
def test_a_writer_that_expects_another_tail_is_deposed_and_leaves_nothing(subject: Subject, position: int) -> None:
    log = subject.open()
    log.append(0, [entry(0, 1), entry(0, 2)], sync=True)
    with pytest.raises(Deposed) as refused:
        log.append(0, [entry(2, 1), entry(0, position)], sync=True)
    assert refused.value.detail == {"log_id": 0, "tail": 2, "expected": position - 1}
    assert (log.tail(0), log.tail(2)) == (2, 0)
    assert log.append(0, [entry(0, 3)], sync=True) == 2
    log.close()
    subject.open()
    assert subject.replayed() == flat([entry(0, 1), entry(0, 2), entry(0, 3)])


def test_a_clean_stop_keeps_everything_also_what_nobody_waited_for(subject: Subject) -> None:
    log = subject.open()
    log.append(0, [entry(0, 1)], sync=False)
    log.append(1, [entry(1, 1, b""), entry(3, 1, b"x" * 20_000)], sync=False)
    log.close()
    log = subject.open()
    assert subject.replayed() == flat([entry(0, 1), entry(1, 1, b""), entry(3, 1, b"x" * 20_000)])
    assert [log.tail(log_id) for log_id in (0, 1, 2, 3)] == [1, 1, 0, 1]
    log.append(1, [entry(1, 2)], sync=True)
    subject.wait("synced", 1, 1)
    assert [e.position for e in log.read(1, 1)] == [1, 2]


def test_what_nobody_waited_for_is_synced_when_somebody_asks(subject: Subject) -> None:
    log = subject.open(replace(SETTINGS, disk_sync_ms=3_600_000))
    log.append(0, [entry(0, 1)], sync=False)
    log.append(0, [entry(0, 2)], sync=False)
    subject.wait("written", 0, 2)
    assert subject.heard.upto("synced") == 0
    log.sync(0)
    subject.wait("synced", 0, 2)
    log.sync(0)
    log.sync(1)


def test_a_closed_log_takes_nothing(subject: Subject) -> None:
    log = subject.open()
    log.close()
    with pytest.raises(LogStopped, match="closed"):
        log.append(0, [entry(0, 1)], sync=True)


def test_too_much_waiting_for_the_disk_is_refused_by_name(subject: Subject) -> None:
    log = subject.open(replace(SETTINGS, queue_bytes_max=10))
    log.append(0, [entry(0, 1, b"x" * 1000)], sync=True)
    subject.wait("synced", 0, 1)
    if isinstance(subject, ThreadedWal):
        return  # How much is waiting is up to the thread; that one large group passes has been seen.
    log.append(0, [entry(0, 2, b"12345")], sync=True)
    with pytest.raises(Throttled) as refused:
        log.append(0, [entry(0, 3, b"123456")], sync=True)
    assert refused.value.detail["limit"] == "queue_bytes_max"
    assert log.append(0, [entry(0, 3, b"12345")], sync=True) == 3
    subject.wait("synced", 0, 3)
    assert log.append(0, [entry(0, 4, b"123456")], sync=True) == 4


def test_trimmed_entries_are_gone_and_the_rest_stays(subject: Subject) -> None:
    log = subject.open()
    for position in range(1, 201):
        log.append(0, [entry(0, position)], sync=True)
        subject.wait("synced", 0, position)
    log.trim(Covered({0: 150}), 1)
    log.append(0, [entry(0, 201)], sync=True)
    subject.wait("synced", 0, 201)
    log.close()
    kept = [e.position for e in log.read(0, 1)]
    assert 1 < kept[0] <= 151 and kept == list(range(kept[0], 202))


def _cut(subject: Subject, answers: list[Cut | Exception]) -> Cut:
    subject.wait_for(answers, 1)
    (answer,) = answers
    assert isinstance(answer, Cut)
    return answer


def _copied(subject: Subject, cut: Cut) -> InlineWal:
    """A commit log on a disk that holds nothing but what the cut names."""
    disk = FakeDisk()
    disk.make_dir("/copy")
    for part in cut.files:
        source, target = subject.faults.open(part.path, "read"), disk.open(f"/copy/{part.name}", "create")
        target.write_at(0, [source.read_at(0, part.length_bytes), part.ending])
        source.close()
    return InlineWal(disk, "/copy")


def test_a_cut_holds_what_was_appended_before_it_and_nothing_else(subject: Subject) -> None:
    log = subject.open()
    for position in range(1, 40):
        group = log.append(0, [entry(0, position), entry(2, position, bytes(300))], sync=position % 7 == 0)
    subject.wait("written", 0, group)  # Some of it is in the files already, and they have rotated.
    log.append(0, [entry(0, 40)], sync=False)
    log.append(1, [entry(1, 1)], sync=False)
    answers: list[Cut | Exception] = []
    log.cut(answers.append)
    log.append(1, [entry(1, 2)], sync=False)
    log.append(0, [entry(2, 40)], sync=False)
    cut = _cut(subject, answers)
    assert cut.positions == {0: 40, 1: 1, 2: 39}
    copy = _copied(subject, cut)
    copy.open()
    assert sorted((log_id, position) for log_id, position, _ in copy.replayed()) == sorted(
        [*((0, n) for n in range(1, 41)), *((2, n) for n in range(1, 40)), (1, 1)]
    )
    assert copy.rig.recovery.last_stop is LastStop.CLEAN and not copy.rig.recovery.torn


def test_a_cut_of_an_idle_log_is_answered_at_once_and_changes_nothing(subject: Subject) -> None:
    log = subject.open()
    group = log.append(0, [entry(0, 1)], sync=True)
    subject.wait("synced", 0, group)
    answers: list[Cut | Exception] = []
    log.cut(answers.append)
    cut = _cut(subject, answers)
    assert {part.name for part in cut.files} == {"0-0000000001.wal", "1-0000000001.wal"}
    copy = _copied(subject, cut)
    copy.open()
    assert copy.replayed() == [(0, 1, b"log 0 position 1")]


def test_a_cut_of_a_failed_shard_is_an_error(subject: Subject) -> None:
    log = subject.open()
    subject.faults.fail("write_at", path="*/0-*")
    log.append(0, [entry(0, 1)], sync=True)
    answers: list[Cut | Exception] = []
    log.cut(answers.append)
    subject.wait_for(answers, 1)
    log.cut(answers.append)
    subject.wait_for(answers, 2)
    assert isinstance(answers[0], OSError | LogStopped) and isinstance(answers[1], LogStopped)


@pytest.mark.parametrize("call", ["write_at", "sync"])
def test_a_failed_shard_stops_alone_and_for_good(subject: Subject, call: str) -> None:
    log = subject.open()
    log.append(0, [entry(0, 1)], sync=True)
    subject.wait("synced", 0, 1)
    subject.faults.fail(call, path="*/0-*.wal")
    try:
        log.append(0, [entry(0, 2)], sync=True)
        subject.wait("failed", 0, 0)
        assert subject.heard.upto("synced", 0) == 1
        assert [e for e in subject.heard.events if e[0] == "failed"] == [("failed", 0, 0)]
        assert isinstance(subject.heard.errors[0], OSError)
        with pytest.raises(LogStopped) as refused:
            log.append(0, [entry(0, 3)], sync=True)
        assert refused.value.__cause__ is subject.heard.errors[0]
        log.append(1, [entry(1, 1)], sync=True)
        subject.wait("synced", 1, 1)
        assert flat(list(log.read(0, 1)))[0] == flat([entry(0, 1)])[0]
        with pytest.raises(LogStopped):
            log.close()
        assert [e for e in subject.heard.events if e[0] == "failed"] == [("failed", 0, 0)]
    finally:
        subject.faults.clear()
