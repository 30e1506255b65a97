"""What is looked up to find the best messages, and what is not: where a backlog is on disk, each look may read it."""

from __future__ import annotations

import random

import pytest

from tests.core.heaprig import HEAP, HeapPair
from topics.core import heapfind, heaprecord
from topics.core.block import Block
from topics.core.heapcommands import Enqueue, Pop, Popper
from topics.core.log import Log
from topics.core.run import MemoryRun
from topics.errors import Damaged
from topics.heapmodel import NewMessage


def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Whose time is looked up from now on: partition and seq."""
    looked: list[tuple[int, int]] = []

    def ts_at(log: Log, seq: int) -> int:
        looked.append((log.partition, seq))
        return heaprecord.ts_at(log, seq)

    monkeypatch.setattr(heapfind, "ts_at", ts_at)
    return looked


def blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first seqs of blocks that are looked at from now on."""
    read: list[int] = []

    def block_at(run: MemoryRun, seq: int) -> tuple[Block, bytearray | None]:
        read.append(run.block.first_seq)
        return run.block, run.marks

    monkeypatch.setattr(MemoryRun, "block_at", block_at)
    return read


def fill(pair: HeapPair, count: int, blocks: int) -> list[int]:
    """So many messages in so many blocks, with priorities that have nothing to do with where they are."""
    priorities = random.Random(1).sample(range(count * blocks), count * blocks)
    for at in range(0, len(priorities), count):
        own = [NewMessage(payload=b"%d" % priority, priority=priority) for priority in priorities[at : at + count]]
        pair.step(Enqueue(HEAP, own, 0))
        pair.rig.log(HEAP).freeze_tail()
    return sorted(priorities)


def test_the_time_of_a_message_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = HeapPair(partitions=8)
    for partition in range(8):
        pair.enqueue(*range(20), partition=partition)
    looked = looks(monkeypatch)
    for _ in range(50):
        assert len(pair.step_pop("a", 1)) == 1
    assert 50 < len(looked) <= 8 + 50


def test_the_time_of_a_message_that_has_a_priority_of_its_own_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = HeapPair(partitions=3)
    for partition in range(3):
        pair.enqueue(*range(partition, 30, 3), partition=partition)
    pair.enqueue(7, partition=2)
    looked = looks(monkeypatch)
    (answer,) = pair.step(Pop(HEAP, [Popper("a", 40)]))
    assert [message.priority for message in answer.messages] == sorted([*range(30), 7])
    assert sorted(partition for partition, _ in looked) == [1, 2], "those that are the same, and no other"


def test_a_block_is_looked_for_once_however_many_of_its_messages_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = HeapPair()
    priorities = fill(pair, 20, 5)
    assert pair.step_pop("a", 1)[0].priority == priorities.pop(0), "everything has been put in order"
    read = blocks_read(monkeypatch)
    found = pair.step_pop("a", 60)
    assert [message.priority for message in found] == priorities[:60]
    assert [message.payload for message in found] == [b"%d" % priority for priority in priorities[:60]]
    assert read == sorted(set(read)), "each once, in the order they are stored in"
    assert len(read) == 5


@pytest.mark.parametrize("count", [1, heaprecord.FEW, heaprecord.FEW + 1, 30])
def test_messages_read_together_are_what_they_are_alone(count: int) -> None:
    pair = HeapPair()
    for at in range(30):
        pair.wait(at % 3)
        meta = {"trace": f"t{at}"} if at % 4 == 0 else None
        message = NewMessage(payload=b'{"n":%d}' % at, priority=at % 5, is_json=at % 2 == 0, meta=meta)
        pair.step(Enqueue(HEAP, [message], 0))
        if at in (11, 20):
            pair.rig.log(HEAP).freeze_tail()
    log = pair.rig.log(HEAP)
    seqs = sorted(random.Random(count).sample(range(1, 31), count))
    assert heaprecord.read_many(log, seqs) == [heaprecord.read(log, seq) for seq in seqs]


def test_when_one_cannot_be_read_all_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = HeapPair()
    priorities = fill(pair, 4, 3)
    whole = MemoryRun.block_at

    def block_at(run: MemoryRun, seq: int) -> tuple[Block, object]:
        if run.first_seq == 5:
            raise Damaged("the block is damaged")
        return whole(run, seq)

    monkeypatch.setattr(MemoryRun, "block_at", block_at)
    with pytest.raises(Damaged):
        pair.rig.step(Pop(HEAP, [Popper("a", 12)]))
    monkeypatch.setattr(MemoryRun, "block_at", whole)
    (answer,) = pair.step(Pop(HEAP, [Popper("a", 12)]))
    assert [message.priority for message in answer.messages] == priorities
