"""No file contains anything of a record that arrived while its topic was ephemeral."""

from __future__ import annotations

import gzip

import pytest

from tests.engine.heaprig import HeapRig
from tests.engine.queuerig import QueueRig, result
from tests.engine.rig import Rig, records
from tests.engine.routerrig import put
from topics.core.commands import Append, Complete
from topics.core.dedupe import IdempotencyKey, ProducerKey
from topics.engine.backup import Backup
from topics.errors import StageConflict, StageNotFound
from topics.heapmodel import NewMessage
from topics.model import Reason

SECRET = b"SECRET"
ENDS = ["stop", "kill", "crash"]
CLASSES = ["memory", "disk", "fsync"]


def secret(number: int = 0) -> dict[str, object]:
    """A record that has the secret in every column."""
    text = f"SECRET{number}"
    return {"data": text, "tag": text, "node": text, "meta": {text: text}}


def archived(rig: Rig) -> bytes:
    backup = Backup.begin(rig.engine)
    backup.pin()
    answers: list[Exception | None] = []
    backup.cut(answers.append)
    rig.work()
    assert answers == [None]
    backup.open()
    stream = b"".join(backup.chunks())
    return gzip.decompress(stream) if stream.startswith(b"\x1f\x8b") else stream


def assert_nowhere(rig: Rig) -> None:
    assert rig.holding(SECRET) == []


def at_every_step(rig: Rig, end: str) -> None:
    """The secret is in no file: with what is in the WAL, after a checkpoint, in a backup, after the end."""
    assert_nowhere(rig)
    rig.checkpoint()
    assert_nowhere(rig)
    assert SECRET not in archived(rig)
    assert_nowhere(rig)
    getattr(rig, end)()
    assert_nowhere(rig)
    rig.checkpoint()
    assert_nowhere(rig)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("before", CLASSES)
def test_records_written_while_ephemeral_are_in_no_file(before: str, end: str) -> None:
    rig = Rig()
    rig.configure("odd", durability=before)
    rig.write("odd", 1, 2)
    rig.configure("odd", durability="ephemeral")
    assert rig.write("odd", secret()).first_seq == 3
    at_every_step(rig, end)
    assert rig.data("odd") == [1, 2]
    gap = rig.gaps("odd")[-1]
    assert (gap.gap_from, gap.reason) == (3, Reason.RESTART)
    assert gap.gap_to == 3 or end == "crash", "a power loss skips what may have been acked besides"
    assert rig.write("odd", 4).first_seq > 3


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("after", CLASSES)
def test_records_of_a_topic_that_became_durable_stay_out(after: str, end: str) -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", secret())
    rig.configure("odd", merge=True, durability=after)
    rig.write("odd", 2)
    assert len(rig.data("odd")) == 2
    at_every_step(rig, end)
    assert rig.data("odd") == [2] and rig.seqs("odd") == [2]
    gap = rig.gaps("odd")[0]
    assert (gap.gap_from, gap.gap_to, gap.reason) == (1, 1, Reason.RESTART)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("checkpoints", [False, True])
def test_many_changes_keep_stored_records_and_tell_each_gap(checkpoints: bool, end: str) -> None:
    rig = Rig()
    for number in range(5):
        rig.configure("odd", durability="fsync")
        rig.write("odd", number, number)
        rig.configure("odd", durability="ephemeral")
        rig.write("odd", secret(number))
        if checkpoints:
            rig.checkpoint()
    at_every_step(rig, end)
    assert rig.data("odd") == [number for number in range(5) for _ in range(2)]
    assert [(gap.gap_from, gap.gap_to) for gap in rig.gaps("odd")] == [(seq, seq) for seq in range(3, 16, 3)]
    assert rig.log("odd").head_seq == 15
    getattr(rig, end)()
    assert rig.data("odd") == [number for number in range(5) for _ in range(2)]


def test_ephemeral_records_stay_readable_in_the_process_after_checkpoints() -> None:
    rig = Rig()
    rig.configure("odd", durability="disk")
    rig.write("odd", 1)
    rig.configure("odd", durability="ephemeral")
    rig.write("odd", "two")
    rig.configure("odd", durability="disk")
    rig.write("odd", 3)
    for _ in range(3):
        rig.checkpoint()
        assert rig.data("odd") == [1, "two", 3]
    rig.delete("odd", before_seq=3)
    rig.stop()
    assert rig.data("odd") == [3] and rig.gaps("odd") == []


@pytest.mark.parametrize("end", ENDS)
def test_keys_of_ephemeral_writes_are_in_no_file_and_others_stay(end: str) -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync", idempotency_window_ms=1_000_000)
    rig.write("odd", 1, key=IdempotencyKey("kept"))
    for sequence in range(3):
        rig.write("odd", sequence, key=ProducerKey("p", 1, sequence))
    rig.configure("odd", durability="ephemeral", idempotency_window_ms=1_000_000)
    rig.write("odd", 2, key=IdempotencyKey("SECRET-key"))
    rig.write("odd", 2, key=ProducerKey("SECRET-producer", 1, 0))
    for sequence in range(3, 6):
        rig.write("odd", sequence, key=ProducerKey("p", 1, sequence))
    rig.configure("odd", durability="fsync", idempotency_window_ms=1_000_000)
    for sequence in range(6, 9):
        rig.write("odd", sequence, key=ProducerKey("p", 1, sequence))
    at_every_step(rig, end)
    assert rig.write("odd", 1, key=IdempotencyKey("kept")).deduped
    stored = [rig.write("odd", 0, key=ProducerKey("p", 1, sequence)).deduped for sequence in range(9)]
    assert stored == [True] * 3 + [False] * 3 + [True] * 3


@pytest.mark.parametrize("end", ENDS)
def test_stages_of_an_ephemeral_topic_are_in_no_file(end: str) -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.configure("even", durability="fsync")
    rig.stage("s", "odd", secret(1))
    rig.stage("kept", "even", 1)
    rig.stage("gone", "odd", secret(2))
    rig.driver.wait(rig.publish("s", "kept"))
    assert len(rig.data("odd")) == 1 and rig.data("even") == [1]
    at_every_step(rig, end)
    assert rig.data("even") == [1] and rig.data("odd") == []
    with pytest.raises(StageNotFound):
        rig.publish("gone", epoch=2)
    rig.stage("gone", "odd", 3)
    rig.driver.wait(rig.publish("gone", epoch=3))
    assert rig.data("odd") == [3]
    rig.kill()
    assert rig.engine.machine.batches.stages == {}


def test_a_batch_that_was_decided_ends_without_what_was_in_memory() -> None:
    rig = Rig()
    rig.configure("odd", durability="ephemeral")
    rig.configure("even", durability="fsync")
    rig.stage("s", "odd", secret())
    rig.stage("kept", "even", 1)
    rig.publish("s", "kept")
    while not any(batch.answer is None for batch in rig.engine.machine.batches.by_producer.values()):
        rig.engine.flush()
    rig.engine.flush()
    rig.engine.wal.work()
    rig.kill()
    assert rig.data("even") in ([], [1])
    assert not rig.engine.machine.batches.unfinished()
    assert_nowhere(rig)


@pytest.mark.parametrize("first", ["ephemeral", "fsync"])
def test_a_stage_of_another_class_than_its_topic_is_refused(first: str) -> None:
    rig = Rig()
    second = "fsync" if first == "ephemeral" else "ephemeral"
    rig.configure("odd", durability=first)
    rig.stage("s", "odd", 1)
    rig.configure("odd", durability=second)
    with pytest.raises(StageConflict, match="stage its records again"):
        rig.stage("s", "odd", 2)
    if first == "ephemeral":
        with pytest.raises(StageConflict, match="stage its records again"):
            rig.publish("s")
    rig.abort("s")
    rig.stage("s", "odd", 3)
    rig.driver.wait(rig.publish("s"))
    assert rig.data("odd") == [3]


@pytest.mark.parametrize("end", ENDS)
def test_copies_in_an_ephemeral_destination_are_in_no_file(end: str) -> None:
    rig = Rig()
    rig.configure("a", durability="ephemeral")
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", 1)
    rig.work()
    rig.configure("b", durability="ephemeral")
    rig.write("a", *[secret(number) for number in range(300)])
    rig.work()
    assert len(rig.data("b")) == 301
    at_every_step(rig, end)
    assert rig.data("b") == [1] and rig.data("a") == []


@pytest.mark.parametrize("end", ENDS)
def test_an_ephemeral_source_is_stored_where_its_router_leads(end: str) -> None:
    rig = Rig()
    rig.configure("a", durability="fsync")
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", 1)
    rig.configure("a", durability="ephemeral")
    rig.write("a", 2)
    rig.work()
    rig.configure("a", durability="fsync")
    rig.write("a", 3)
    rig.work()
    rig.checkpoint()
    getattr(rig, end)()
    assert rig.data("b") == [1, 2, 3], "the destination is durable, so its copies are"
    assert rig.data("a") == [1, 3]


@pytest.mark.parametrize("end", ENDS)
def test_dead_letters_of_an_ephemeral_queue_are_in_no_file(end: str) -> None:
    rig = QueueRig()
    rig.queue(durability="ephemeral", max_deliveries=1, dead_letter="dead")
    rig.write("q", secret())
    rig.claim("a")
    rig.nack("a", 1)
    rig.claim("a")
    rig.work()
    assert len(rig.data("dead")) == 1
    at_every_step(rig, end)
    assert rig.data("dead") == []


@pytest.mark.parametrize("end", ENDS)
def test_results_for_an_ephemeral_topic_are_in_no_file(end: str) -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.configure("out", durability="ephemeral")
    rig.write("q", 1, 2)
    rig.claim("a")
    rig.complete("a", [1], out="SECRET")
    assert rig.data("out") == ["SECRET"]
    at_every_step(rig, end)
    assert rig.seqs("q") == [2]


def test_a_result_under_way_to_an_ephemeral_topic_is_not_in_a_snapshot() -> None:
    rig = QueueRig()
    rig.queue(durability="fsync")
    rig.configure("out", durability="ephemeral")
    rig.write("q", 1, 2)
    rig.claim("a")
    rig.engine.submit(Complete("q", "a", [1], [result("out", "SECRET")]))
    assert rig.log("q").transit.leaving, "decided, and not landed"
    rig.finish(rig.capture())
    assert_nowhere(rig)
    fork = QueueRig(disk=rig.disk.fork().kill())
    assert_nowhere(fork)
    assert fork.seqs("q") == [2] and fork.data("out") == []


@pytest.mark.parametrize("end", ENDS)
def test_messages_of_a_heap_that_was_ephemeral_meanwhile_are_in_no_file(end: str) -> None:
    rig = HeapRig()
    rig.heap(durability="fsync", partitions=1)
    rig.put(5, 3)
    rig.checkpoint()
    rig.configure("h", merge=True, durability="ephemeral")
    rig.batch(*[("h", NewMessage(payload=b"SECRET", priority=1, partition_key="SECRET")) for _ in range(3)])
    rig.batch(("h", NewMessage(payload=b"SECRET", priority=1, producer_id="SECRET", epoch=1, sequence=1)))
    rig.nack(rig.pop()[0], backoff_ms=0)
    at_every_step(rig, end)
    assert [message.priority for message in rig.pop(most=9)] == [3, 5]
    rig.configure("h", merge=True, durability="fsync")
    rig.put(4)
    rig.stop()
    assert rig.counts()[0] == 3, "leases come back at a clean stop"


@pytest.mark.parametrize("end", ENDS)
def test_a_batch_over_ephemeral_heaps_is_in_no_file(end: str) -> None:
    rig = HeapRig()
    rig.heap("h", durability="ephemeral")
    rig.heap("i", durability="ephemeral")
    rig.batch(*[(name, NewMessage(payload=b"SECRET", priority=1)) for name in ("h", "i")], transaction="t")
    assert rig.counts()[0] == 1
    at_every_step(rig, end)
    assert rig.counts()[0] == 0


@pytest.mark.parametrize("frozen", [False, True])
def test_a_tail_never_holds_both_stored_and_ephemeral_records(frozen: bool) -> None:
    """A batch of a block's size is a run at once; small ones share the tail."""
    rig = Rig()

    def many(item: object) -> list[object]:
        return [item] * (600 if frozen else 2)

    rig.configure("odd", durability="disk")
    rig.write("odd", *many(1))
    rig.configure("odd", durability="ephemeral")
    rig.engine.submit(Append("odd", records(*many("SECRET"))))
    rig.configure("odd", durability="disk")
    rig.write("odd", *many(3))
    at_every_step(rig, "kill")
    assert set(rig.data("odd")) == {1, 3}
