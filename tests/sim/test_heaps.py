"""A heap that dies at every file call, in every way: messages are in one place, come once, in order, and batches whole.

Every message has a number. The script enqueues, one by one and in batches over partitions, pops, acks, lets messages
die, drives them back, changes priorities and calls messages off, with checkpoints in between and runs so small that
there are many. Before each call that may change the disk, the disk is forked and dies; what is recovered from it is
held against what was answered until then.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.sim.crashing import DEATHS, Death
from topics.core import heaporder
from topics.core.commands import Command
from topics.core.heapcommands import (
    AckMessages,
    CancelMessage,
    ExtendLeases,
    MakeHeap,
    MoveToDlq,
    NackMessages,
    Popper,
    ReplayDead,
    Reprioritize,
)
from topics.engine.findings import FsckReport
from topics.engine.fsck import fsck
from topics.heapmodel import Enqueued, EnqueuedBatch, LeaseRef, NewMessage, PoppedMessage, PoppedMessages
from topics.model import TopicType
from topics.storage.fs import FileSystem
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import SMALL

LEASE_MS = 1000
STRATA = 6
HEAPS = ("h", "other")


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    sizes = {"HEAP_YOUNG_MESSAGES": 6, "HEAP_YOUNG_BATCH_MAX": 2, "HEAP_RUN_MESSAGES": 12}
    for name, size in (sizes | {"_SMALL_MESSAGES": 4, "_SMALL_RUNS_MAX": 3}).items():
        monkeypatch.setattr(heaporder, name, size)
    yield


@dataclass
class Promises:
    """What was asked for and what was answered, by the numbers of messages."""

    asked: set[int] = field(default_factory=set)
    enqueued: dict[int, str] = field(default_factory=dict)
    """Ids that were answered."""
    keyed: dict[int, NewMessage] = field(default_factory=dict)
    batches: dict[str, list[tuple[str, NewMessage]]] = field(default_factory=dict)
    """By transaction."""
    ending: set[int] = field(default_factory=set)
    """To be acked or called off."""
    ended: set[int] = field(default_factory=set)
    held: dict[int, PoppedMessage] = field(default_factory=dict)
    """Leases that were answered, and not settled since."""
    priorities: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """What a message's may be."""


def new(number: int, priority: int = 0, **fields: Any) -> NewMessage:
    return NewMessage(payload=b"%d" % number, priority=priority, is_json=True, **fields)


class World:
    """An engine, and all that was promised."""

    def __init__(self, fs: FileSystem, clock: SimClock, promises: Promises | None = None, seed: int = 0) -> None:
        self.clock = clock
        self.promises = promises or Promises()
        self.driver = Driver(fs, clock, SMALL, seed=seed)
        self.heaps = self.driver.engine.heaps

    def do(self, command: Command) -> Any:
        return self.driver.do(command)

    # ---- what is done

    def enqueue(
        self, number: int, priority: int, key: str | None = None, producer: bool = False, **fields: Any
    ) -> None:
        if producer:
            fields |= {"producer_id": "p", "sequence": number}
        message = new(number, priority, partition_key=key, **fields)
        self._ask(number, message)
        answer = self.driver.wait(self.heaps.enqueue("h", message))
        assert isinstance(answer, Enqueued) and not answer.duplicate
        self.promises.enqueued[number] = answer.message_id

    def _ask(self, number: int, message: NewMessage) -> None:
        self.promises.asked.add(number)
        self.promises.priorities[number] = (message.priority,)
        if message.producer_id is not None:
            self.promises.keyed[number] = message

    def batch(self, transaction: str, *numbers: int, split: bool = False) -> None:
        """Messages for two heaps and all partitions; with `split`, a checkpoint falls in between the steps."""
        batch = [
            (HEAPS[number % 4 == 0], new(number, number % 7, partition_key=str(number), delay_ms=number % 3 * 10))
            for number in numbers
        ]
        self.promises.batches[transaction] = batch
        for number, (_, message) in zip(numbers, batch, strict=True):
            self._ask(number, message)
        ticket = self.heaps.enqueue_batch(batch, transaction)
        while split and not ticket.done:
            self.driver.engine.checkpoint()
            self.driver.engine.flush()
            self.driver.wal.work()
        answer = self.driver.wait(ticket)
        assert isinstance(answer, EnqueuedBatch)
        for number, told in zip(numbers, answer.messages, strict=True):
            self.promises.enqueued[number] = told.message_id

    def pop(self, most: int, lease_ms: int = LEASE_MS) -> dict[int, PoppedMessage]:
        popped = self.driver.wait(self.heaps.pop("h", Popper("c", most, lease_ms)))
        assert isinstance(popped, PoppedMessages)
        keys = [(message.priority, message.enqueued_ms) for message in popped.messages]
        assert keys == sorted(keys)
        found = {int(message.payload): message for message in popped.messages}
        for number, message in found.items():
            held = self.promises.held.get(number)
            assert held is None or held.lease_deadline_ms < self.clock.now_ms(), f"{number} is held by two"
            self.promises.held[number] = message
        return found

    def ack(self, messages: dict[int, PoppedMessage]) -> None:
        self.promises.ending.update(messages)
        for number in messages:
            self.promises.held.pop(number, None)
        self.do(AckMessages("h", refs(messages)))
        self.promises.ended.update(messages)

    def nack(self, messages: dict[int, PoppedMessage], backoff_ms: int = 0) -> None:
        for number in messages:
            self.promises.held.pop(number, None)
        self.do(NackMessages("h", refs(messages), backoff_ms, "boom"))

    def reprioritize(self, number: int, priority: int) -> None:
        self.promises.priorities[number] += (priority,)
        self.do(Reprioritize("h", self.promises.enqueued[number], priority))
        self.promises.priorities[number] = (priority,)

    def move(self, number: int) -> None:
        """Whoever has it loses it."""
        self.promises.held.pop(number, None)
        self.do(MoveToDlq("h", self.promises.enqueued[number], "poison"))

    def cancel(self, number: int) -> None:
        self.promises.ending.add(number)
        self.do(CancelMessage("h", self.promises.enqueued[number]))
        self.promises.ended.add(number)

    # ---- what is there

    def numbers(self) -> dict[str, dict[int, int]]:
        """Number and priority of every message and dead letter, none twice."""
        found: dict[str, dict[int, int]] = {}
        for name in HEAPS:
            if self.driver.engine.machine.topics.get(name) is None:
                continue
            own: dict[int, int] = {}
            for message in self.heaps.peek(name, limit=1000, include_dlq=True).messages:
                number = int(message.payload)
                assert number not in own, f"{number} is in {name} twice"
                own[number] = message.priority
            found[name] = own
        return found

    def check(self) -> None:
        promises = self.promises
        found = self.numbers()
        there = {number: priority for own in found.values() for number, priority in own.items()}
        assert len(there) == sum(map(len, found.values())), "a message is in two heaps"
        assert there.keys() <= promises.asked
        assert not there.keys() & promises.ended, "a message came back"
        assert promises.enqueued.keys() - promises.ending <= there.keys(), "a message is lost"
        for number, priority in there.items():
            assert priority in promises.priorities[number]
        for batch in promises.batches.values():
            numbers = {int(message.payload) for _, message in batch} - promises.ending
            assert numbers <= there.keys() or not numbers & there.keys(), "a part of a batch is there"
        for name in found:
            stats = self.heaps.stats(name)
            assert stats.ready_messages + stats.in_flight_messages + stats.delayed_messages == stats.total_messages

    def check_leases(self) -> None:
        """What somebody has is still theirs: nobody else gets it, and its token counts."""
        now_ms = self.clock.now_ms()
        alive = {number: held for number, held in self.promises.held.items() if held.lease_deadline_ms >= now_ms}
        got = self.pop(1000)
        assert not got.keys() & alive.keys()
        if alive:
            self.do(ExtendLeases("h", refs(alive), LEASE_MS))

    def check_once(self) -> None:
        """What is sent again is not there twice, and gets the first answer if there was one."""
        for number, message in self.promises.keyed.items():
            again = self.driver.wait(self.heaps.enqueue("h", message))
            assert isinstance(again, Enqueued)
            assert again.message_id == self.promises.enqueued.get(number, again.message_id)
        for transaction, batch in self.promises.batches.items():
            answers = self.driver.wait(self.heaps.enqueue_batch(batch, transaction))
            assert isinstance(answers, EnqueuedBatch)
            for (_, message), answer in zip(batch, answers.messages, strict=True):
                number = int(message.payload)
                assert answer.message_id == self.promises.enqueued.get(number, answer.message_id)
        self.check()

    def drain(self) -> None:
        """Whoever asks long enough gets every message that is there, or finds it among the dead letters."""
        left = set(self.numbers()["h"])
        for _ in range(6):
            self.clock.advance(400_000)
            self.driver.engine.tick()
            self.driver.work()
            left -= set(self.pop(1000))
        dead = {int(letter.payload) for letter in self.heaps.dead_letters("h", limit=1000).messages}
        assert left <= dead


def refs(messages: dict[int, PoppedMessage]) -> list[LeaseRef]:
    return [LeaseRef(message.lease_token, message.message_id) for message in messages.values()]


def script(world: World) -> None:
    driver = world.driver
    fields = {"partitions": 3, "lease_ms": LEASE_MS, "max_retries": 1, "leases_durable": True}
    world.do(MakeHeap("h", fields))
    world.do(MakeHeap("other", {"mode": "max"}))
    for number, priority in enumerate([5, 1, 9, 1, 3, 7, 2, 8], 1):
        world.enqueue(number, priority, key=str(number), producer=number % 2 == 0)
    world.batch("t1", *range(20, 30))
    driver.checkpoint()
    first = world.pop(3)
    world.ack(dict(list(first.items())[:1]))
    world.nack(dict(list(first.items())[1:2]), backoff_ms=50)
    world.reprioritize(3, -4)
    world.cancel(8)
    world.batch("t2", *range(30, 36), split=True)
    world.enqueue(9, 4, delay_ms=70, max_retries=0)
    world.clock.advance(60)
    second = world.pop(4, LEASE_MS // 4)
    world.do(ExtendLeases("h", refs(dict(list(second.items())[:1])), LEASE_MS))
    driver.checkpoint()
    world.clock.advance(LEASE_MS + 1)
    third = world.pop(6)
    world.nack(dict(list(third.items())[:3]))
    world.move(7)
    world.clock.advance(5000)
    driver.engine.tick()
    driver.work()
    fourth = world.pop(5)
    world.ack(dict(list(fourth.items())[:2]))
    driver.checkpoint()
    world.do(ReplayDead("h"))
    world.enqueue(10, 0, producer=True)
    world.ack(world.pop(2))


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


def is_there(world: World) -> bool:
    return all(world.driver.engine.machine.topics.get(name) is not None for name in HEAPS)


@pytest.mark.parametrize("stratum", range(STRATA))
def test_no_crash_loses_doubles_or_splits_anything(stratum: int) -> None:
    found = moments(stratum)
    assert len(found) > 20
    for moment in found:
        try:
            world = World(moment.disk, moment.clock, copy.deepcopy(moment.promises), seed=1)
            if not is_there(world):
                assert not moment.promises.asked
                continue
            world.check()
            first = world.numbers()
            again = World(moment.disk.fork().crash("lost"), moment.clock, copy.deepcopy(moment.promises), seed=2)
            again.check()
            assert again.numbers() == first, "what was found is durable"
            again.check_leases()
            again.check_once()
            again.drain()
        except AssertionError as error:
            error.add_note(moment.name)
            raise


def test_the_script_does_all_that_it_is_meant_to() -> None:
    world = World(FakeDisk(), SimClock())
    script(world)
    stats = world.heaps.stats("h")
    assert stats.total_acks >= 3 and stats.total_nacks >= 3 and stats.total_timeouts >= 1
    assert stats.total_dead_lettered >= 2 and stats.total_retries >= 1
    log = world.driver.engine.machine.log(world.driver.engine.machine.topic("h"))
    assert log.queue is not None
    world.check()
    world.check_leases()
    world.check_once()
    world.drain()


def test_a_clean_stop_gives_back_what_is_leased_without_an_attempt() -> None:
    disk, clock = FakeDisk(), SimClock()
    world = World(disk, clock)
    world.do(MakeHeap("h", {"partitions": 2}))
    world.enqueue(1, 1, key="a")
    world.enqueue(2, 2, key="b")
    held = world.pop(2)
    world.driver.close()
    again = World(disk, clock, seed=1)
    assert again.heaps.stats("h").ready_messages == 2
    assert [message.attempts for message in again.pop(2).values()] == [0, 0]
    assert held.keys() == {1, 2}


def check_files(disk: FakeDisk, clock: SimClock, repair: bool = False) -> FsckReport:
    chance = random.Random(3)
    return fsck(disk, "/data", clock, lambda: chance.getrandbits(64), SMALL, repair)


def test_a_check_of_the_files_knows_all_facts_of_a_heap() -> None:
    for moment in moments(2)[::6]:
        report = check_files(moment.disk.fork(), moment.clock)
        assert report.clean, (moment.name, report.findings)


def test_a_repair_of_a_damaged_heap_gives_one_that_works() -> None:
    """Whatever byte is flipped: the directory opens, and hands out what it holds, in order."""
    disk = FakeDisk()
    world = World(disk, SimClock())
    script(world)
    left = disk.kill()
    chance = random.Random(11)
    for path, content in sorted(left.contents().items()):
        if not path.endswith((".wal", ".data", ".delta", ".base")):
            continue
        used = len(content.rstrip(b"\0"))
        for at in chance.sample(range(used), min(5, used)):
            hurt = left.fork()
            file = hurt.open(path, "write")
            file.write_at(at, [bytes([content[at] ^ 0x10])])
            file.sync()
            file.close()
            check_files(hurt, world.clock, repair=True)
            assert check_files(hurt, world.clock).clean, f"{path} {at}"
            mended = World(hurt, SimClock(world.clock.now_ms()), Promises(), seed=4)
            if is_there(mended) and mended.driver.engine.machine.topic("h").config.type is TopicType.HEAP:
                mended.pop(1000)
                assert mended.heaps.stats("h").ready_messages == 0
