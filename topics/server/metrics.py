"""What a scrape tells: of the process, of the topics, of the WAL and of the requests.

A scrape costs a bounded amount of work and changes nothing: it does not count as reading a topic, and what would need
a look at every topic is kept as a count by the registry. While the directory is being recovered only the process is
described; what the engine would know is left out rather than told as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topics.core.registry import Registry, Topic
from topics.engine.engine import Engine
from topics.model import Durability, TopicState, TopicType
from topics.server.context import Context
from topics.server.exposition import Family, counter, gauge, histogram
from topics.server.groupmetrics import of_groups
from topics.server.heapmetrics import of_heaps
from topics.server.pipelinemetrics import of_pipelines
from topics.server.principal import Principal
from topics.server.routermetrics import of_routers
from topics.server.traffic import SAMPLE
from topics.storage.commitlog import CommitLog
from topics.storage.walmetrics import Histogram, ShardMetrics

LOGS_SHOWN_MAX = 1000
"""Partitions in the block by topic; those of the first names, when there are more."""


def collect(context: Context, principal: Principal) -> list[Family]:
    """All families, as the one who asks may see them: other names than its prefixes allow are not shown."""
    families = [*_process(context), *_requests(context)]
    if context.host is not None:
        engine = context.host.engine
        families += _totals(engine)
        families += _by_topic(engine, principal)
        families += of_routers(engine, principal)
        families += of_pipelines(engine, principal)
        families += of_groups(engine, principal)
        families += of_heaps(engine, principal, context.heap_latency)
        families += _checkpoints(engine)
        families += _backups(engine)
        families += _wal(engine.wal)
    return families


def _process(context: Context) -> Iterator[Family]:
    ready = context.host is not None and not context.draining
    progress = 1.0 if context.host is not None else context.recovery_progress
    yield gauge("topics_ready", "Whether the server takes requests.", int(ready))
    yield gauge("topics_recovery_progress", "Share of the write-ahead log replayed since the start.", progress)
    uptime_ms = max(0, context.clock.now_ms() - context.started_ms)
    yield gauge("topics_uptime_ms", "Milliseconds since the process started.", uptime_ms)
    yield gauge("topics_loop_lag_ms", "How late the last beat of the event loop came.", context.throttle.lag_ms)
    yield gauge("topics_throttle_share", "Share of the writes that the throttle admits.", context.throttle.share)
    yield counter("topics_throttled_total", "Writes refused by the throttle.", context.throttle.refused)
    yield gauge(
        "topics_sse_connections", "Event streams, WebSockets and gRPC streams open.", context.quota.stream_count
    )
    yield gauge("topics_watch_sessions", "Watch sessions.", len(context.sessions))


def _requests(context: Context) -> Iterator[Family]:
    requests = counter("topics_http_requests_total", "Requests, by route.")
    durations = histogram(
        "topics_http_request_duration_us", f"Microseconds to the answer, of one in {SAMPLE} requests."
    )
    for route in context.traffic.routes.values():
        labels = (("method", route.method), ("route", route.path))
        requests.add(route.requests, *labels)
        durations.add(route.duration_us, *labels)
    errors = counter("topics_http_errors_total", "Answers that were errors, by status and code.")
    for (status, code), count in context.traffic.errors.items():
        errors.add(count, ("status", str(status)), ("code", code))
    yield from (requests, durations, errors)


def _totals(engine: Engine) -> Iterator[Family]:
    machine = engine.machine
    yield gauge("topics_topics", "Topics.", len(machine.topics))
    by_class = gauge("topics_topics_by_class", "Topics by durability class.")
    for durability in Durability:
        by_class.add(machine.topics.by_class[durability], ("class", durability.value))
    yield by_class
    yield gauge("topics_records_live", "Records retained in all topics and stages.", machine.totals.count)
    yield gauge("topics_bytes_live", "Bytes of data and meta retained in all topics and stages.", machine.totals.bytes)
    doc = "Records evicted although an archive or a group needed them."
    yield counter("topics_overrun_records_total", doc, machine.totals.overrun_count)
    yield counter("topics_clock_jumps_total", "Jumps of the wall clock since the start.", engine.time.jumps)
    doc = "Milliseconds that the wall clock is ahead of the server's time; negative when it is behind."
    yield gauge("topics_clock_ahead_ms", doc, engine.time.ahead_ms)
    yield gauge("topics_stages", "Stages waiting to be published.", len(machine.batches.stages))
    yield gauge("topics_queue_topics", "Topics that are queues.", machine.topics.by_type[TopicType.QUEUE])
    yield gauge("topics_queue_leases_in_flight", "Jobs leased in all queues.", engine.leasing.in_flight_count())
    yield gauge("topics_queue_claims_waiting", "Claims that wait for a job.", engine.claiming.waiting_count())
    yield gauge("topics_queue_streams", "Workers to which jobs are pushed.", engine.claiming.stream_count())


def _by_topic(engine: Engine, principal: Principal) -> Iterator[Family]:
    """One sample a topic, or one a partition where there are several."""
    head = gauge("topics_topic_head_seq", "Highest assigned seq per topic.")
    earliest = gauge("topics_topic_earliest_seq", "Lowest retained seq per topic.")
    records = gauge("topics_topic_records_live", "Records retained per topic.")
    size = gauge("topics_topic_bytes_live", "Bytes of data and meta retained per topic.")
    ready = gauge("topics_topic_queue_ready", "Jobs nobody holds, per queue.")
    in_flight = gauge("topics_topic_queue_in_flight", "Jobs leased, per queue.")
    delayed = gauge("topics_topic_queue_delayed", "Jobs whose time has not come, per queue.")
    dead_lettered = counter("topics_topic_queue_dead_lettered_total", "Jobs given up as dead letters, per queue.")
    behind = gauge("topics_topic_archive_behind", "Seqs that an archive has yet to take, per topic and archive.")
    overrun = counter("topics_topic_overrun_records_total", "Records evicted although they were needed, per topic.")
    states, truncated = _states(engine, principal)
    for state in states:
        labels: tuple[tuple[str, str], ...] = (("topic", state.topic),)
        if state.partitions > 1:
            labels += (("partition", str(state.partition)),)
        head.add(state.head_seq, *labels)
        earliest.add(state.earliest_seq, *labels)
        records.add(state.count, *labels)
        size.add(state.bytes, *labels)
        if state.queue is not None:
            ready.add(state.queue.ready, *labels)
            in_flight.add(state.queue.in_flight, *labels)
            delayed.add(state.queue.delayed, *labels)
            dead_lettered.add(state.queue.dead_lettered, *labels)
        for archive in state.archives:
            behind.add(archive.behind, *labels, ("archive", archive.archive))
        if state.holding is not None:
            overrun.add(state.holding.overrun_count, *labels)
    yield from (head, earliest, records, size, ready, in_flight, delayed, dead_lettered, behind, overrun)
    doc = "Whether there are more topics than the families by topic show."
    yield gauge("topics_topic_metrics_truncated", doc, int(truncated))


def _states(engine: Engine, principal: Principal) -> tuple[list[TopicState], bool]:
    states: list[TopicState] = []
    for topic in _visible(engine.machine.topics, principal, LOGS_SHOWN_MAX + 1):
        for partition in range(topic.config.partitions):
            if len(states) == LOGS_SHOWN_MAX:
                return states, True
            states.append(engine.state(topic.name, partition, touch=False))
    return states, False


def _visible(topics: Registry, principal: Principal, most: int) -> Iterator[Topic]:
    """The first topics of each of a key's prefixes, none of them twice."""
    within: tuple[str, ...] = ()
    for prefix in sorted(principal.prefixes) or [""]:
        if not prefix.startswith(within):
            within += (prefix,)
            yield from topics.page("", prefix, most)


def _checkpoints(engine: Engine) -> Iterator[Family]:
    failed = int(engine.checkpoint_error is not None)
    yield gauge(
        "topics_checkpoint_failed", "Whether the last checkpoint failed; the WAL grows until one does not.", failed
    )
    doc = "What the last checkpoint could not clean up; the next one tries again."
    yield gauge("topics_checkpoint_problems", doc, len(engine.problems))


def _backups(engine: Engine) -> Iterator[Family]:
    pins = engine.store.pins
    yield gauge("topics_backup_running", "Whether a backup is being read.", int(pins is not None))
    doc = "Bytes of files that only the running backup needs."
    yield gauge("topics_backup_held_bytes", doc, 0 if pins is None else pins.held_bytes)
    doc = "The moment of the last backup that was read to its end, ms since 1970; 0 for none since the start."
    yield gauge("topics_backup_last_ms", doc, engine.last_backup_ms)


def _wal(wal: CommitLog) -> Iterator[Family]:
    shards = [wal.metrics(shard) for shard in range(wal.shards)]
    for name, doc, value in _wal_counters(shards):
        yield counter(f"topics_wal_{name}_total", doc, value)
    yield gauge("topics_wal_queue_depth", "Groups waiting to be written.", sum(each.queue_depth for each in shards))
    yield gauge(
        "topics_wal_queue_depth_peak",
        "Most groups that ever waited in a shard.",
        max(each.queue_depth_peak for each in shards),
    )
    yield gauge("topics_wal_queue_bytes", "Bytes waiting to be written.", sum(each.queue_bytes for each in shards))
    yield gauge(
        "topics_wal_queue_bytes_peak",
        "Most bytes that ever waited in a shard.",
        max(each.queue_bytes_peak for each in shards),
    )
    doc = "Whether a shard has stopped after a failed write and takes no more until a restart."
    yield gauge("topics_wal_read_only", doc, int(any(each.read_only for each in shards)))
    by_shard = gauge("topics_wal_shard_read_only", "The same, shard by shard.")
    for number, each in enumerate(shards):
        by_shard.add(int(each.read_only), ("shard", str(number)))
    yield by_shard
    doc = "Microseconds of a sync of the write-ahead log."
    yield histogram("topics_wal_fsync_latency_us", doc, _summed(each.sync_us for each in shards))


def _wal_counters(shards: list[ShardMetrics]) -> Iterator[tuple[str, str, int]]:
    yield "frames", "Entries written.", sum(each.frames for each in shards)
    yield "batches", "Writes, each of many entries.", sum(each.batches for each in shards)
    yield "fsyncs", "Syncs.", sum(each.fsyncs for each in shards)
    yield "bytes_written", "Bytes written.", sum(each.bytes_written for each in shards)
    yield "rotations", "Files that were full and got a successor.", sum(each.rotations for each in shards)
    yield "files_trimmed", "Files deleted because a checkpoint covers them.", sum(each.files_trimmed for each in shards)
    yield "submit_full", "Groups refused because too much was waiting.", sum(each.submit_full for each in shards)
    yield "spare_failures", "Times the next file could not be prepared.", sum(each.spare_failures for each in shards)


def _summed(parts: Iterable[Histogram]) -> Histogram:
    """All shards as one: they have the same bounds."""
    first, *rest = parts
    whole = Histogram(first.bounds, list(first.counts), first.total)
    for part in rest:
        whole.counts = [one + other for one, other in zip(whole.counts, part.counts, strict=True)]
        whole.total += part.total
    return whole
