from __future__ import annotations

import re

import pytest

from tests.engine.queuerig import QueueRig, Worker
from tests.engine.rig import Rig, with_wal
from tests.server.probing import Probe, serving
from topics.core.commands import Claimer
from topics.server import metrics

PROCESS = {"topics_ready", "topics_recovery_progress", "topics_uptime_ms"}
BY_TOPIC = {
    f"topics_topic_{name}"
    for name in ("head_seq", "earliest_seq", "records_live", "bytes_live", "queue_ready", "queue_in_flight")
}
WAL = {
    "topics_wal_queue_depth",
    "topics_wal_queue_depth_peak",
    "topics_wal_read_only",
    "topics_wal_fsync_latency_us",
} | {
    f"topics_wal_{name}_total" for name in ("frames", "batches", "fsyncs", "bytes_written", "rotations", "submit_full")
}
SPECIFIED = (
    PROCESS
    | BY_TOPIC
    | WAL
    | {
        f"topics_{name}"
        for name in (
            "topics",
            "topics_by_class",
            "routers",
            "records_live",
            "bytes_live",
            "queue_topics",
            "queue_leases_in_flight",
            "sse_connections",
            "watch_sessions",
            "topic_metrics_truncated",
        )
    }
)


def busy() -> Rig:
    rig = Rig()
    rig.write("jobs", {"n": 1}, {"n": 2}, {"n": 3})
    rig.delete("jobs", before_seq=2)
    rig.configure("work", type="queue", durability="fsync")
    rig.write("work", 1, 2)
    rig.configure("many", partitions=2, durability="memory")
    rig.write("many", 1, partition=1)
    return rig


def test_every_specified_name_is_there_in_both_forms() -> None:
    with serving(busy()) as probe:
        answer = probe.get("/v0/metrics")
        assert (answer.status, answer.content_type) == (200, b"text/plain; version=0.0.4; charset=utf-8")
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer.body.decode(), re.M))
        helped = re.findall(r"^# HELP (\S+) \S", answer.body.decode(), re.M)
        assert kinds.keys() >= SPECIFIED
        assert sorted(helped) == sorted(kinds), "each family once: Prometheus refuses a scrape that repeats one"
        assert {name for name, kind in kinds.items() if kind == "counter"} == {n for n in kinds if n.endswith("_total")}
        snapshot = probe.json("/v0/metrics")
        assert snapshot.pop("performance")
        assert snapshot.keys() == kinds.keys()


def test_the_whole_and_each_topic_are_told() -> None:
    with serving(busy()) as probe:
        lines = probe.lines()
    expected = {
        "topics_topics": "3",
        'topics_topics_by_class{class="disk"}': "1",
        'topics_topics_by_class{class="fsync"}': "1",
        'topics_topics_by_class{class="memory"}': "1",
        'topics_topics_by_class{class="ephemeral"}': "0",
        "topics_queue_topics": "1",
        "topics_records_live": "5",
        'topics_topic_head_seq{topic="jobs"}': "3",
        'topics_topic_earliest_seq{topic="jobs"}': "2",
        'topics_topic_records_live{topic="jobs"}': "2",
        'topics_topic_bytes_live{topic="jobs"}': "14",
        'topics_topic_head_seq{topic="many",partition="0"}': "0",
        'topics_topic_head_seq{topic="many",partition="1"}': "1",
        'topics_topic_queue_ready{topic="work"}': "2",
        'topics_topic_queue_in_flight{topic="work"}': "0",
        "topics_topic_metrics_truncated": "0",
        "topics_ready": "1",
        "topics_recovery_progress": "1.0",
        "topics_checkpoint_failed": "0",
        "topics_checkpoint_problems": "0",
    }
    assert {name: lines.get(name) for name in expected} == expected
    assert 'topics_topic_queue_ready{topic="jobs"}' not in lines


def test_the_jobs_of_queues_are_told() -> None:
    rig = QueueRig()
    rig.queue(max_deliveries=1, dead_letter="dead")
    rig.queue("more")
    rig.write("q", 1, 2, 3)
    rig.write("more", 1)
    rig.delay("later", 60_000)
    rig.claim("a")
    rig.nack("a", 1)
    rig.claim("a", 2)
    rig.driver.wait(rig.engine.claim("more", Claimer("b", 1)))
    rig.engine.claim("more", Claimer("b", 1), wait_ms=1000)
    worker = Worker(rig, "c", 1, "more")
    with serving(rig) as probe:
        lines = probe.lines()
    expected = {
        "topics_queue_topics": "2",
        "topics_queue_leases_in_flight": "3",
        "topics_queue_claims_waiting": "1",
        "topics_queue_streams": "1",
        'topics_topic_queue_ready{topic="q"}': "0",
        'topics_topic_queue_in_flight{topic="q"}': "2",
        'topics_topic_queue_delayed{topic="q"}': "1",
        'topics_topic_queue_dead_lettered_total{topic="q"}': "1",
        'topics_topic_queue_in_flight{topic="more"}': "1",
    }
    assert {name: lines.get(name) for name in expected} == expected
    worker.stream.close()


def test_the_classes_follow_every_change_and_a_restart() -> None:
    rig = busy()
    rig.configure("jobs", merge=True, durability="fsync")
    rig.drop("work")

    def classes() -> dict[str, int]:
        with serving(rig) as probe:
            found = probe.json("/v0/metrics")
        assert found["topics_queue_topics"] == 0
        return {sample["class"]: sample["value"] for sample in found["topics_topics_by_class"]}

    expected = {"ephemeral": 0, "memory": 1, "disk": 0, "fsync": 1}
    assert classes() == expected
    rig.kill()
    assert classes() == expected, "replayed from the WAL"
    rig.stop()
    assert classes() == expected, "restored from a snapshot"


def test_the_wal_is_summed_over_its_shards() -> None:
    rig = Rig(with_wal(shards=4, file_bytes=4096))
    for topic in "abcdefgh":
        for _ in range(4):
            rig.write(topic, "x" * 500)
    shards = [rig.driver.wal.metrics(shard) for shard in range(4)]
    assert all(shard.frames and shard.fsyncs for shard in shards)
    for number, shard in enumerate(shards):
        shard.sync_us.add(1000 * number)
        shard.fsyncs += 1
    with serving(rig) as probe:
        found = probe.json("/v0/metrics")
    for name in ("frames", "batches", "fsyncs", "bytes_written", "rotations", "submit_full"):
        assert found[f"topics_wal_{name}_total"] == sum(getattr(shard, name) for shard in shards), name
    assert found["topics_wal_rotations_total"] > 0
    latency = found["topics_wal_fsync_latency_us"]
    assert latency["count"] == latency["buckets"]["+Inf"] == found["topics_wal_fsyncs_total"]
    assert latency["sum"] == sum(shard.sync_us.total for shard in shards) == 6000
    assert list(latency["buckets"].values()) == sorted(latency["buckets"].values())


def test_a_shard_that_has_stopped_is_told() -> None:
    rig = busy()
    rig.fs.fail("sync", path="*/wal/*", always=True)
    rig.submit("work", 1)
    rig.work()
    with serving(rig) as probe:
        lines = probe.lines()
    assert lines["topics_wal_read_only"] == "1"
    assert sorted(lines[f'topics_wal_shard_read_only{{shard="{shard}"}}'] for shard in (0, 1)) == ["0", "1"]


def test_a_failed_checkpoint_is_told() -> None:
    rig = busy()
    rig.engine.checkpoint_error = OSError("full")
    rig.engine.problems = ["a file stays", "another one"]
    with serving(rig) as probe:
        lines = probe.lines()
    assert (lines["topics_checkpoint_failed"], lines["topics_checkpoint_problems"]) == ("1", "2")


def test_during_recovery_the_process_is_described_and_the_engine_left_out() -> None:
    probe = Probe(Rig())
    probe.context.recovery_progress = 0.25
    probe.rig.clock.advance(500)
    assert probe.get("/v0/metrics").status == 200
    lines = probe.lines()
    assert [lines[name] for name in sorted(PROCESS)] == ["0", "0.25", "500"]
    assert "topics_topics" not in lines


def test_while_draining_it_is_not_ready() -> None:
    with serving(busy()) as probe:
        probe.context.draining = True
        assert probe.lines()["topics_ready"] == "0"


def test_a_scrape_touches_no_topic() -> None:
    rig = busy()
    with serving(rig) as probe:
        probe.lines()
        assert rig.engine.state("jobs", touch=False).last_read_ts is None


def test_what_has_expired_is_not_counted() -> None:
    rig = Rig()
    rig.configure("news", ttl_ms=1000)
    rig.write("news", 1, 2)
    rig.clock.advance(2000)
    with serving(rig) as probe:
        lines = probe.lines()
    assert lines['topics_topic_records_live{topic="news"}'] == "0"


@pytest.mark.parametrize(("most", "shown", "truncated"), [(3, 3, "1"), (4, 4, "0"), (5, 4, "0")])
def test_the_block_by_topic_is_bounded(monkeypatch: pytest.MonkeyPatch, most: int, shown: int, truncated: str) -> None:
    monkeypatch.setattr(metrics, "LOGS_SHOWN_MAX", most)
    with serving(busy()) as probe:
        lines = probe.lines()
    assert sum(name.startswith("topics_topic_head_seq{") for name in lines) == shown
    assert lines["topics_topic_metrics_truncated"] == truncated


def test_a_key_sees_its_own_names_only_and_needs_the_read_scope() -> None:
    with serving(busy(), api_keys="all,few:read:m|ma|jo,writer:write") as probe:
        assert probe.get("/v0/metrics").status == 401
        assert probe.get("/v0/metrics", "writer").status == 403
        heads = [name for name in probe.lines("few") if name.startswith("topics_topic_head_seq")]
        assert heads == [
            'topics_topic_head_seq{topic="jobs"}',
            'topics_topic_head_seq{topic="many",partition="0"}',
            'topics_topic_head_seq{topic="many",partition="1"}',
        ]
        assert probe.get("/v0/metrics", "few").body.count(b'topics_topic_head_seq{topic="many",partition="0"}') == 1
        assert 'topics_topic_head_seq{topic="work"}' in probe.lines("all")


def test_requests_are_counted_by_route_and_errors_by_code() -> None:
    with serving(busy(), api_keys="k") as probe:
        for _ in range(3):
            probe.get("/healthz")
        probe.get("/v0/metrics")
        probe.get("/nowhere")
        lines = probe.lines("k")
    assert lines['topics_http_requests_total{method="GET",route="/healthz"}'] == "3"
    assert lines['topics_http_request_duration_us_count{method="GET",route="/healthz"}'] == "1"
    assert lines['topics_http_errors_total{status="401",code="unauthorized"}'] == "1"
    assert lines['topics_http_errors_total{status="404",code="not_found"}'] == "1"
    assert not any("nowhere" in name for name in lines)
