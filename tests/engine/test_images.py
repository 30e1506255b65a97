"""What a snapshot holds of each thing, and that all of it comes back."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.rig import frozen
from tests.engine.rig import Rig
from topics.core.batch import Batch, OpenStage
from topics.core.facts import MoveDecided, MovePart
from topics.core.hole import Hole
from topics.core.log import Log
from topics.core.queue import Queue
from topics.core.registry import Topic
from topics.engine import images
from topics.engine.images import LogImage, RunImage
from topics.model import Published, Reason, TopicConfig, Written


def sample_log() -> Log:
    log = Log(7, "t", 2, 3)
    log.next_seq, log.low, log.evict_floor = 100, 40, 30
    log.lost = {Reason.CAP: 29, Reason.TTL: 10}
    log.holes = [Hole(50, 60, Reason.RESTART)]
    log.last_ts, log.last_write_ts, log.granted_ceiling = 5, 6, 164
    log.published = {9: (90, 3)}
    return log


def test_a_log_comes_back_as_it_was() -> None:
    log = sample_log()
    runs = (RunImage(1, 0, 10, 100, 40, 49), RunImage(2, 3, 39, 390, 61, 99))
    image = images.with_runs(images.log_image(log, 12, 99, (1, 4)), runs)
    found = images.decode_log(images.encode(image))
    assert found == image and found.runs == runs and (found.position, found.chunks) == (12, (1, 4))
    restored = Log(7, "t", 2, 3)
    images.restore_log(restored, found)
    assert frozen(restored) == frozen(log)


def test_a_queue_comes_back_with_its_leases_delays_counts_and_moves() -> None:
    log = sample_log()
    log.queue = Queue(cursor=77, dead_lettered=4)
    log.queue.leases.lease([70, 72], 500, "a", 0, 9)
    log.queue.leases.lease([71], 600, "b", 3, 1)
    log.queue.leases.delay([90], 700)
    log.queue.leases.release([70], 0, 100)
    log.transit.received = {5: 6}
    log.apply(MoveDecided(3, [72], [MovePart("out", 0, 8, b"block", 5)], True))
    restored = Log(7, "t", 2, 3)
    leaving = tuple(log.transit.leaving.values())
    images.restore_log(restored, images.decode_log(images.encode(images.log_image(log, 12, 99, (), leaving))))
    assert restored.queue is not None
    assert (restored.queue.cursor, restored.queue.dead_lettered) == (77, 4)
    for table in (log.queue.leases, restored.queue.leases):
        table.expire(101)
    assert list(restored.queue.leases) == list(log.queue.leases)
    assert restored.queue.leases.counts == log.queue.leases.counts == [1, 1, 1, 1]
    assert frozen(restored.transit) == frozen(log.transit)


def test_an_image_of_before_there_were_queues_can_be_read() -> None:
    image = images.log_image(sample_log(), 12, 99, ())
    fields = msgspec.to_builtins(image)
    for name in ("queue", "leaving", "received", "next_move", "waits"):
        del fields[name]
    assert images.decode_log(msgspec.msgpack.encode(fields)) == image


def test_seqs_that_were_in_memory_only_are_a_hole() -> None:
    log = sample_log()
    restored = Log(7, "t", 2, 3)
    images.restore_log(restored, images.log_image(log, 12, 79, []))
    assert restored.holes == [Hole(50, 60, Reason.RESTART), Hole(80, 99, Reason.RESTART)]
    assert restored.next_seq == 100


@pytest.mark.parametrize(("stored_upto", "low"), [(99, 40), (0, 100), (50, 100)])
def test_nothing_lost_is_no_hole(stored_upto: int, low: int) -> None:
    log = sample_log()
    log.low = low
    log.holes = []
    restored = Log(7, "t", 2, 3)
    images.restore_log(restored, images.log_image(log, 12, stored_upto, []))
    assert list(restored.holes) == [] and restored.next_seq == 100


def test_topics_stages_and_batches_come_back() -> None:
    topic = Topic("t", TopicConfig(cap_records=5), 3, 7, 1000)
    assert images.decode_topic(images.encode(images.topic_image(topic))) == images.TopicImage(
        "t", 3, 7, 1000, topic.config
    )
    stage = OpenStage("s", sample_log(), "t", 2, 5000, decided=True)
    assert images.decode_stage(images.encode(images.stage_image(stage))) == images.StageImage(
        "s", 7, "t", 2, 5000, True
    )
    written = Written(topic="t", partition=2, first_seq=1, last_seq=2, head_seq=2)
    for answer in (None, Published(written=(written,))):
        batch = Batch("p", 4, ["s"], 1000, answer)
        assert images.restore_batch(images.decode_batch(images.encode(images.batch_image(batch)))) == batch


def test_keys_of_different_things_are_different() -> None:
    keys = [
        images.META_KEY,
        images.topic_key("1"),
        images.log_key(1),
        images.log_key(11),
        images.chunk_key(1, 1),
        images.chunk_key(11, 1),
        images.chunk_key(1, 11),
        images.stage_key("1"),
        images.batch_key("1", 1),
        images.batch_key("1/1", 1),
        images.batch_key("1", 11),
    ]
    assert len(set(keys)) == len(keys)


def test_an_image_without_a_field_that_was_added_later_is_read() -> None:
    """The recipe for changing an image: a new field has a default, and stands last."""

    class Later(LogImage, frozen=True):
        added: int = 17

    stored = images.encode(images.log_image(sample_log(), 1, 2, []))
    assert msgspec.msgpack.Decoder(Later).decode(stored).added == 17
    newer = images.encode(Later(**msgspec.structs.asdict(images.decode_log(stored))))
    assert images.decode_log(newer).position == 1


def test_a_snapshot_holds_each_thing_once_and_nothing_that_is_gone() -> None:
    rig = Rig()
    rig.write("odd", 1)
    rig.write("even", 1)
    rig.stage("s", "odd", 1)
    rig.checkpoint()
    rig.drop("even")
    rig.abort("s")
    rig.checkpoint()
    assert sorted(rig.engine.store.snapshots.load()) == [b"l/1", b"m", b"t/odd"]
