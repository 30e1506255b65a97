"""Which commands a log takes when its disk is behind or gone."""

from __future__ import annotations

import pytest

from tests.engine.heaprig import HeapRig, refs
from tests.engine.queuerig import QueueRig, result
from tests.engine.rig import with_wal
from topics.core.commands import Ack, Append, Complete, Configure, Drop, Nack, Redrive, Release
from topics.core.heapcommands import AckMessages
from topics.core.records import Records
from topics.engine import admission
from topics.errors import LogStopped, Throttled, TopicNotFound
from topics.heapmodel import LeaseRef


def test_the_logs_of_a_completion_are_its_queue_and_all_its_targets() -> None:
    rig = QueueRig()
    rig.queue()
    rig.configure("out")
    machine = rig.engine.machine
    command = Complete("q", "a", [1], [result("out", 1), result("new", 1)])
    assert admission.written_by(machine, command) == [1, 2, 0, 3]
    assert admission.written_by(machine, Ack("q", "a", [1])) == [1]
    assert admission.written_by(machine, Redrive("nowhere")) == []


def test_the_logs_of_leases_are_those_that_their_tokens_name() -> None:
    rig = HeapRig()
    rig.heap(partitions=3)
    rig.put(1, partition=2)
    machine, leases = rig.engine.machine, refs(rig.pop())
    (log_id,) = admission.written_by(machine, AckMessages("h", leases))
    assert machine.logs[log_id].partition == 2
    assert admission.written_by(machine, AckMessages("h", [LeaseRef("no token", "")])) == []
    assert admission.written_by(machine, AckMessages("nowhere", leases)) == []
    with pytest.raises(TopicNotFound):
        rig.engine.submit(AckMessages("nowhere", leases))


def test_a_full_disk_queue_holds_back_claims_and_never_acks() -> None:
    rig = QueueRig(with_wal(queue_bytes_max=4096))
    rig.queue()
    rig.write("q", *range(3))
    rig.claim("a", 2)
    for _ in range(100):
        try:
            rig.engine.submit(Append("q", Records.of([{"data": "x" * 900}])))
        except Throttled:
            break
    with pytest.raises(Throttled):
        rig.ask("b")
    with pytest.raises(Throttled):
        rig.engine.submit(Complete("q", "a", [1], [result("out", 1)]))
    acked, released = rig.engine.submit(Ack("q", "a", [1])), rig.engine.submit(Nack("q", "a", [2]))
    rig.engine.submit(Release("q", 5))
    rig.work()
    assert acked.done and released.done


def test_nothing_is_taken_by_a_log_whose_disk_failed() -> None:
    rig = QueueRig()
    rig.queue()
    rig.write("q", 1)
    rig.claim("a")
    rig.work()
    rig.fs.fail("write_at", path="*/1-*.wal", always=True)
    rig.engine.submit(Nack("q", "b", [1]))
    rig.engine.submit(Append("q", Records.of([{"data": 1}])))
    rig.work()
    for command in (Ack("q", "a", [1]), Nack("q", "a", [1]), Complete("q", "a", [1], [result("out", 1)])):
        with pytest.raises(LogStopped):
            rig.engine.submit(command)
    assert rig.counts() == (0, 1, 0, 0)
    rig.engine.submit(Configure("elsewhere", {}))
    rig.engine.submit(Drop("elsewhere"))
