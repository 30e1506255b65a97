from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import topics
from tests.client.rig import GUARD_SECONDS
from topics import Gap, Reason, Record, errors, sync, testing


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


PAIRS = [
    (sync.Client, topics.Client),
    (sync.Topic, topics.Topic),
    (sync.Producer, topics.Producer),
    (sync.TopicProducer, topics.TopicProducer),
    (sync.Group, topics.Group),
    (sync.Queue, topics.Queue),
    (sync.Heap, topics.Heap),
    (sync.Message, topics.Message),
    (sync.Router, topics.Router),
    (sync.Table, topics.Table),
    (sync.Pipeline, topics.Pipeline),
    (sync.Job, topics.Job),
    (sync.Keys, topics.Keys),
    (sync.Users, topics.Users),
    (sync.Sessions, topics.Sessions),
    (sync.Audit, topics.Audit),
]


@pytest.mark.parametrize(("plain", "original"), PAIRS)
def test_the_plain_face_has_the_same_names_words_and_parameters(plain: type, original: type) -> None:
    assert public(plain) == public(original)
    for name in public(original):
        here, there = getattr(plain, name), getattr(original, name)
        if isinstance(there, property):
            assert here.__doc__ == there.__doc__
            continue
        assert inspect.signature(here).parameters == inspect.signature(there).parameters
        assert not inspect.iscoroutinefunction(here) and not inspect.isasyncgenfunction(here)
        if name != "close":
            assert here.__doc__ == there.__doc__


def test_both_open_alike() -> None:
    assert inspect.signature(sync.open).parameters == inspect.signature(topics.open).parameters
    assert inspect.signature(sync.connect).parameters == inspect.signature(topics.connect).parameters


def test_the_whole_way_without_asyncio(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        orders = client.topic("orders")
        assert (orders.name, repr(orders)) == ("orders", "<Topic orders>")
        assert orders.create(ttl_ms=60_000).created
        done = orders.write({"sku": "A1"}, tag="order-1", node="n1")
        assert (done.first_seq, done.deduped) == (1, False)
        orders.write_many([{"data": {"sku": "B2"}, "tag": "order-2"}])
        page = orders.diff(from_seq=0, limit=500)
        assert [record.tag for record in page.records] == ["order-1", "order-2"]
        assert orders.configure(cap_records=10).config.ttl_ms == 60_000
        assert orders.delete(match="order-1").deleted == 1
        assert orders.state().count == 1
        client.stage("s", "orders", [{"data": "staged"}])
        client.stage("t", "orders", [{"data": "thrown away"}])
        assert client.abort(["t"]).stages == ("t",)
        assert client.publish(["s"], producer=("p", 1)).written[0].first_seq == 3
        assert [state.topic for state in client.topics(prefix="ord")] == ["orders"]
    with sync.open(tmp_path) as client:
        assert client.topic("orders").state().head_seq == 3
        assert client.topic("orders").drop().deleted


def test_jobs_without_asyncio(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        queue = client.queue("jobs", node="me")
        assert (queue.name, queue.node, repr(queue)) == ("jobs", "me", "<Queue jobs>")
        queue.create(max_deliveries=3, dead_letter="dead")
        queue.put_many({"data": number} for number in range(1, 7))
        one, two = queue.claim(2)
        assert [(lease.seq, lease.node) for lease in queue.leases(limit=1).leases] == [(1, "me")]
        assert (one.data, one.seq, one.deliveries, repr(two)) == (1, 1, 1, "<Job jobs/2 delivery 1>")
        with one:
            assert one.extend(60_000)
        with pytest.raises(ValueError, match="no good"), two:
            raise ValueError("no good")
        assert one.settled and two.settled
        (three,) = queue.claim()
        three.complete({"results": [{"data": "three"}]})
        assert client.topic("results").state().count == 1
        assert [job.seq for job in queue.claim(2)] == [4, 5]
        assert queue.extend([4, 9], lease_ms=60_000).skipped == [9]
        assert (queue.ack([4]).acked, queue.nack([5, 4]).skipped) == (1, [4])
        seen = []
        for job in queue.work():
            with job:
                seen.append(job.data)
            if len(seen) == 2:
                break
        assert seen == [5, 6]
        queue.put(7)
        threads: list[str] = []
        worked = queue.run(lambda job: threads.append(threading.current_thread().name), until_empty=True)
        assert worked.done >= 1 and threads[0].startswith("topics job")
        assert queue.redrive(dry_run=True, dead_letter="jobs").moved == 0


def test_an_event_of_threading_stops_a_worker(tmp_path: Path) -> None:
    stop = threading.Event()
    with sync.open(tmp_path) as client:
        queue = client.queue("jobs")
        queue.put("only")
        assert queue.run(lambda job: stop.set(), stop=stop).done == 1


def test_follow_is_a_plain_loop(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        recent = client.topic("recent")
        recent.create(cap_records=2)
        recent.write_many([{"data": n} for n in range(1, 4)])
        seen: list[Record | Gap] = []
        for event in recent.follow():
            seen.append(event)
            if len(seen) == 3:
                break
        assert seen[0] == Gap(1, 1, Reason.CAP)
        assert [event.seq for event in seen if isinstance(event, Record)] == [2, 3]


def test_follow_wakes_for_a_write_of_another_thread(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        orders = client.topic("orders")
        orders.create()
        seen: list[object] = []

        def read() -> None:
            for event in orders.follow():
                assert isinstance(event, Record)
                seen.append(event.data)
                if event.data == "last":
                    return

        reader = threading.Thread(target=read)
        reader.start()
        writers = [threading.Thread(target=orders.write, args=(n,)) for n in range(8)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        orders.write("last")
        reader.join(GUARD_SECONDS)
        assert not reader.is_alive()
        assert (set(seen[:-1]), seen[-1]) == (set(range(8)), "last")


def test_errors_are_the_same(tmp_path: Path) -> None:
    client = sync.open(tmp_path)
    with client:
        with pytest.raises(errors.TopicNotFound):
            client.topic("missing").diff()
        with pytest.raises(errors.DirectoryLocked), sync.open(tmp_path):
            pass
    with pytest.raises(errors.NotReady):
        client.topic("orders").write(1)
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_is_told_that_the_client_is_not_its_own(tmp_path: Path) -> None:
    """In a process of its own: nothing of the tests' is forked. Who leaves `with` in the child closes nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    parent, child = done.stdout.split()[0], done.stdout.splitlines()[1]
    assert child.startswith(f"this client is open in process {parent}, and does nothing in one that was forked from it")
    assert done.stdout.splitlines()[2:] == ["0", "[1, 2]", "own 1"]


FORKING = """
import os, sys, topics
path = sys.argv[1]
print(os.getpid(), flush=True)
with topics.sync.open(path + "/data") as client:
    client.topic("t").write(1)
    pid = os.fork()
    if not pid:
        try:
            client.topic("t").write(3)
        except topics.errors.InvalidRequest as error:
            print(error, flush=True)
        sys.exit(0)
    print(os.waitpid(pid, 0)[1], flush=True)
    client.topic("t").write(2)
    print([record.data for record in client.topic("t").diff().records], flush=True)
unused = topics.sync.open(path + "/child")
pid = os.fork()
if not pid:
    with unused as client:
        print("own", client.topic("t").write(1).last_seq, flush=True)
    sys.exit(0)
os.waitpid(pid, 0)
"""


def test_no_thread_is_left_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with sync.open(tmp_path) as client:
        client.topic("orders").write(1)
        list(client.topics())
        during = set(threading.enumerate())
        with pytest.raises(errors.DirectoryLocked), sync.open(tmp_path):
            pass
        assert set(threading.enumerate()) == during
    left = set(threading.enumerate()) - before
    assert left == set()


def test_the_whole_way_over_http(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with testing.running_server() as server:
        with server.client() as client:
            orders = client.topic("orders")
            assert orders.create(ttl_ms=60_000).created
            orders.write({"sku": "A1"}, tag="order-1")
            with orders.producer(linger_ms=1) as producer:
                delivery = producer.send(b"bytes")
                producer.flush()
                assert delivery.done() and delivery.result().seq == 2
            with client.producer() as producer:
                producer.send("orders", "third")
            assert [record.data for record in orders.diff().records] == [{"sku": "A1"}, b"bytes", "third"]
            cursors = topics.FileCursors(tmp_path / "c")
            for expected in ([1, 2], [2, 3]):
                seen = []
                for event in orders.follow(cursors=cursors, commit_ms=0):
                    assert isinstance(event, Record)
                    seen.append(event.seq)
                    if len(seen) == 2:
                        break
                assert seen == expected
            for name, event in client.follow({"orders": 2}):
                assert (name, event.data) == ("orders", "third")
                break
            with pytest.raises(errors.TopicNotFound):
                client.topic("missing").diff()
        with pytest.raises(errors.ConnectionFailed), sync.connect("http://127.0.0.1:1", attempts_max=1) as client:
            client.topic("orders").write(1)
    assert set(threading.enumerate()) == before


def test_tables_and_pipelines_without_asyncio(tmp_path: Path) -> None:
    with topics.sync.open(tmp_path) as client:
        table = client.table("t")
        assert (table.name, repr(table)) == ("t", "<Table t>")
        assert table.put("delta", "/d", key=["id"]).created
        assert [state.table for state in client.tables()] == ["t"] and table.state().config.key == ("id",)
        client.topic("orders").create()
        pipeline = client.pipeline("p")
        assert (pipeline.name, repr(pipeline)) == ("p", "<Pipeline p>")
        assert pipeline.put("INSERT INTO TOPIC alerts SELECT tag FROM STREAM orders", trigger_ms=5).created
        assert pipeline.pause().paused and not pipeline.resume().paused
        report = topics.PipelineReport(runner="r", state=topics.RunState.RUNNING)
        assert pipeline.report(report, [topics.LogLine(1, "info", "x")]).exists
        assert pipeline.logs() == [topics.LogLine(1, "info", "x")]
        assert [state.report for state in client.pipelines()] == [report] == [pipeline.state().report]
        assert pipeline.drop().deleted and table.drop().deleted


def test_routers_without_asyncio(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        assert client.route("orders", "audit").created
        router = client.router("orders->audit")
        assert (router.name, repr(router)) == ("orders->audit", "<Router orders->audit>")
        client.topic("orders").write(1)
        event = next(client.topic("audit").follow())
        assert isinstance(event, Record) and event.data == 1
        assert [state.router for state in client.routers(dest="audit")] == ["orders->audit"]
        assert router.state().forwarded_total == 1
        assert router.put("orders", "audit", filter="x").config.filter == ("tag", "Eq", "x")
        assert router.drop().deleted


def test_groups_without_asyncio(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        orders = client.topic("orders")
        orders.write_many([{"data": n} for n in range(1, 4)])
        group = orders.group("billing", consumer="me")
        assert (group.name, group.topic, group.consumer) == ("billing", "orders", "me")
        assert (repr(group), orders.group("other").consumer) == ("<Group billing of orders>", "")
        batch = group.take(2)
        assert [record.data for record in batch.records] == [1, 2] and group.ack(batch).committed_seq == 2
        for batch in group.consume():
            assert [record.data for record in batch.records] == [3]
            break
        assert [state.group for state in orders.groups()] == ["billing"]
        assert group.pause().paused and not group.resume().paused and group.drop().deleted


def test_heaps_without_asyncio(tmp_path: Path) -> None:
    with sync.open(tmp_path) as client:
        heap = client.heap("jobs", consumer="me")
        assert (heap.name, heap.consumer, repr(heap)) == ("jobs", "me", "<Heap jobs>")
        assert client.heap("jobs").consumer != client.heap("jobs").consumer, "made up for each"
        heap.create()
        heap.enqueue_many([{"payload": n, "priority": n} for n in (2, 1, 3)])
        (first,) = heap.take()
        with first:
            assert first.data == 1
        for message in heap.pop():
            assert message.data == 2 and message.ack()
            break
        assert heap.stats().total_messages == 1
