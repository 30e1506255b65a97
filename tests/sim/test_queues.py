"""A queue that dies at every file call, in every way: jobs are in one place, results come once, counts are right.

Every job has an id. The script writes, claims, acks, completes with results, lets jobs die and drives them back, with
checkpoints in the middle of moves. Before each call that may change the disk, the disk is forked and dies; what is
recovered from it is held against what was answered until then.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.sim.crashing import DEATHS, Death
from topics.core.commands import Ack, Append, Claim, Claimer, Command, Complete, Configure, Extend, Nack, Redrive
from topics.core.records import Records
from topics.engine.findings import FsckReport
from topics.engine.fsck import fsck
from topics.engine.ticket import Ticket
from topics.model import ClaimedJobs, TopicType
from topics.storage.fs import FileSystem
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import SMALL

LEASE_MS = 100
STRATA = 6


@dataclass
class Promises:
    """What was asked for and what was answered, by the ids of jobs."""

    asked: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    acking: set[int] = field(default_factory=set)
    acked: set[int] = field(default_factory=set)
    completing: set[int] = field(default_factory=set)
    completed: set[int] = field(default_factory=set)
    claims_asked: Counter[int] = field(default_factory=Counter)
    claims: Counter[int] = field(default_factory=Counter)
    moved: set[int] = field(default_factory=set)
    """Jobs whose counts began anew, or may have."""


class World:
    """An engine, and all that was promised."""

    def __init__(self, fs: FileSystem, clock: SimClock, promises: Promises | None = None, seed: int = 0) -> None:
        self.clock = clock
        self.promises = promises or Promises()
        self.driver = Driver(fs, clock, SMALL, seed=seed)

    def do(self, command: Command) -> Any:
        return self.driver.do(command)

    # ---- what is done

    def write(self, *ids: int, delay_ms: int = 0) -> None:
        self.promises.asked.update(ids)
        self.do(Append("q", Records.of([{"data": {"id": number}} for number in ids]), delay_ms=delay_ms))
        self.promises.written.update(ids)

    def claim(self, node: str, most: int) -> dict[int, int]:
        """Ids and seqs of what was handed out."""
        live = self.ids("q")
        (jobs,) = self.do_claim(node, most, live)
        self.driver.work()
        return {msgspec.json.decode(text)["data"]["id"]: seq for text, seq in zip(jobs.jobs, jobs.seqs, strict=True)}

    def do_claim(self, node: str, most: int, live: dict[int, int]) -> tuple[ClaimedJobs, ...]:
        ticket = self.driver.engine.submit(Claim("q", (Claimer(node, most, LEASE_MS),)))
        jobs = ticket.reply
        assert isinstance(jobs, tuple)
        by_seq = {seq: number for number, seq in live.items()}
        got = [by_seq[seq] for seq in jobs[0].seqs]
        self.promises.claims_asked.update(got)
        self.driver.wait(ticket)
        self.promises.claims.update(got)
        return jobs

    def ack(self, node: str, jobs: dict[int, int]) -> None:
        self.promises.acking.update(jobs)
        self.do(Ack("q", node, list(jobs.values())))
        self.promises.acked.update(jobs)

    def complete(self, node: str, jobs: dict[int, int], split: bool = False) -> Ticket:
        """Complete jobs with a result each, in two topics; with `split`, a checkpoint falls in between the steps."""
        self.promises.completing.update(jobs)
        results = [
            Append(topic, Records.of([{"data": {"of": number}} for number in jobs]), create=True)
            for topic in ("out", "log")
        ]
        ticket = self.driver.engine.submit(Complete("q", node, list(jobs.values()), results))
        if split:
            self.driver.engine.checkpoint()
            self.driver.engine.flush()
            self.driver.wal.work()
            self.driver.engine.checkpoint()
        self.driver.wait(ticket)
        self.promises.completed.update(jobs)
        return ticket

    def redrive(self) -> None:
        self.promises.moved.update(self.ids("dead"))
        self.do(Redrive("dead"))

    # ---- what is there

    def ids(self, topic: str, key: str = "id") -> dict[int, int]:
        """Id and seq of every record, none twice."""
        found: dict[int, int] = {}
        for record_seq, number in self.rows(topic, key):
            assert number not in found, f"{number} is in {topic} twice"
            found[number] = record_seq
        return found

    def rows(self, topic: str, key: str) -> list[tuple[int, int]]:
        engine = self.driver.engine
        if engine.machine.topics.get(topic) is None:
            return []
        rows, from_seq = [], 0
        while True:
            page = engine.read(topic, from_seq, limit=1000, touch=False)
            rows += [(record.seq, record.data[key]) for record in page.records]
            if page.caught_up:
                return rows
            from_seq = page.next_from_seq

    def check(self, power_lost: bool) -> None:
        promises = self.promises
        queued, dead = self.ids("q"), self.ids("dead")
        results, copies = self.ids("out", "of"), self.ids("log", "of")
        assert not queued.keys() & dead.keys(), "a job is in its queue and among the dead letters"
        assert results.keys() == copies.keys(), "results are all there or none"
        for number in promises.asked:
            there = number in queued or number in dead
            if number in promises.completing:
                assert there != (number in results), f"job {number} and its result: both or neither"
                assert number not in promises.completed or number in results
            elif number in promises.acked:
                assert not there, f"job {number} came back"
            elif number in promises.written and number not in promises.acking:
                assert there, f"job {number} is lost"
        self.check_counts(queued, dead)

    def check_counts(self, queued: dict[int, int], dead: dict[int, int]) -> None:
        promises = self.promises
        log = self.driver.engine.machine.logs[self.driver.engine.machine.topic("q").first_log_id]
        assert log.queue is not None
        for number, seq in queued.items():
            if number not in promises.moved:
                count = log.queue.leases.deliveries(seq)
                assert promises.claims[number] <= count <= promises.claims_asked[number], f"deliveries of {number}"
        state = self.driver.engine.state("q").queue
        assert state is not None
        assert state.ready + state.in_flight + state.delayed == log.count == len(queued)
        if not promises.moved:
            assert state.dead_lettered == len(dead)

    def drain(self) -> None:
        """Whoever asks long enough gets every job that is there, or finds it among the dead letters."""
        left = set(self.ids("q"))
        for _ in range(4):
            self.clock.advance(1000)
            left -= set(self.claim("last", 100))
        assert left <= set(self.ids("dead"))


def script(world: World) -> None:
    driver = world.driver
    world.do(Configure("q", {"type": "queue", "durability": "fsync", "leases_durable": True, "lease_ms": LEASE_MS,
                             "max_deliveries": 2, "dead_letter": "dead"}))  # fmt: skip
    world.write(1, 2, 3, 4, 5, 6)
    first = world.claim("a", 3)
    world.ack("a", {1: first[1]})
    world.complete("a", {2: first[2]})
    driver.checkpoint()
    world.do(Nack("q", "a", [first[3]], delay_ms=50))
    second = world.claim("b", 2)
    world.do(Extend("q", "b", list(second.values()), 2 * LEASE_MS))
    world.write(7, 8, delay_ms=30)
    world.clock.advance(500)
    third = world.claim("c", 4)
    world.clock.advance(500)
    world.complete("c", {number: third[number] for number in list(third)[:1]}, split=True)
    fourth = world.claim("d", 9)
    world.complete("d", {number: fourth[number] for number in list(fourth)[:1]})
    world.write(9)  # At once: the queue's own log is synced, and with it that the move is over.
    driver.checkpoint()
    world.clock.advance(500)
    world.claim("e", 9)
    world.write(11)
    world.clock.advance(500)
    world.claim("f", 9)
    world.write(12)
    world.redrive()
    world.write(13)
    driver.checkpoint()
    world.redrive()
    world.write(10)
    world.clock.advance(500)
    world.ack("g", world.claim("g", 3))


def deaths(call: Call, stratum: int) -> list[Death]:
    """One way for each call, taking turns; and the power that fails when nothing but what was synced is kept."""
    if not call.changes or call.index % STRATA != stratum:
        return []
    turn = DEATHS[call.index // STRATA % len(DEATHS)]
    return [turn, "lost"] if turn != "lost" and call.path.endswith(".wal") else [turn]


@dataclass
class Moment:
    name: str
    disk: FakeDisk
    clock: SimClock
    promises: Promises
    power_lost: bool


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
            found.append(Moment(name, left, clock, copy.deepcopy(world.promises), death != "killed"))

    fs.on_call = on_call
    script(world)
    return found


def is_there(world: World) -> bool:
    return world.driver.engine.machine.topics.get("q") is not None


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_crash_loses_doubles_or_miscounts_a_job(stratum: int) -> None:
    found = moments(stratum)
    assert len(found) > 20
    for moment in found:
        try:
            world = World(moment.disk, moment.clock, copy.deepcopy(moment.promises), seed=1)
            if not is_there(world):
                assert not moment.promises.asked
                continue
            world.check(moment.power_lost)
            first = [world.ids("q"), world.ids("dead"), world.ids("out", "of")]
            again = World(moment.disk.fork().crash("lost"), moment.clock, copy.deepcopy(moment.promises), seed=2)
            again.check(power_lost=True)
            assert [again.ids("q"), again.ids("dead"), again.ids("out", "of")] == first, "what was found is durable"
            again.drain()
        except AssertionError as error:
            error.add_note(moment.name)
            raise


def test_the_script_does_all_that_it_is_meant_to() -> None:
    world = World(FakeDisk(), SimClock())
    script(world)
    assert world.promises.completed and world.promises.acked and world.promises.moved
    assert len(world.ids("out", "of")) == len(world.promises.completed) >= 2
    state = world.driver.engine.state("q").queue
    assert state is not None and state.dead_lettered >= 2
    world.check(power_lost=False)
    world.drain()


def check_files(disk: FakeDisk, clock: SimClock, repair: bool = False) -> FsckReport:
    chance = random.Random(3)
    return fsck(disk, "/data", clock, lambda: chance.getrandbits(64), SMALL, repair)


def test_a_check_of_the_files_knows_all_facts_of_a_queue() -> None:
    for moment in moments(2)[::4]:
        report = check_files(moment.disk.fork(), moment.clock)
        assert report.clean, (moment.name, report.findings)


def test_a_repair_of_a_damaged_queue_gives_one_that_works() -> None:
    """Whatever byte is flipped: the directory opens, and hands out what it holds."""
    disk = FakeDisk()
    world = World(disk, SimClock())
    script(world)
    left = disk.kill()
    chance = random.Random(11)
    for path, content in sorted(left.contents().items()):
        if not path.endswith((".wal", ".data", ".delta", ".base")):
            continue
        used = len(content.rstrip(b"\0"))
        for at in chance.sample(range(used), min(6, used)):
            hurt = left.fork()
            file = hurt.open(path, "write")
            file.write_at(at, [bytes([content[at] ^ 0x10])])
            file.sync()
            file.close()
            check_files(hurt, world.clock, repair=True)
            assert check_files(hurt, world.clock).clean, f"{path} {at}"
            mended = World(hurt, SimClock(world.clock.now_ms()), Promises(), seed=4)
            if is_there(mended) and mended.driver.engine.machine.topic("q").config.type is TopicType.QUEUE:
                mended.do(Claim("q", (Claimer("last", 100),)))
                state = mended.driver.engine.state("q").queue
                assert state is not None and state.ready == 0
