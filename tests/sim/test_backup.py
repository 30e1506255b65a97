"""A backup begun at any moment of the workload, read between any two file calls of the engine, is of one moment."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.engine.archives import put, unpack
from tests.sim.crashing import everything
from topics.core.commands import Command, Delete
from topics.engine.backup import Backup
from topics.engine.ticket import Ticket
from topics.errors import BackupInterrupted
from topics.model import Durability
from topics.testing.audit import audit, probe
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.history import History, Seen
from topics.testing.workload import SMALL, Rig, run_workload

PIECE_BYTES = 300
"""So small that a file of the workload is read in many pieces."""

STRATA = 4
SOAK_SEEDS = 20


class Copying:
    """A backup of a rig, read a piece at a time while the engine is in the middle of something else."""

    def __init__(self, rig: BackedUp, rng: random.Random, share: float) -> None:
        self.clock = SimClock(rig.clock.now_ms(), rig.clock.ticks_ns())
        engine = rig.driver.engine
        self._backup = Backup.begin(engine)
        self._backup.pin()
        answers: list[object] = []
        # The moment. Whatever was submitted by now and is not answered may be in it.
        self._backup.cut(answers.append)
        self.history: History = rig.history.copy()
        rig.driver.wal.work()
        assert answers == [None]
        self._backup.open()
        self._pieces: Iterator[bytes] = self._backup.chunks(chunk_bytes=PIECE_BYTES)
        self._rng = rng
        self._share = share
        self._reading = False
        self.read: list[bytes] = []
        self.interrupted = False
        self.done = False

    def on_call(self, call: Call) -> None:
        """Another thread could run here."""
        if not self._reading and not self.done and self._rng.random() < self._share:
            self.step(self._rng.randrange(1, 6))

    def step(self, count: int) -> None:
        self._reading = True
        try:
            for _ in range(count):
                piece = next(self._pieces, b"")
                self.done = not piece
                if self.done:
                    break
                self.read.append(piece)
        except BackupInterrupted:
            self.interrupted = self.done = True
        finally:
            self._reading = False

    def finish(self) -> None:
        while not self.done:
            self.step(1)
        if not self._backup.released:
            self._reading = True
            assert self._backup.release() == set()
            self._reading = False


class BackedUp(Rig):
    """A rig that begins a backup before its nth command, and reads it while it works on."""

    def __init__(self, fs: FaultFs, nth: int, rng: random.Random, share: float) -> None:
        self._nth = nth
        self._rng = rng
        self._share = share
        self.copying: Copying | None = None
        self.erased = False
        self.expected: dict[tuple[str, int], Seen] | None = None
        super().__init__(fs, SimClock())

    def submit(self, command: Command) -> Ticket:
        self._nth -= 1
        if self._nth == 0:
            self._begin()
        return super().submit(command)

    def _begin(self) -> None:
        assert isinstance(self.fs, FaultFs)
        if not self._tickets:
            self.expected = everything(self.driver)
        self.copying = Copying(self, self._rng, self._share)
        self.fs.on_call = self.copying.on_call

    def erase(self, command: Delete) -> None:
        super().erase(command)
        self.erased |= self.copying is not None

    def reopen(self) -> None:
        if self.copying is not None:
            self.copying.finish()
        super().reopen()


def _commands() -> int:
    rig = BackedUp(FaultFs(FakeDisk()), 0, random.Random(0), 0)
    run_workload(rig)
    return -rig._nth


COMMANDS = _commands()


def check(nth: int, seed: int) -> None:
    rng = random.Random(f"{nth}:{seed}")
    disk = FakeDisk()
    rig = BackedUp(FaultFs(disk), nth, rng, rng.choice((0.02, 0.1, 0.5)))
    run_workload(rig)
    copying = rig.copying
    assert copying is not None
    copying.finish()
    try:
        assert copying.interrupted <= rig.erased, "nothing but an erasure interrupts a backup"
        if not copying.interrupted:
            _check_restored(rig, copying)
        _check_source(rig, disk)
    except AssertionError as error:
        error.add_note(f"backup before command {nth}, seed {seed}")
        raise


def _check_restored(rig: BackedUp, copying: Copying) -> None:
    target = put(copying.read)
    unpack(target, copying.clock, SMALL)
    # The archive is all it takes: another machine, and another boot.
    driver = Driver(target.crash("lost"), copying.clock, SMALL, seed=7)
    assert driver.engine.report.last_stop == "clean" and not driver.engine.report.notes
    audit(copying.history, driver.engine, power_lost=False, now_ms=copying.clock.now_ms())
    if rig.expected is not None:
        assert _lasting(everything(driver)) == _lasting(rig.expected)
        probe(copying.history, driver.do, copying.clock.now_ms())


def _lasting(found: dict[tuple[str, int], Seen]) -> dict[tuple[str, int], Seen]:
    return {key: seen for key, seen in found.items() if seen.config.durability is not Durability.EPHEMERAL}


def _check_source(rig: BackedUp, disk: FakeDisk) -> None:
    """The backup has left nothing behind, and nothing out."""
    rig.checkpoint()
    rig.driver.close()
    before = {name for name in disk.contents() if "/segments/" in name or "/snapshots/" in name}
    driver = Driver(disk.kill(), rig.clock, SMALL, seed=8)
    removed = [note for note in driver.engine.report.notes if note.startswith("removed")]
    assert removed == [], f"left behind, of {sorted(before)}"
    audit(rig.history, driver.engine, power_lost=False, now_ms=rig.clock.now_ms())


@pytest.mark.parametrize("stratum", range(STRATA))
def test_a_backup_is_of_one_moment(stratum: int) -> None:
    for nth in range(1 + stratum, COMMANDS + 1, STRATA):
        check(nth, seed=0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, SOAK_SEEDS))
def test_a_backup_is_of_one_moment_however_it_is_read(seed: int) -> None:
    for nth in range(1, COMMANDS + 1):
        check(nth, seed)
