"""A server that has something of everything, for pages that show it."""

from __future__ import annotations

from typing import Final

from topics import LogLine, PipelineReport, RunState, sync

TOPIC: Final = "orders"
COPY: Final = "orders-eu"
QUEUE: Final = "mails"
DEAD: Final = "mails-dead"
HEAP: Final = "builds"
GROUP: Final = "billing"
TABLE: Final = "customers"
PIPELINE: Final = "big-orders"

PARAMS: Final = {
    "/topics/:topic": {"topic": TOPIC},
    "/groups/:topic/:group": {"topic": TOPIC, "group": GROUP},
    "/queues/:topic": {"topic": QUEUE},
    "/heaps/:topic": {"topic": HEAP},
    "/dead/:topic": {"topic": HEAP},
    "/pipelines/:name": {"name": PIPELINE},
}
"""What stands for the parts of a path that are names."""


def address(path: str) -> str:
    """Where a view is, once there is something of everything."""
    for name, value in PARAMS.get(path, {}).items():
        path = path.replace(f":{name}", value)
    return path


def fill(url: str) -> None:
    with sync.connect(url) as client:
        _fill_topics(client)
        _fill_queue(client)
        _fill_heap(client)
        _fill_catalog(client)


def _fill_topics(client: sync.Client) -> None:
    topic = client.topic(TOPIC)
    topic.write_many(
        {"data": {"sku": f"A{number}", "cents": 125 * number}, "tag": f"customer-{number % 7}", "node": "shop"}
        for number in range(200)
    )
    topic.delete(match="customer-3")
    client.router(f"{TOPIC}->{COPY}").put(TOPIC, COPY, backfill=True)
    group = topic.group(GROUP, consumer="billing-1")
    group.take(5)
    topic.report_archive("lake", 120, location="lake/orders")


def _fill_queue(client: sync.Client) -> None:
    queue = client.queue(QUEUE, node="worker-1")
    queue.create(max_deliveries=1, dead_letter=DEAD)
    queue.put_many({"data": {"to": f"person{number}@example.org"}, "tag": "welcome"} for number in range(40))
    queue.nack([job.seq for job in queue.claim(5)])
    queue.claim(3)


def _fill_heap(client: sync.Client) -> None:
    heap = client.heap(HEAP, consumer="builder-1", producer="ci")
    heap.create(max_retries=0)
    heap.enqueue_many({"payload": {"commit": number}, "priority": number * number % 97} for number in range(60))
    heap.nack([message.lease_token for message in heap.take(4)], reason="the compiler was not there")
    heap.take(2)


def _fill_catalog(client: sync.Client) -> None:
    client.table(TABLE).put("delta", "lake/customers", key=["id"])
    pipeline = client.pipeline(PIPELINE)
    pipeline.put(f"INSERT INTO TOPIC big SELECT data FROM STREAM {TOPIC} WHERE tag = 'customer-1'")
    report = PipelineReport(runner="runner-1", state=RunState.RUNNING, position="200", last_error=None)
    pipeline.report(report, [LogLine(1, "info", "began")])
