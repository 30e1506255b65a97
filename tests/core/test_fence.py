"""What is known of producers for good: through checkpoints, restarts, crashes, repairs and backups."""

from __future__ import annotations

import random

import pytest

from tests.engine.archives import restored
from tests.engine.damage import flipped
from tests.engine.rig import DAY_MS, SMALL, Rig
from tests.engine.test_backup import opened
from topics.core.commands import Drop, ForgetProducer, Publish
from topics.core.dedupe import ProducerKey
from topics.core.facts import BatchDecided, BatchFinished
from topics.core.forget import page_of
from topics.engine.fsck import fsck
from topics.errors import ProducerFenced
from topics.model import Published
from topics.producermodel import ForgottenProducer

OTHERS = 16
BATCHES_OF_OTHERS = 65_600
"""More than the answers to older epochs that are kept."""


def publish(rig: Rig, stage: str, producer_id: str, epoch: int) -> Published:
    reply = rig.driver.do(Publish((stage,), producer_id, epoch))
    assert isinstance(reply, Published)
    return reply


def known(rig: Rig, topic: str | None = None) -> list[str]:
    return [producer.producer_id for producer in page_of(rig.engine.machine, topic, "", "", 10).producers]


def test_a_lost_commit_adds_nothing_after_batches_of_many_others() -> None:
    """A Spark query publishes a batch, loses the answer, and repeats it when others have published for hours."""
    rig = Rig()
    rig.configure("t")
    rig.stage("first", "t", 1, 2, 3)
    first = publish(rig, "first", "spark:query", 7)
    machine = rig.engine.machine
    for number in range(BATCHES_OF_OTHERS):
        # The facts of a publish, without the records and the disk between them.
        producer_id, epoch = f"spark:other-{number % OTHERS}", number // OTHERS
        machine.apply_meta(BatchDecided(producer_id, epoch, [], rig.clock.now_ms()))
        machine.apply_meta(BatchFinished(producer_id, epoch, [], rig.clock.now_ms()))
    rig.stage("again", "t", 1, 2, 3)
    again = publish(rig, "again", "spark:query", 7)
    assert (again.deduped, again.written, rig.data("t")) == (True, first.written, [1, 2, 3])
    with pytest.raises(ProducerFenced):
        publish(rig, "again", "spark:query", 6)


@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_a_fence_of_batches_outlives_restarts(end: str) -> None:
    rig = Rig()
    rig.configure("t")
    rig.stage("first", "t", 1)
    publish(rig, "first", "p", 7)
    for _ in range(3):
        rig.checkpoint()
        rig.clock.advance(40 * DAY_MS)
        rig.driver.engine.tick()
        getattr(rig, end)()
        rig.stage("again", "t", 1)
        assert publish(rig, "again", "p", 7).deduped
        rig.abort("again")
    assert rig.data("t") == [1]


def silent(rig: Rig, days: int = 3) -> None:
    """Time passes; other writes keep the log busy and checkpoints drop what is old."""
    for _ in range(days):
        rig.clock.advance(DAY_MS + 1)
        rig.write("t", "other", key=ProducerKey("~job", 1, 0))
        rig.checkpoint()


@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_a_fence_of_writes_outlives_checkpoints_and_restarts(end: str) -> None:
    rig = Rig()
    first = rig.write("t", 1, key=ProducerKey("p", 5, 8))
    rig.write("t", 2, 3, key=ProducerKey("p", 5, 9))
    for _ in range(2):
        silent(rig)
        getattr(rig, end)()
        again = rig.write("t", 2, 3, key=ProducerKey("p", 5, 9))
        assert again.deduped and again.first_seq == first.last_seq + 1
        with pytest.raises(ProducerFenced):
            rig.write("t", 1, key=ProducerKey("p", 4, 99))
    assert known(rig, "t") == ["p", "~job"]
    assert rig.log("t").dedupe.fence("p") is not None, "it is out of the chunks"


def test_a_fence_is_stored_again_when_its_checkpoint_failed() -> None:
    rig = Rig()
    rig.write("t", 1, key=ProducerKey("p", 5, 9))
    rig.checkpoint()
    rig.clock.advance(2 * DAY_MS)
    rig.write("t", 2)
    job = rig.capture()
    assert job.changed_fences
    rig.engine.end_checkpoint(job, OSError("the disk is full"))
    rig.checkpoint()
    rig.stop()
    assert rig.write("t", 1, key=ProducerKey("p", 5, 9)).deduped


def test_a_producer_that_wakes_is_out_of_its_fence() -> None:
    rig = Rig()
    rig.write("t", 1, key=ProducerKey("p", 5, 9))
    silent(rig)
    rig.write("t", 2, key=ProducerKey("p", 6, 0))
    rig.checkpoint()
    rig.stop()
    assert rig.log("t").dedupe.fence("p") is None
    assert rig.write("t", 2, key=ProducerKey("p", 6, 0)).deduped
    with pytest.raises(ProducerFenced):
        rig.write("t", 1, key=ProducerKey("p", 5, 9))


@pytest.mark.parametrize("asleep", [False, True])
@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_a_forgotten_producer_stays_forgotten(end: str, asleep: bool) -> None:
    rig = Rig()
    rig.write("t", 1, key=ProducerKey("p", 5, 9))
    rig.write("t", 2, key=ProducerKey("q", 5, 9))
    rig.stage("s", "t", 3)
    publish(rig, "s", "p", 5)
    rig.checkpoint()
    if asleep:
        silent(rig)
    for topic in ("t", None):
        told = rig.driver.do(ForgetProducer("p", topic))
        assert told == ForgottenProducer(producer_id="p", forgotten=True, topic=topic)
    for _ in range(2):
        assert known(rig) == []
        assert "p" not in known(rig, "t")
        getattr(rig, end)()
        rig.checkpoint()
    assert not rig.write("t", 1, key=ProducerKey("p", 1, 0)).deduped
    assert rig.write("t", 2, key=ProducerKey("q", 5, 9)).deduped


def test_fences_go_with_their_topic() -> None:
    rig = Rig()
    rig.write("t", 1, key=ProducerKey("p", 5, 9))
    silent(rig)
    rig.driver.do(Drop("t"))
    rig.checkpoint()
    rig.stop()
    assert not any(key.startswith(b"f/") for key in rig.engine.store.snapshots.load())
    assert not rig.write("t", 1, key=ProducerKey("p", 5, 9)).deduped


def test_a_backup_and_a_repair_keep_fences() -> None:
    rig = Rig()
    rig.write("t", 1, key=ProducerKey("p", 5, 9))
    rig.stage("s", "t", 3)
    publish(rig, "s", "p", 5)
    silent(rig)
    copy = restored(rig, opened(rig).chunks())
    rig.driver.close()
    path = min(path for path in rig.files("segments/") if path.endswith(".data"))
    rig.disk = flipped(rig.disk.contents(), path, 300, 0x10)
    chance = random.Random(7)
    report = fsck(rig.disk, "/data", rig.clock, lambda: chance.getrandbits(64), SMALL, repair=True)
    assert not report.clean, "the directory is written anew"
    rig.start()
    for one in (rig, copy):
        assert one.write("t", 1, key=ProducerKey("p", 5, 9)).deduped
        assert one.engine.machine.batches.newest_epoch == {"p": 5}


def test_a_fence_of_an_ephemeral_write_ends_with_the_process() -> None:
    rig = Rig()
    rig.configure("t", durability="disk")
    rig.write("t", 1, key=ProducerKey("stored", 5, 9))
    rig.configure("t", durability="ephemeral")
    rig.write("t", 2, key=ProducerKey("volatile", 5, 9))
    rig.configure("t", durability="disk")
    silent(rig)
    assert rig.write("t", 2, key=ProducerKey("volatile", 5, 9)).deduped, "as long as the record may be there"
    rig.stop()
    assert rig.write("t", 1, key=ProducerKey("stored", 5, 9)).deduped
    assert not rig.write("t", 2, key=ProducerKey("volatile", 5, 9)).deduped, "its record is gone"
