from __future__ import annotations

from typing import Any

from tests.spark.rig import fill, rows, schema_of, source
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
