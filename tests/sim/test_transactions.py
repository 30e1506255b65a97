"""A transaction whose stages are several blocks each, dying at every file call: all of it or nothing, known by name.

What of it reaches a partition is a fact a block there, so a crash may come between two of them; what is remembered of
the transaction has to lead from one to the next.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.sim.crashing import DEATHS, reopen
from topics.core import log as logs
from topics.core.commands import Publish, Stage
from topics.core.heapcommands import MakeHeap
from topics.core.heaprecord import records_of
from topics.core.transaction import stage_of
from topics.heapmodel import EnqueuedBatch, NewMessage
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs
from topics.testing.workload import SMALL

TRANSACTION = "order-17"
PARTITIONS = 2
BLOCKS = 3
BLOCK = 4
STRATA = 4
STAGES = tuple(stage_of(TRANSACTION, f"1.1.{partition}") for partition in range(PARTITIONS))
BATCH = [
    ("h", NewMessage(payload=b"%d" % number, priority=-number, is_json=True, partition=number % PARTITIONS))
    for number in range(PARTITIONS * BLOCKS * BLOCK)
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is staged at a time is a block."""
    monkeypatch.setattr(logs, "TAIL_BATCH_RECORDS_MAX", BLOCK - 1)
    yield


def stage(driver: Driver) -> None:
    """In three steps a partition, a checkpoint between them: of each stage some is in a segment, some in memory."""
    driver.do(MakeHeap("h", {"partitions": PARTITIONS}))
    for step in range(BLOCKS):
        for partition, name in enumerate(STAGES):
            own = [message for _, message in BATCH if message.partition == partition]
            records = records_of(own[step * BLOCK : (step + 1) * BLOCK])
            driver.do(Stage(name, "h", records, partition))
        if step == 0:
            driver.checkpoint()


def publish(driver: Driver) -> None:
    driver.do(Publish(STAGES, "p", 1))


def enqueue(driver: Driver) -> EnqueuedBatch:
    """The same by its name."""
    answer = driver.wait(driver.engine.heaps.enqueue_batch(BATCH, TRANSACTION))
    assert isinstance(answer, EnqueuedBatch)
    return answer


def there(driver: Driver) -> dict[int, str]:
    """Numbers and ids of the messages, none twice."""
    found = [(int(m.payload), m.message_id) for m in driver.engine.heaps.peek("h", limit=1000).messages]
    assert len(dict(found)) == len(found), "a message is there twice"
    return dict(found)


def test_a_transaction_of_several_blocks_is_known_by_its_name() -> None:
    disk = FakeDisk()
    driver = Driver(disk, SimClock(), SMALL)
    stage(driver)
    assert not there(driver)
    publish(driver)
    ids = there(driver)
    assert sorted(ids) == list(range(len(BATCH)))
    for again in (driver, reopen(disk.fork().crash("lost"), SimClock(driver.engine.now_ms()))):
        answer = enqueue(again)
        assert answer.all_duplicates and answer.transaction_id == TRANSACTION
        assert [told.message_id for told in answer.messages] == [ids[number] for number in range(len(BATCH))]
        assert there(again) == ids


@pytest.mark.parametrize("stratum", range(STRATA))
def test_a_crash_leaves_all_of_it_or_nothing(stratum: int) -> None:
    disk, clock = FakeDisk(), SimClock()
    fs = FaultFs(disk)
    driver = Driver(fs, clock, SMALL)
    stage(driver)
    left: list[tuple[str, FakeDisk]] = []

    def on_call(call: Call) -> None:
        if call.changes and call.index % STRATA == stratum:
            for death in DEATHS:
                name = f"{call.index}:{death} ({call.name} of {call.path})"
                fork = disk.fork()
                left.append((name, fork.kill() if death == "killed" else fork.crash(death, random.Random(name))))

    fs.on_call = on_call
    publish(driver)
    driver.checkpoint()
    assert left
    for name, found in left:
        try:
            _check(found, clock)
        except AssertionError as error:
            error.add_note(name)
            raise


def _check(disk: FakeDisk, clock: SimClock) -> None:
    driver = reopen(disk, SimClock(clock.now_ms()))
    before = there(driver)
    assert len(before) in (0, len(BATCH)), "a part of it is there"
    answer = enqueue(driver)
    assert answer.all_duplicates is bool(before)
    after = there(driver)
    assert [told.message_id for told in answer.messages] == [after[number] for number in range(len(BATCH))]
    assert before in ({}, after)
