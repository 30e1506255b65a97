"""A workload over everything the log engine does, and the rig it runs on.

`Rig` drives an engine by hand on a disk and a clock, and keeps the history of it. `run_workload` is a fixed sequence
of commands, checkpoints, passages of time and restarts: the same calls to the file system every time, so that the
number of a call names a moment. It is small, because it is run once and recovered from thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from topics.core.commands import Abort, Append, Command, Configure, Delete, Drop, Publish, Stage
from topics.core.dedupe import DedupeKey, IdempotencyKey, ProducerKey
from topics.core.match import Match
from topics.core.records import Records
from topics.engine.job import SegmentLimits
from topics.engine.recovery import Options
from topics.engine.ticket import Ticket
from topics.storage.fs import FileSystem
from topics.storage.wal import WalSettings
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.history import Asked, History

DISK_SYNC_MS = 200
COLD_AFTER_MS = 2_000

SMALL = Options(
    segments=SegmentLimits(bytes_max=64 << 10, records_max=40, cold_after_ms=COLD_AFTER_MS),
    wal=WalSettings(shards=2, file_bytes=8 << 10, disk_sync_ms=DISK_SYNC_MS),
    cold_dir="/cold",
)
"""Limits so small that a short workload rotates, seals, packs and relocates."""


class Rig:
    def __init__(
        self,
        fs: FileSystem,
        clock: SimClock,
        history: History | None = None,
        options: Options = SMALL,
        seed: int = 0,
        first_id: int = 0,
    ) -> None:
        self.fs = fs
        self.clock = clock
        self.history = history or History(DISK_SYNC_MS)
        self.on_ack: Callable[[Command], None] = lambda command: None
        self._options = options
        self._seed = seed
        self._written = first_id
        self._tickets: list[tuple[Command, list[Asked], Ticket]] = []
        self.start()

    # ---- commands

    def do(self, command: Command) -> object:
        """One command, answered and looked at."""
        ticket = self.submit(command)
        self.finish()
        return ticket.result()

    def submit(self, command: Command) -> Ticket:
        """Give the engine a command without letting it work; see `finish`."""
        now_ms = self.driver.engine.now_ms()
        notes = self.history.ask(command, now_ms)
        try:
            ticket = self.driver.engine.submit(command)
        except Exception:
            self._withdraw(notes)
            raise
        ticket.on_done(lambda done: self._note_answer(command, notes, done))
        self._tickets.append((command, notes, ticket))
        return ticket

    def _note_answer(self, command: Command, notes: Sequence[Asked], ticket: Ticket) -> None:
        if ticket.error is None:
            for asked in notes:
                asked.acked = True
                asked.reply = ticket.result()
            self.on_ack(command)

    def _withdraw(self, notes: Sequence[Asked]) -> None:
        """A refused command changed nothing."""
        history = self.history
        for line in history.lines.values():
            line.waiting = [asked for asked in line.waiting if asked not in notes]
        for known in history.topics.values():
            known.waiting = [asked for asked in known.waiting if asked not in notes]
        history.newborn = {name: asked for name, asked in history.newborn.items() if asked not in notes}
        history.stages = {
            name: kept for name, parts in history.stages.items() if (kept := [p for p in parts if p not in notes])
        }
        history.publishing = None if history.publishing in notes else history.publishing
        history.aborting = None if history.aborting in notes else history.aborting

    def finish(self) -> None:
        """Work until everything that was submitted is answered."""
        self.driver.work()
        tickets, self._tickets = self._tickets, []
        for _, _, ticket in tickets:
            self.driver.wait(ticket)
        commands = [command for command, _, _ in tickets]
        self.history.settle(self.driver.engine, commands, self.clock.ticks_ns())

    # ---- everything else

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.driver.engine.tick()
        self.driver.work()
        if self.driver.engine.checkpoint_possible():
            self.history.time_passed(self.clock.ticks_ns())

    def checkpoint(self) -> None:
        quiet = not self._tickets
        self.driver.checkpoint()
        if quiet:
            self.history.checkpointed()

    def checkpoint_around(self, commands: Callable[[], None]) -> None:
        """A checkpoint as it is when it has a thread of its own: commands come while it is being written."""
        engine = self.driver.engine
        *_, job = engine.begin_checkpoint()
        commands()
        engine.write_job(job)
        engine.end_checkpoint(job, None)
        self.driver.wal.work()  # Its threads do not wait for the loop to flush what the commands left.
        engine.clean_job(job)
        engine.cleaned(job)

    def erase(self, command: Delete) -> None:
        self.do(command)
        engine = self.driver.engine
        engine.checkpoint(engine.erasable(command.topic, command.partition))
        self.driver.work()

    def reopen(self) -> None:
        """A clean stop and a start."""
        self.driver.close()
        self.history.checkpointed()
        self.start()

    def start(self) -> None:
        self.driver = Driver(self.fs, self.clock, self._options, seed=self._seed + self._written)

    # ---- shorthands

    def records(self, count: int = 1, tag: str = "", pad: int = 8) -> Records:
        """Records that nobody else wrote."""
        items = []
        for _ in range(count):
            self._written += 1
            item: dict[str, object] = {"data": {"id": self._written, "pad": "x" * pad}}
            if tag:
                item["tag"] = f"{tag}:{self._written % 3}"
            if self._written % 5 == 0:
                item["meta"] = {"n": str(self._written)}
            items.append(item)
        return Records.of(items, node="n1" if self._written % 2 else "")

    def append(
        self, topic: str, count: int = 1, *, partition: int = 0, tag: str = "", key: DedupeKey | None = None
    ) -> Append:
        return Append(topic, self.records(count, tag), partition, key)


CLASSES = ("fsync", "disk", "memory", "ephemeral")


def run_workload(rig: Rig) -> None:
    _create(rig)
    _write(rig)
    rig.checkpoint()
    _delete(rig)
    _evict(rig)
    rig.checkpoint()
    _batches(rig)
    rig.advance(COLD_AFTER_MS)
    _change(rig)
    rig.checkpoint()
    rig.reopen()
    _overlap(rig)
    rig.erase(Delete("fsync", match=Match(b"a:1", prefix=False)))
    rig.advance(50)
    for name in CLASSES:
        rig.submit(rig.append(name, 2))
    rig.finish()
    rig.checkpoint()
    rig.do(rig.append("disk", 3))


def _create(rig: Rig) -> None:
    for name in CLASSES:
        rig.do(Configure(name, {"durability": name}))
    rig.do(Configure("parts", {"durability": "fsync", "partitions": 3}))
    rig.do(Configure("capped", {"durability": "fsync", "cap_records": 5}))
    rig.do(Configure("capbytes", {"durability": "disk", "cap_bytes": 300}))
    rig.do(Configure("ttl", {"durability": "fsync", "ttl_ms": 1_000}))
    rig.do(Append("lazy", rig.records(2), config={"durability": "fsync"}))


def _write(rig: Rig) -> None:
    for name in CLASSES:
        rig.do(rig.append(name, 1))
        rig.do(rig.append(name, 12, tag="a"))
    rig.do(rig.append("fsync", 2, key=IdempotencyKey("k1")))
    rig.do(rig.append("disk", 2, key=IdempotencyKey("k1")))
    for sequence in range(3):
        rig.do(rig.append("disk", 1, key=ProducerKey("p", 1, sequence)))
    rig.advance(100)
    for partition in range(3):
        rig.submit(rig.append("parts", 2, partition=partition, tag="b"))
        rig.submit(rig.append("disk", 3, tag="b"))
    rig.submit(rig.append("memory", 2))
    rig.finish()
    rig.advance(DISK_SYNC_MS)
    rig.do(rig.append("disk", 30))
    rig.do(rig.append("disk", 60))
    rig.do(rig.append("ttl", 3))


def _delete(rig: Rig) -> None:
    rig.do(Delete("fsync", before_seq=4))
    rig.do(Delete("fsync", match=Match(b"a:0", prefix=False)))
    rig.do(Delete("disk", match=Match(b"b:", prefix=True)))
    rig.do(Delete("disk", before_seq=8, match=Match(b"a:", prefix=True)))
    rig.do(Delete("memory", match=Match(b"a:1", prefix=False)))
    rig.do(Delete("ephemeral", before_seq=3))
    rig.submit(rig.append("fsync", 3, tag="a"))
    rig.submit(Delete("fsync", match=Match(b"a:2", prefix=False)))
    rig.finish()


def _evict(rig: Rig) -> None:
    for count in (3, 4, 2):
        rig.do(rig.append("capped", count))
        rig.do(rig.append("capbytes", count, tag="c"))
    rig.advance(800)
    rig.do(rig.append("ttl", 2))
    rig.advance(400)
    rig.do(rig.append("ttl", 1))


def _batches(rig: Rig) -> None:
    rig.do(Stage("s1", "fsync", rig.records(3, "d")))
    rig.do(Stage("s2", "parts", rig.records(2), 1))
    rig.do(Stage("s3", "disk", rig.records(2)))
    rig.checkpoint()
    rig.do(Stage("s3", "disk", rig.records(20)))
    rig.do(Stage("s4", "fsync", rig.records(1)))
    rig.do(Stage("s5", "fsync", rig.records(1)))
    rig.do(rig.append("disk", 2))
    rig.do(Publish(("s1", "s2", "s3"), "spark", 7))
    rig.do(Abort(("s4",)))
    rig.do(Publish(("s1", "s2", "s3"), "spark", 7))
    rig.do(rig.append("disk", 1))


def _change(rig: Rig) -> None:
    rig.do(rig.append("ttl", 2))
    rig.advance(1_100)
    rig.driver.engine.state("ttl")
    rig.do(Configure("ttl", {"ttl_ms": 60_000}, merge=True))
    rig.do(Configure("capped", {"cap_records": 2}, merge=True))
    rig.do(Drop("lazy"))
    rig.do(Append("lazy", rig.records(3), config={"durability": "disk"}))
    rig.do(Configure("memory", {"durability": "disk"}, merge=True))
    rig.do(rig.append("memory", 2))


def _overlap(rig: Rig) -> None:
    rig.submit(rig.append("disk", 2))
    rig.submit(rig.append("fsync", 2, tag="a"))
    rig.checkpoint()
    rig.finish()
    rig.do(rig.append("parts", 5, partition=2))
    rig.checkpoint_around(lambda: _write_meanwhile(rig))
    rig.finish()


def _write_meanwhile(rig: Rig) -> None:
    rig.do(rig.append("fsync", 1))
    rig.do(Delete("disk", match=Match(b"a:1", prefix=False)))
    rig.do(Delete("parts", 2, before_seq=4))
    rig.submit(Drop("lazy"))
