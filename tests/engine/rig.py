"""What the engine's tests share: an engine driven by hand on a disk that can fail, die and come back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from topics.core.commands import Abort, Append, Configure, Delete, Drop, Publish, Stage
from topics.core.dedupe import DedupeKey
from topics.core.log import Log
from topics.core.match import parse_match
from topics.core.records import Records
from topics.engine.engine import Engine, EngineLimits
from topics.engine.job import Job, SegmentLimits
from topics.engine.recovery import Options
from topics.engine.ticket import Ticket
from topics.model import Deleted, Page, Record, Tombstone, Written
from topics.storage.wal import WalSettings
from topics.testing import CrashMode, FakeDisk, FaultFs, SimClock
from topics.testing.driver import Driver

SMALL = Options(wal=WalSettings(shards=2, file_bytes=64 << 10))
COLD = replace(SMALL, cold_dir="/cold", segments=SegmentLimits(cold_after_ms=1000))
DAY_MS = 24 * 3600 * 1000

Draft = dict[str, Any]


def with_wal(options: Options = SMALL, **settings: int) -> Options:
    return replace(options, wal=replace(options.wal, **settings))


def with_limits(options: Options = SMALL, **limits: int) -> Options:
    return replace(options, limits=replace(EngineLimits(), **limits))


def with_segments(options: Options = SMALL, **limits: int) -> Options:
    return replace(options, segments=replace(options.segments, **limits))


class Rig:
    """A process on a disk. The first topic it makes is log 1, of shard 1; the second one log 2, of shard 0."""

    def __init__(self, options: Options = SMALL, disk: FakeDisk | None = None, clock: SimClock | None = None) -> None:
        self.options = options
        self.clock = clock or SimClock()
        self.disk = disk or FakeDisk()
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        self.fs = FaultFs(self.disk)
        self.driver = Driver(self.fs, self.clock, self.options, seed=self._starts)

    @property
    def engine(self) -> Engine:
        return self.driver.engine

    def work(self) -> None:
        self.driver.work()

    # ---- ends

    def stop(self) -> None:
        """A clean stop and a new start."""
        self.driver.close()
        self.start()

    def kill(self) -> None:
        """The process dies, the machine goes on."""
        self.disk = self.disk.kill()
        self.start()

    def detach(self, mode: CrashMode = "lost", forgetful: bool = False) -> None:
        """The disk is taken from the machine, which keeps running, and comes back."""
        self.disk = self.disk.detach(mode, forgetful=forgetful)
        self.start()

    def crash(self, mode: CrashMode = "lost") -> None:
        """The power fails."""
        self.disk = self.disk.crash(mode)
        self.start()

    # ---- commands

    def configure(self, topic: str, merge: bool = False, **fields: object) -> None:
        self.driver.do(Configure(topic, fields, merge))

    def drop(self, topic: str) -> None:
        self.driver.do(Drop(topic))

    def submit(self, topic: str, *items: object, partition: int = 0, key: DedupeKey | None = None) -> Ticket:
        return self.engine.submit(Append(topic, records(*items), partition, key))

    def write(self, topic: str, *items: object, partition: int = 0, key: DedupeKey | None = None) -> Written:
        reply = self.driver.wait(self.submit(topic, *items, partition=partition, key=key))
        assert isinstance(reply, Written)
        return reply

    def delete(self, topic: str, before_seq: int | None = None, match: object = None) -> Deleted:
        found = None if match is None else parse_match(match)
        reply = self.driver.do(Delete(topic, 0, before_seq, found))
        assert isinstance(reply, Deleted)
        return reply

    def stage(self, stage: str, topic: str, *items: object, partition: int = 0) -> None:
        self.driver.do(Stage(stage, topic, records(*items), partition))

    def publish(self, *stages: str, epoch: int = 1) -> Ticket:
        return self.engine.submit(Publish(stages, "producer", epoch))

    def abort(self, *stages: str) -> None:
        self.driver.do(Abort(stages))

    # ---- checkpoints

    def checkpoint(self) -> None:
        self.driver.checkpoint()

    def capture(self) -> Job:
        *_, job = self.engine.begin_checkpoint()
        return job

    def finish(self, job: Job) -> None:
        """The rest of a checkpoint whose capture is done."""
        self.engine.write_job(job)
        self.engine.end_checkpoint(job, None)
        self.engine.clean_job(job)
        self.engine.cleaned(job)
        self.work()

    def erase(self, topic: str) -> None:
        self.engine.checkpoint(self.engine.erasable(topic, 0))
        self.work()

    # ---- looking

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.engine.machine.log(self.engine.machine.topic(topic), partition)

    def pages(self, topic: str, from_seq: int = 0, partition: int = 0, limit: int = 1000) -> Iterator[Page]:
        while True:
            page = self.engine.read(topic, from_seq, partition=partition, limit=limit, touch=False)
            yield page
            if page.caught_up:
                return
            assert page.next_from_seq > from_seq
            from_seq = page.next_from_seq

    def read(self, topic: str, from_seq: int = 0, partition: int = 0) -> list[Record]:
        return [record for page in self.pages(topic, from_seq, partition) for record in page.records]

    def data(self, topic: str, partition: int = 0) -> list[Any]:
        return [record.data for record in self.read(topic, partition=partition)]

    def seqs(self, topic: str, partition: int = 0) -> list[int]:
        return [record.seq for record in self.read(topic, partition=partition)]

    def gaps(self, topic: str, from_seq: int = 0) -> list[Tombstone]:
        return [page.tombstone for page in self.pages(topic, from_seq) if page.tombstone is not None]

    def text(self, topic: str) -> bytes:
        """Every byte that readers get of a topic."""
        return b",".join(page.body for page in self.pages(topic, limit=7) if page.body)

    def files(self, part: str = "") -> dict[str, bytes]:
        """What lies under a directory such as `segments`; the lock is nobody's data."""
        found = self.disk.contents()
        return {path: content for path, content in found.items() if part in path and not path.endswith("/lock")}

    def holding(self, *needles: bytes) -> list[str]:
        """The files in which any of these bytes can be found."""
        return [path for path, content in self.files().items() if any(needle in content for needle in needles)]


def records(*items: object) -> Records:
    """Each item is a whole draft, or the data of one."""
    return Records.of([item if isinstance(item, dict) and "data" in item else {"data": item} for item in items])


def tagged(*numbers: int) -> list[dict[str, object]]:
    """Records that use every column."""
    return [
        {"data": {"n": number}, "tag": f"tag:{number % 3}", "node": f"node{number % 2}", "meta": {"m": str(number)}}
        for number in numbers
    ]


def fill(rig: Rig, topic: str = "odd", count: int = 20) -> None:
    for first in range(0, count, 5):
        rig.write(topic, *tagged(*range(first, first + 5)))


def trickle(checkpoints: int, topics: int = 4) -> Rig:
    """A little of everything before each checkpoint."""
    rig = Rig()
    for number in range(checkpoints):
        for topic in range(topics):
            rig.write(f"t{topic}", *tagged(number, number + 1))
        rig.checkpoint()
    return rig
