from __future__ import annotations

from tests.engine.queuerig import QueueRig, Worker


def test_what_is_out_is_counted_over_all_queues() -> None:
    rig = QueueRig()
    rig.queue(lease_ms=1000)
    rig.queue("p")
    rig.queue("idle")
    rig.write("q", 1, 2, 3)
    rig.write("p", 1, 2)
    leasing = rig.engine.leasing
    assert leasing.in_flight_count() == 0
    rig.claim("a", 2)
    worker = Worker(rig, "b", 9, "p")
    rig.work()
    assert worker.got == [1, 2]
    assert leasing.in_flight_count() == 4
    rig.ack("a", 1)
    assert leasing.in_flight_count() == 3
    rig.clock.advance(1001)
    assert leasing.in_flight_count() == 2, "time alone frees a job"
    worker.stream.close()
    assert leasing.in_flight_count() == 0


def test_it_is_the_same_after_a_restart_and_after_a_drop() -> None:
    rig = QueueRig()
    rig.queue(partitions=2)
    rig.write("q", 1, 2, partition=0)
    rig.claim("a", 2)
    rig.kill()
    assert rig.engine.leasing.in_flight_count() == 2, "replayed from the WAL"
    rig.stop()
    assert rig.engine.leasing.in_flight_count() == 2, "restored from a snapshot"
    rig.drop("q")
    assert rig.engine.leasing.in_flight_count() == 0
