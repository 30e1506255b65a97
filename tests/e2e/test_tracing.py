"""`topics serve` with a collector: what it is sent, and what happens when it is not there."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.served import served
from tests.server.collector import collecting


def test_the_requests_of_a_server_are_with_the_collector_when_it_has_stopped(tmp_path: Path) -> None:
    variables = {"TOPICS_API_KEYS": "hunter2", "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
    with collecting() as collector:
        flags = ("--otel-endpoint", collector.url, "--otel-service-name", "till")
        with served(tmp_path / "data", *flags, variables=variables) as server, server.connect() as caller:
            records = {"records": [{"data": 1}], "config": {"durability": "fsync"}}
            assert caller.ask("POST", "/v0/topics/orders", records)[0] == 401
            caller._headers["authorization"] = "Bearer hunter2"
            assert caller.ask("POST", "/v0/topics/orders?return_seqs=false", records)[0] == 201
            assert collector.sent == [], "nothing is sent before its time"
            assert server.stop() == 0
    refused, written = collector.sent
    assert refused.name == written.name == "POST /v0/topics/{topic}"
    assert (refused.error, written.error) == ("unauthorized", "")
    assert written.resource["service.name"] == "till"
    assert written.attributes["topics.topic"] == "orders"
    assert written.attributes["http.response.status_code"] == 201
    assert written.attributes["topics.fsync_ms"] > 0
    assert "hunter2" not in str(collector.sent) and "return_seqs" not in str(collector.sent)


def test_a_collector_that_refuses_is_told_of_in_the_log_only(tmp_path: Path) -> None:
    with collecting() as collector:
        collector.status = 400
        with served(tmp_path / "data", "--otel-endpoint", collector.url) as server, server.connect() as caller:
            assert caller.ask("GET", "/v0/topics")[0] == 200
            assert server.stop() == 0
    assert any(line["logger"].startswith("opentelemetry") for line in server.said)
    assert server.said[-1]["event"] == "stopped"
