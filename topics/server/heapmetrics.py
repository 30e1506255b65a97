"""What a scrape tells of heaps: ours, and under the names that dashboards of the heaps' specification ask for.

A bounded number of partitions, of heaps that the one who asks may see. Names that are about several machines are not
there on one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topics.engine.engine import Engine
from topics.heapmodel import HeapInfo, HeapStats
from topics.server.exposition import Family, counter, gauge, histogram
from topics.server.heaplatency import SAMPLE, HeapLatency
from topics.server.principal import Principal

PARTITIONS_SHOWN_MAX: Final = 1000
"""Partitions in the families by heap; those of the first names, when there are more."""
PAGE: Final = 100

_TOTALS: Final = (
    ("topics_heap_enqueues_total", "Messages enqueued.", "total_enqueues"),
    ("topics_heap_pops_total", "Messages handed out.", "total_pops"),
    ("topics_heap_acks_total", "Messages done.", "total_acks"),
    ("topics_heap_nacks_total", "Messages given back.", "total_nacks"),
    ("topics_heap_retries_total", "Messages handed out again.", "total_retries"),
    ("topics_heap_timeouts_total", "Leases that ran out.", "total_timeouts"),
    ("topics_heap_dead_lettered_total", "Messages given up as dead letters.", "total_dead_lettered"),
    ("retries_total", "The same as topics_heap_retries_total.", "total_retries"),
    ("dlq_total", "The same as topics_heap_dead_lettered_total.", "total_dead_lettered"),
    ("lease_timeouts_total", "The same as topics_heap_timeouts_total.", "total_timeouts"),
)
_GAUGES: Final = (
    ("topics_heap_ready", "Messages that can be popped.", "ready_messages"),
    ("topics_heap_in_flight", "Messages that are leased.", "in_flight_messages"),
    ("topics_heap_delayed", "Messages whose time has not come.", "delayed_messages"),
    ("topics_heap_dead_letters", "Dead letters.", "dlq_messages"),
    ("inflight", "The same as topics_heap_in_flight.", "in_flight_messages"),
)


def of_heaps(engine: Engine, principal: Principal, latency: HeapLatency) -> Iterator[Family]:
    shown, truncated = _shown(engine, principal)
    for make, table in ((gauge, _GAUGES), (counter, _TOTALS)):
        for name, doc, field in table:
            family = make(name, doc)
            for info in shown:
                family.add(getattr(info.stats or HeapStats(), field), ("topic", info.topic))
            yield family
    messages = gauge("topics_heap_messages", "Messages that are not done, by partition.")
    backlog = gauge("backlog", "The same as topics_heap_messages.")
    for info in shown:
        for part in (info.stats or HeapStats()).partitions:
            labels = (("topic", info.topic), ("partition", str(part.partition)))
            messages.add(part.messages, *labels)
            backlog.add(part.messages, *labels)
    yield from (messages, backlog)
    yield from _latencies(principal, latency)
    yield gauge("topics_heap_pops_waiting", "Pops that wait for a message.", engine.heaps.waiting_count())
    yield gauge("topics_heap_streams", "Streams that messages are pushed to.", engine.heaps.stream_count())
    yield gauge("snapshot_bytes", "Bytes of the newest snapshot, of all topics.", engine.store.snapshots.size_bytes)
    written = sum(engine.wal.metrics(shard).bytes_written for shard in range(engine.wal.shards))
    yield counter("wal_bytes_written_total", "The same as topics_wal_bytes_written_total.", written)
    doc = "Whether there are more heaps than the families by heap show."
    yield gauge("topics_heap_metrics_truncated", doc, int(truncated))


def _latencies(principal: Principal, latency: HeapLatency) -> Iterator[Family]:
    enqueue = histogram("enqueue_latency_ms", f"Milliseconds to the answer of an enqueue, of one in {SAMPLE}.")
    for topic, found in latency.enqueue_ms():
        if principal.may_touch(topic):
            enqueue.add(found, ("topic", topic))
    pop = histogram("pop_latency_ms", f"Milliseconds to the answer of a pop that found messages, of one in {SAMPLE}.")
    for topic, found in latency.pop_ms():
        if principal.may_touch(topic):
            pop.add(found, ("topic", topic))
    yield from (enqueue, pop)


def _shown(engine: Engine, principal: Principal) -> tuple[list[HeapInfo], bool]:
    shown: list[HeapInfo] = []
    partition_count = 0
    after = ""
    while page := engine.heaps.list("", after, PAGE):
        after = page[-1].topic
        for info in page:
            if principal.may_touch(info.topic):
                partition_count += info.config.partitions
                if partition_count > PARTITIONS_SHOWN_MAX:
                    return shown, True
                shown.append(info)
    return shown, False
