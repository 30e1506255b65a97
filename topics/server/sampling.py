"""The sample of each second: what the counters of the server and the engine have become since the last one.

Nothing is counted for it on the way of a request: it reads what metrics count anyway. Which topics were written to is
known from the logs that the next checkpoint is to store, so that it costs what is active and not what exists. What
takes a look at the disk is looked at every ten seconds, on a thread.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sized
from itertools import accumulate
from typing import Final

from topics.core.auditchain import INTERNAL_TOPICS
from topics.core.log import Log
from topics.engine.engine import Engine
from topics.server.context import Context
from topics.server.storagesize import StorageSize
from topics.server.traffic import RouteTraffic, Traffic
from topics.storage.walmetrics import Histogram

WRITES: Final = frozenset(
    {
        "/v0/topics/{topic}",
        "/v0/topics/{topic}/stage",
        "/v0/publish",
        "/v1/enqueue",
        "/v1/enqueue:batch",
        "/v1/enqueue/batch",
        "/v0/ws publish",
    }
)
READS: Final = frozenset({"/v0/topics/{topic}/diff", "/v0/sql", "/v1/peek"})
DELIVERIES: Final = frozenset(
    {"/v0/topics/{topic}/claim", "/v0/topics/{topic}/groups/{group}/consume", "/v1/pop", "/v0/topics/{topic}/work"}
)
LOGS_MAX: Final = 5000
"""Active logs that one sample looks at; the others are looked at when there are fewer."""
TOPICS_MAX: Final = 1000
FADING: Final = 0.8
"""What a topic's rate keeps from one second to the next."""
US_PER_MS: Final = 1000


class Sampler:
    def __init__(self, context: Context, connections: Sized) -> None:
        self._context = context
        self._connections = connections
        self._before: dict[str, float] = {}
        self._histograms: dict[str, list[int]] = {}
        self._seqs: dict[int, int] = {}
        self._born_id = 0
        self.rates: dict[str, float] = {}
        """Records a second of the topics that were written to lately."""

    def begin(self, engine: Engine) -> None:
        """What was there before the first sample is not what came in it."""
        self._seqs = {log_id: log.next_seq for log_id, log in engine.machine.logs.items()}
        self._born_id = engine.machine.next_log_id

    def sample(self, engine: Engine, elapsed_s: float, storage: StorageSize) -> dict[str, float]:
        context, totals = self._context, engine.machine.totals
        counts = _requests(context.traffic)
        values = {name: self._per_second(name, count, elapsed_s) for name, count in counts.items()}
        values["errors"] = self._per_second("errors", sum(context.traffic.errors.values()), elapsed_s)
        values["records"] = self._records(engine) / elapsed_s
        values |= self._latencies("write", (route.duration_us for route in _routes(context.traffic, WRITES)))
        values |= self._latencies("read", (route.duration_us for route in _routes(context.traffic, READS)))
        shards = [engine.wal.metrics(shard) for shard in range(engine.wal.shards)]
        values["wal_bytes"] = self._per_second("wal_bytes", sum(each.bytes_written for each in shards), elapsed_s)
        values["syncs"] = self._per_second("syncs", sum(each.fsyncs for each in shards), elapsed_s)
        values |= self._latencies("sync", (each.sync_us for each in shards))
        return values | {
            "connections": float(len(self._connections)),
            "streams": float(context.quota.stream_count),
            "loop_lag": float(context.throttle.lag_ms),
            "admitted": float(context.throttle.share),
            "records_live": float(totals.count),
            "bytes_live": float(totals.bytes),
            "wal_disk": float(storage.wal_bytes),
            "hot_disk": float(storage.hot_bytes),
            "cold_disk": float(storage.cold_bytes),
            "free_disk": float(storage.free_bytes),
        }

    def _per_second(self, name: str, count: float, elapsed_s: float) -> float:
        before = self._before.get(name, count)
        self._before[name] = count
        return max(0.0, count - before) / elapsed_s

    def _records(self, engine: Engine) -> int:
        """Records that came since the last sample, and what each topic got of them."""
        logs, came = engine.machine.logs, 0
        rates = {topic: rate * FADING for topic, rate in self.rates.items() if rate * FADING > 0.05}
        for log_id in list(engine.checkpointer.dirty)[:LOGS_MAX]:
            log = logs.get(log_id)
            if log is None or log.topic in INTERNAL_TOPICS:
                self._seqs.pop(log_id, None)
                continue
            new = self._new_in(log)
            came += new
            if new and (log.topic in rates or len(rates) < TOPICS_MAX):
                rates[log.topic] = rates.get(log.topic, 0.0) + new * (1 - FADING)
        self.rates = rates
        return came

    def _new_in(self, log: Log) -> int:
        before = self._seqs.get(log.log_id, 1 if log.log_id >= self._born_id else log.next_seq)
        self._seqs[log.log_id] = log.next_seq
        return log.next_seq - before

    def _latencies(self, name: str, histograms: Iterable[Histogram]) -> dict[str, float]:
        """The median and the 99th percentile of what was measured since the last sample; nothing when nothing was."""
        found = list(histograms)
        if not found:
            return {}
        counts = [sum(column) for column in zip(*(each.counts for each in found), strict=True)]
        before = self._histograms.get(name, counts)
        self._histograms[name] = counts
        new = [max(0, now - then) for now, then in zip(counts, before, strict=True)]
        if not sum(new):
            return {}
        bounds = (*found[0].bounds, 2 * found[0].bounds[-1])
        return {f"{name}_p50": _quantile(new, bounds, 0.5), f"{name}_p99": _quantile(new, bounds, 0.99)}


def _quantile(counts: list[int], bounds: tuple[int, ...], share: float) -> float:
    """The bound that so large a share lies below, in milliseconds."""
    seen = list(accumulate(counts))
    return bounds[bisect_left(seen, share * seen[-1])] / US_PER_MS


def _requests(traffic: Traffic) -> dict[str, int]:
    counts = {"requests": 0, "writes": 0, "reads": 0, "deliveries": 0}
    for route in traffic.routes.values():
        counts["requests"] += route.requests
        for kind, paths in (("writes", WRITES), ("reads", READS), ("deliveries", DELIVERIES)):
            if route.path in paths and route.method != "GET":
                counts[kind] += route.requests
    return counts


def _routes(traffic: Traffic, paths: frozenset[str]) -> list[RouteTraffic]:
    return [route for route in traffic.routes.values() if route.path in paths and route.method == "POST"]
