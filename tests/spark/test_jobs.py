from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pytest

import topics
from tests.spark.rig import fill, rows, schema_of, source
from topics.errors import InvalidRequest
from topics.spark.options import parse_options
from topics.spark.outgoing import Outgoing
from topics.spark.server import Server
from topics.spark.staging import Staging
from topics.testing.served import RunningServer

LEASE_MS = 1000


def prepared(server: RunningServer) -> None:
    """Six jobs: one done, one dead, one leased, one given back, one for later, one untouched."""
    with server.client() as client:
        queue = client.queue("jobs", node="w")
        queue.create(max_deliveries=1, dead_letter="jobs.dead", lease_ms=LEASE_MS)
        queue.put_many([{"data": number, "meta": {"k": str(number)}, "tag": f"t{number}"} for number in (1, 2)])
        done, _ = queue.claim(2)
        done.ack()
        server.pass_time(LEASE_MS + 1)
        assert queue.claim(1) == [], "what was delivered once is dead now"
        client.topic("jobs").configure(max_deliveries=0)
        queue.put_many([{"data": number} for number in (3, 4)])
        _, back = queue.claim(2)
        back.nack(delay_ms=0)
        queue.put(5, delay_ms=60_000)
        queue.put(6)
    fill(server, "jobs.dead", "somebody else's")


def shown(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in ("topic", "seq", "state", "attempts", "data", "tag", "meta")) for row in found]


def test_jobs_and_their_states(topics_server: RunningServer) -> None:
    prepared(topics_server)
    assert shown(rows(topics_server, "jobs")) == [
        ("jobs", 3, "leased", 1, "3", None, None),
        ("jobs", 4, "ready", 1, "4", None, None),
        ("jobs", 5, "delayed", 0, "5", None, None),
        ("jobs", 6, "ready", 0, "6", None, None),
        ("jobs", 2, "dead", 1, "2", "t2", '{"k":"2"}'),
    ]
    topics_server.pass_time(LEASE_MS + 1)
    assert rows(topics_server, "jobs")[0]["state"] == "ready", "leases end by time"


def test_a_log_has_no_states(topics_server: RunningServer) -> None:
    fill(topics_server, "log", 1)
    assert "state" not in schema_of(source(topics_server, "log")).names
    with topics_server.client() as client:
        client.queue("jobs").create()
    both = rows(topics_server, "log,jobs")
    assert [(row["topic"], row["state"], row["attempts"]) for row in both] == [("log", None, None)]


async def _enqueued(url: str) -> None:
    """Six messages: one taken, one that failed once, one that is dead, one that is more urgent now, one for later."""
    async with topics.connect(url) as client:
        heap = client.heap("best", consumer="w")
        await heap.create(mode="max", max_retries=3)
        for name, priority in (("failed", 99), ("taken", 9), ("plain", 0), ("urgent", 1)):
            await heap.enqueue({"name": name}, priority=priority, meta={"k": name})
        dead = await heap.enqueue(b"\xff", priority=-4)
        await heap.enqueue("later", delay_ms=60_000)
        (failed,) = await heap.take()
        await heap.nack([failed.lease_token], backoff_ms=0)
        (again,) = await heap.take()
        await heap.nack([again.lease_token], backoff_ms=600_000)
        await heap.take()
        await heap.move_to_dlq(dead.message_id, reason="no JSON")
        (urgent,) = [message for message in (await heap.peek()).messages if message.priority == 1]
        await heap.reprioritize(urgent.message_id, 77)


def test_messages_of_a_heap(topics_server: RunningServer) -> None:
    asyncio.run(_enqueued(topics_server.url))
    made = source(topics_server, "best,best.dlq")
    assert schema_of(made).fieldNames()[-3:] == ["state", "attempts", "priority"]
    found = rows(topics_server, "best")
    assert [tuple(row[name] for name in ("topic", "data", "state", "attempts", "priority")) for row in found] == [
        ("best", '{"name":"failed"}', "delayed", 2, 99),
        ("best", '{"name":"taken"}', "leased", 0, 9),
        ("best", '{"name":"plain"}', "ready", 0, 0),
        ("best", '{"name":"urgent"}', "ready", 0, 77),
        ("best", '"later"', "delayed", 0, 0),
        ("best", '"/w=="', "dead", 0, -4),
    ]
    fill(topics_server, "log", 1)
    assert [row["priority"] for row in rows(topics_server, "log,best") if row["topic"] == "log"] == [None]


def test_priorities_are_written_to_heaps(topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        client.topic("best").create(type="heap")
        client.topic("log").create()
    server = Server(topics_server.url, "", 10_000)
    columns = {
        "data": ["1", "2", "3", "4", "5"],
        "priority": pa.array([5, -7, 0, None, 2**63 - 1], pa.int64()),
        "meta": ['{"k": "v"}', " { }", None, '{"x":"y"}', None],
    }
    batch = pa.RecordBatch.from_pydict(columns)
    staging = Staging(server)
    for target, records in Outgoing(parse_options({"url": topics_server.url, "topic": "best"}), server).split(batch):
        staging.add(target, records)
    staging.flush()
    server.publish(staging.stages, "job", 0)
    found = [(row["data"], row["priority"], row["meta"]) for row in rows(topics_server, "best")]
    assert found == [
        ("1", 5, '{"$priority":"5","k": "v"}'),
        ("2", -7, '{"$priority":"-7"}'),
        ("3", 0, None),
        ("4", 0, '{"x":"y"}'),
        ("5", 2**63 - 1, '{"$priority":"9223372036854775807"}'),
    ]
    with pytest.raises(InvalidRequest, match='column priority is for heaps, and topic "log" is a log'):
        list(Outgoing(parse_options({"url": topics_server.url, "topic": "log"}), server).split(batch))
    server.close()
