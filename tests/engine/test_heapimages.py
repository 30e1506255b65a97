"""A heap over snapshots: its runs are written once, and whatever is missing is made anew from the records."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.archives import restored
from tests.engine.heaprig import HeapRig, damage, popped
from topics.core import heaporder
from topics.core.heap import Heap
from topics.core.heapcommands import Popper, Reprioritize
from topics.core.leases import LEASED
from topics.engine import heapimages, images
from topics.errors import Damaged
from topics.heapmodel import NewMessage


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"HEAP_YOUNG_MESSAGES": 50, "HEAP_YOUNG_BATCH_MAX": 20, "HEAP_RUN_MESSAGES": 200}.items():
        monkeypatch.setattr(heaporder, name, size)


@pytest.fixture
def rig() -> HeapRig:
    rig = HeapRig()
    rig.heap(max_retries=2, lease_ms=1000)
    for first in range(0, 300, 100):
        rig.batch(*[("h", NewMessage(payload=b"%d" % n, priority=n * 7 % 300)) for n in range(first, first + 100)])
    return rig


def stored_runs(rig: HeapRig) -> dict[bytes, bytes]:
    state = rig.engine.store.snapshots.load()
    return {key: value for key, value in state.items() if key.startswith(heapimages.KEY)}


def heap_of(rig: HeapRig) -> Heap:
    queue = rig.engine.machine.log(rig.engine.machine.topic("h")).queue
    assert isinstance(queue, Heap)
    return queue


def drain(rig: HeapRig) -> list[int]:
    return [message.priority for message in rig.pop(most=1000)]


def test_everything_is_as_it_was(rig: HeapRig) -> None:
    held = rig.pop(most=5)
    rig.nack(held[0], backoff_ms=5000)
    rig.nack(held[1], backoff_ms=0)
    rig.driver.do(Reprioritize("h", rig.engine.heaps.peek("h").messages[50].message_id, -9))
    before, shown = rig.engine.heaps.stats("h"), rig.engine.heaps.peek("h", limit=1000)
    history = heap_of(rig).history
    rig.driver.checkpoint()
    rig.kill()
    assert rig.engine.heaps.stats("h") == before
    assert rig.engine.heaps.peek("h", limit=1000) == shown
    assert heap_of(rig).history == history
    rig.ack(*held[2:])
    assert drain(rig)[0] == -9


def test_a_run_is_written_once(rig: HeapRig) -> None:
    rig.driver.checkpoint()
    first = stored_runs(rig)
    assert len(first) == 3 and sum(map(len, first.values())) == 300 * 16
    rig.pop(most=10)
    rig.kill()
    rig.driver.checkpoint()
    assert stored_runs(rig) == first
    written = rig.engine.begin_checkpoint()
    rig.engine.checkpointer.dirty.add(1)
    *_, job = written
    assert not any(key.startswith(heapimages.KEY) for key in job.puts)
    rig.engine.end_checkpoint(job, OSError("not written"))


def test_runs_that_are_passed_leave_the_snapshot(rig: HeapRig) -> None:
    rig.driver.checkpoint()
    assert drain(rig) == sorted(drain(rig) or range(300))
    rig.driver.checkpoint()
    assert stored_runs(rig) == {}


def test_a_heap_that_is_dropped_leaves_nothing(rig: HeapRig) -> None:
    rig.driver.checkpoint()
    rig.drop("h")
    rig.driver.checkpoint()
    assert stored_runs(rig) == {}


def test_runs_of_a_checkpoint_that_failed_are_written_by_the_next(rig: HeapRig) -> None:
    *_, job = rig.engine.begin_checkpoint()
    assert sum(key.startswith(heapimages.KEY) for key in job.puts) == 3
    rig.engine.end_checkpoint(job, OSError("the disk is full"))
    rig.driver.checkpoint()
    assert len(stored_runs(rig)) == 3
    rig.kill()
    assert drain(rig) == list(range(300))


def test_what_came_after_the_snapshot_is_in_order_with_what_came_before(rig: HeapRig) -> None:
    rig.driver.checkpoint()
    rig.pop(most=3)
    rig.put(-5, 299, 1000)
    rig.crash()
    assert drain(rig) == [-5, *range(3, 300), 299, 1000]


def test_without_its_runs_a_heap_is_made_anew_from_the_records(rig: HeapRig) -> None:
    held = rig.pop(most=4)
    rig.driver.checkpoint()
    log = rig.engine.machine.log(rig.engine.machine.topic("h"))
    image = images.decode_log(rig.engine.store.snapshots.load()[images.log_key(log.log_id)])
    log.queue = Heap()
    heapimages.restore(log, image, {})
    assert drain(rig) == list(range(4, 300))
    rig.ack(*held)


def test_a_heap_in_a_backup(rig: HeapRig) -> None:
    held = rig.pop(most=5)
    rig.nack(held[0], backoff_ms=5000)
    rig.driver.checkpoint()
    rig.ack(held[1])
    rig.put(-1)
    shown, numbers = rig.engine.heaps.peek("h", limit=1000), rig.engine.heaps.stats("h")
    backup = rig.driver.backup()
    archive = b"".join(backup.chunks())
    backup.release()
    rig.put(-2)
    other = restored(rig, archive).engine.heaps
    assert other.peek("h", limit=1000) == shown and other.stats("h") == numbers


def test_an_image_without_an_order_gives_back_what_is_leased_and_finds_the_rest_in_the_records(rig: HeapRig) -> None:
    held = rig.pop(most=5)
    rig.driver.checkpoint()
    log = rig.engine.machine.log(rig.engine.machine.topic("h"))
    state = rig.engine.store.snapshots.load()
    image = images.decode_log(state[images.log_key(log.log_id)])
    log.queue = Heap()
    heapimages.restore(log, msgspec.structs.replace(image, heap=None), state)
    assert log.queue.leases.counts[LEASED] == len(held)
    assert not log.queue.changed and not log.queue.history
    rig.ack(*held)
    assert drain(rig) == sorted(n * 7 % 300 for n in range(300))[5:]


def test_a_heap_that_cannot_be_made_anew_keeps_no_engine_from_starting(rig: HeapRig) -> None:
    """A repair left it without its runs, and then a record was damaged: whoever pops is told, and others go on."""
    rig.heap("other")
    rig.driver.checkpoint()
    snapshots = rig.engine.store.snapshots
    snapshots.reset({key: value for key, value in snapshots.load().items() if not key.startswith(heapimages.KEY)})
    damage(rig)
    rig.put(7, topic="other")
    assert popped(rig.driver.wait(rig.engine.heaps.pop("other", Popper("c", 1))))[0].priority == 7
    rig.put(-1)
    with pytest.raises(Damaged, match="is damaged"):
        rig.pop()
