"""Consumer groups that die at every file call, and in random histories of any number of consumers.

What was answered is kept as promises: which seqs were handed out to whom until when, which were acked, how far the
group had come. Whatever is recovered is held against them: nothing that was acked comes again, nothing that was not is
passed over, no two consumers have the same record at a time, and the committed seq never goes back.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.sim.crashing import DEATHS, Death
from topics.core.commands import Append, Command, Configure, Delete
from topics.core.cut import Shape
from topics.core.groupcommands import AckGroup, Consume, ExtendGroup, NackGroup, PauseGroup, ResetGroup
from topics.core.match import Match
from topics.core.records import Records
from topics.engine.fsck import fsck
from topics.groupmodel import GroupBatch, GroupState, at_seq
from topics.storage.fs import FileSystem
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.platter import CRASH_MODES
from topics.testing.workload import SMALL

LEASE_MS = 100
STRATA = 6


@dataclass
class Promises:
    written: set[int] = field(default_factory=set)
    acking: set[int] = field(default_factory=set)
    """Seqs that somebody asked to ack, or that may have been given up as dead letters."""
    acked: set[int] = field(default_factory=set)
    deleting: set[int] = field(default_factory=set)
    """Asked to be deleted, or evicted."""
    gone: set[int] = field(default_factory=set)
    committed: int = 0
    is_there: bool = False
    held: dict[int, int] = field(default_factory=dict)
    """Seqs that somebody has for sure, and until when."""


class World:
    """An engine, and all that was promised."""

    def __init__(self, fs: FileSystem, clock: SimClock, promises: Promises | None = None, seed: int = 0) -> None:
        self.clock = clock
        self.promises = promises or Promises()
        self.driver = Driver(fs, clock, SMALL, seed=seed)

    def do(self, command: Command) -> Any:
        return self.driver.do(command)

    def configure(self, **fields: object) -> None:
        self.do(Configure("t", {"durability": "fsync", "leases_durable": True, "visibility_ms": LEASE_MS, **fields}))

    # ---- what is done

    def write(self, count: int, tag: str = "") -> None:
        written = self.do(Append("t", Records.of([{"data": 0, "tag": tag}] * count)))
        self.promises.written.update(written.seqs)

    def delete(self, tag: str) -> None:
        before = {record.seq for record in self.live() if record.tag == tag}
        self.promises.deleting |= before
        self.do(Delete("t", match=Match(tag.encode(), False)))
        self.promises.gone |= before

    def live(self) -> list[Any]:
        return list(self.driver.engine.read("t", limit=1000, shape=Shape(tags=True), touch=False).records)

    def consume(self, consumer: str = "", limit: int = 2) -> GroupBatch:
        promises, now_ms = self.promises, self.clock.now_ms()
        ticket = self.driver.engine.groups.consume(Consume("t", "g", limit=limit, consumer=consumer))
        batch = self.driver.wait(ticket)
        self.driver.work()
        assert isinstance(batch, GroupBatch)
        promises.is_there = True
        seqs = {record.seq for record in batch.records}
        assert not seqs & promises.acked, f"{seqs & promises.acked} came again"
        assert not seqs & promises.gone, f"{seqs & promises.gone} were deleted"
        held = {seq for seq in seqs if promises.held.get(seq, 0) >= now_ms}
        assert not held, f"{held} are somebody else's"
        promises.held |= dict.fromkeys(seqs, batch.deadline)
        self.reached(batch.committed_seq)
        return batch

    def ack(self, batch: GroupBatch, upto_seq: int | None = None) -> None:
        promises, upto_seq = self.promises, batch.last_seq if upto_seq is None else upto_seq
        seqs = {record.seq for record in batch.records if record.seq <= upto_seq}
        promises.acking |= seqs
        done = self.do(AckGroup("t", "g", upto_seq, claim_id=batch.claim_id))
        # Deleted records count, so that only a whole claim is known to be no one else's in part.
        if done.acked > upto_seq - batch.first_seq:
            promises.acked |= seqs
        self.reached(done.committed_seq)

    def nack(self, batch: GroupBatch, delay_ms: int = 0) -> None:
        for record in batch.records:
            self.promises.held.pop(record.seq, None)
        self.do(NackGroup("t", "g", batch.last_seq, claim_id=batch.claim_id, delay_ms=delay_ms))

    def extend(self, batch: GroupBatch) -> None:
        done = self.do(ExtendGroup("t", "g", batch.last_seq, claim_id=batch.claim_id, visibility_ms=3 * LEASE_MS))
        if done.extended > batch.last_seq - batch.first_seq:
            self.promises.held |= {record.seq: done.deadline for record in batch.records if done.deadline}

    def reached(self, committed: int) -> None:
        assert committed >= self.promises.committed, "the committed seq went back"
        self.promises.committed = committed

    # ---- what is there

    def state(self) -> GroupState:
        return self.driver.engine.groups.state("t", "g")

    def check(self) -> None:
        promises = self.promises
        if not promises.is_there:
            return
        state = self.state()
        self.reached(state.committed_seq)
        lost = {seq for loss in state.losses for seq in range(loss.gap_from, loss.gap_to + 1)}
        unacked = promises.written - promises.acking - promises.deleting
        passed = {seq for seq in unacked if seq <= state.committed_seq} - lost
        assert not passed, f"{sorted(passed)} were passed over"
        next_seq = state.committed_seq + 1
        for found in state.ranges:
            assert found.first_seq == next_seq, "ranges lie side by side"
            next_seq = found.last_seq + 1

    def drain(self) -> None:
        """Whoever asks long enough gets every record that nobody acked."""
        self.do(PauseGroup("t", "g", False))
        left = {record.seq for record in self.live() if record.seq >= self.state().start_seq} - self.promises.acking
        for _ in range(6):
            self.clock.advance(1000)
            while (batch := self.consume("last", 100)).last_seq:
                left -= {record.seq for record in batch.records}
                self.ack(batch)
        if self.driver.engine.machine.topics.get("dead") is not None:
            letters = self.driver.engine.read("dead", limit=1000, touch=False).records
            left -= {int((letter.meta or {})["$dead_letter_src_seq"]) for letter in letters}
        assert not left, f"{sorted(left)} never came"
        assert self.state().lag == 0


def script(world: World) -> None:
    driver = world.driver
    world.configure(max_deliveries=3, dead_letter="dead")
    world.write(4)
    first = world.consume("a")
    second = world.consume("b")
    world.ack(second)
    driver.checkpoint()
    world.write(4, "x")
    third = world.consume("c", 4)
    world.ack(first, 1)
    world.nack(third, delay_ms=50)
    world.delete("x")
    world.write(3)
    driver.checkpoint()
    world.extend(first)
    world.clock.advance(500)
    fourth = world.consume("d", 3)
    world.ack(fourth)
    world.do(PauseGroup("t", "g", True))
    world.do(PauseGroup("t", "g", False))
    world.write(2)
    poison = world.consume("e", 1)
    for _ in range(2):
        world.nack(poison)
        poison = world.consume("e", 1)
    world.nack(poison)
    world.promises.acking.update(record.seq for record in poison.records)
    world.consume("f", 1)
    driver.checkpoint()
    world.write(2)
    world.clock.advance(500)
    world.ack(world.consume("g", 9))


@dataclass
class Moment:
    name: str
    disk: FakeDisk
    clock: SimClock
    promises: Promises


def deaths(call: Call, stratum: int) -> list[Death]:
    """One way for each call, taking turns; and the power that fails when nothing but what was synced is kept."""
    if not call.changes or call.index % STRATA != stratum:
        return []
    turn = DEATHS[call.index // STRATA % len(DEATHS)]
    return [turn, "lost"] if turn != "lost" and call.path.endswith(".wal") else [turn]


def moments(stratum: int) -> list[Moment]:
    disk = FakeDisk()
    fs = FaultFs(disk)
    world = World(fs, SimClock())
    found: list[Moment] = []

    def on_call(call: Call) -> None:
        for death in deaths(call, stratum):
            name = f"{call.index}:{death} ({call.name} of {call.path})"
            fork = disk.fork()
            left = fork.kill() if death == "killed" else fork.crash(death, random.Random(name))
            clock = SimClock(world.clock.now_ms(), world.clock.ticks_ns())
            found.append(Moment(name, left, clock, copy.deepcopy(world.promises)))

    fs.on_call = on_call
    script(world)
    return found


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_crash_loses_or_buries_a_record(stratum: int) -> None:
    found = moments(stratum)
    assert len(found) > 20
    for moment in found:
        try:
            world = World(moment.disk, moment.clock, copy.deepcopy(moment.promises), seed=1)
            if world.driver.engine.machine.topics.get("t") is None or not moment.promises.is_there:
                continue
            world.check()
            first = world.state()
            again = World(moment.disk.fork().crash("lost"), moment.clock, copy.deepcopy(moment.promises), seed=2)
            again.check()
            assert again.state() == first, "what was found is durable"
            again.drain()
        except AssertionError as error:
            error.add_note(moment.name)
            raise


def test_a_check_of_the_files_knows_all_facts_of_a_group() -> None:
    chance = random.Random(3)
    for moment in moments(2)[::4]:
        report = fsck(moment.disk.fork(), "/data", moment.clock, lambda: chance.getrandbits(64), SMALL, False)
        assert report.clean, (moment.name, report.findings)


def test_a_repair_of_a_damaged_log_gives_a_group_that_works() -> None:
    """Whatever byte is flipped: the directory opens, and the group hands out what it holds."""
    disk = FakeDisk()
    world = World(disk, SimClock())
    script(world)
    left = disk.kill()
    chance = random.Random(11)
    for path, content in sorted(left.contents().items()):
        if not path.endswith((".wal", ".data", ".delta", ".base")):
            continue
        used = len(content.rstrip(b"\0"))
        for at in chance.sample(range(used), min(4, used)):
            hurt = left.fork()
            file = hurt.open(path, "write")
            file.write_at(at, [bytes([content[at] ^ 0x10])])
            file.sync()
            file.close()
            fsck(hurt, "/data", world.clock, lambda: chance.getrandbits(64), SMALL, True)
            mended = World(hurt, SimClock(world.clock.now_ms()), Promises(), seed=4)
            if mended.driver.engine.machine.topics.get("t") is not None:
                mended.clock.advance(1000)
                mended.consume("last", 1)
                mended.do(PauseGroup("t", "g", False))
                mended.clock.advance(100_000)
                while (batch := mended.consume("last", 100)).last_seq:
                    mended.do(AckGroup("t", "g", batch.last_seq, claim_id=batch.claim_id))
                assert mended.state().lag == 0, f"{path} {at}"


class Walk:
    """A random history of several consumers, some of which die, on an engine that does, too."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = FakeDisk()
        self.world = World(self.disk, SimClock(), seed=seed)
        self.cap = self.chance.choice([0, 0, 12])
        self.world.configure(cap_records=self.cap)
        self.world.write(3)
        self.batches: list[GroupBatch] = []

    def step(self) -> None:
        world, chance = self.world, self.chance
        match chance.randrange(12):
            case 0 | 1:
                world.write(chance.randint(1, 4), chance.choice(["", "x"]))
            case 2 | 3 | 4:
                batch = world.consume(chance.choice(["", "a", "b", "c"]), chance.randint(1, 4))
                self.batches += [batch] if batch.last_seq else []
            case 5 | 6 | 7 if self.batches:
                batch = self.batches.pop(chance.randrange(len(self.batches)))
                world.ack(batch, chance.choice([None, None, batch.first_seq]))
            case 8 if self.batches:
                world.nack(self.batches.pop(chance.randrange(len(self.batches))), chance.choice([0, 150]))
            case 9 if self.batches:
                world.extend(chance.choice(self.batches))
            case 10:
                world.clock.advance(chance.choice([1, LEASE_MS, 5 * LEASE_MS]))
                if chance.random() < 0.3:
                    world.delete("x")
            case 11:
                self.die()

    def die(self) -> None:
        if self.chance.random() < 0.3:
            self.world.driver.checkpoint()
        mode: Death = self.chance.choice(["killed", *CRASH_MODES])
        self.disk = self.disk.kill() if mode == "killed" else self.disk.crash(mode, self.chance)
        self.world = World(self.disk, self.world.clock, self.world.promises, seed=self.chance.getrandbits(30))

    def evicted(self) -> None:
        """What a cap took is not lost in silence; it is no promise any more."""
        floor = self.world.driver.engine.state("t", touch=False).evict_floor
        self.world.promises.deleting |= {seq for seq in self.world.promises.written if seq < floor}


def walk(seed: int, steps: int) -> None:
    one = Walk(seed)
    try:
        for _ in range(steps):
            one.step()
            one.evicted()
            one.world.check()
        one.world.drain()
    except AssertionError as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_keep_every_promise(seed: int) -> None:
    walk(seed, 120)


@pytest.mark.soak
def test_many_random_histories_keep_every_promise() -> None:
    for seed in range(1000, 1400):
        walk(seed, 200)


def test_a_reset_is_durable_when_it_is_answered() -> None:
    disk = FakeDisk()
    world = World(disk, SimClock())
    world.configure(durability="disk", leases_durable=False)
    world.write(5)
    world.consume("a", 5)
    world.do(ResetGroup("t", "g", at_seq(4)))
    after = World(disk.crash("lost"), world.clock, seed=1)
    assert (after.state().start_seq, after.state().committed_seq) == (4, 3)


def test_the_first_contact_is_durable_when_it_is_answered() -> None:
    disk = FakeDisk()
    world = World(disk, SimClock())
    world.configure(durability="disk", leases_durable=False)
    world.write(5)
    world.do(ResetGroup("t", "other", at_seq(1)))  # The records are durable by now.
    world.driver.wait(world.driver.engine.groups.consume(Consume("t", "g", start=at_seq(4))))
    after = World(disk.crash("lost"), world.clock, seed=1)
    assert after.state().start_seq == 4
