from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.server.wsrig import Rig, run
from topics.errors import Damaged, Throttled
from topics.server.routes import records


def test_what_befalls_a_subscription_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 1)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="jobs", tail=True)
            await talker.hear_ops("caught_up")
            commands = rig.socket._commands
            assert commands._watcher is not None
            subscription = commands._watcher.subscriptions["jobs"]
            commands.paced(["jobs"], 1500)
            told = await talker.hear()
            assert (told["op"], told["code"], told["topics"]) == ("error", "throttled", ["jobs"])
            assert told["detail"] == {"retry_after_ms": 1500}
            commands.refused("jobs2", Throttled("too many", limit="matched_topics", max=1))
            told = await talker.hear()
            assert (told["topic"], told["detail"]) == ("jobs2", {"limit": "matched_topics", "max": 1})
            commands.failed(subscription, Damaged("a block is damaged", file="x"))
            told = await talker.hear()
            assert (told["code"], told["topic"], told["detail"]) == ("damaged", "jobs", {"file": "x"})
            commands.failed(subscription, RuntimeError("a bug of ours"))
            told = await talker.hear()
            assert told["code"] == "internal" and "bug of ours" not in told["message"]

    with caplog.at_level(logging.ERROR, "topics"):
        run(tmp_path, scenario)
    assert any("a bug of ours" in str(record.exc_info) for record in caplog.records)


def test_a_bug_is_answered_logged_and_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a bug of ours")

    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            message = {"topic": "jobs", "records": [{"data": 1}], "request_id": "p"}
            with monkeypatch.context() as patched:
                patched.setattr(records, "decode_write", broken)
                error = await talker.ask("publish", **message)
            assert (error["op"], error["code"], error["request_id"]) == ("error", "internal", "p")
            assert "bug of ours" not in error["message"] and "request id" in error["message"]
            assert rig.socket._commands.in_flight == 0
            assert (await talker.ask("publish", **message))["op"] == "ack"

    with caplog.at_level(logging.ERROR, "topics"):
        run(tmp_path, scenario)
    assert any("a bug of ours" in str(record.exc_info) for record in caplog.records)


def test_commands_are_counted(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            for _ in range(3):
                await talker.ask("ping")
            await talker.ask("publish", topic="jobs", records=[{"data": 1}])
        scraped = (await rig.api.get("/v0/metrics")).raw.decode()
        assert 'topics_http_requests_total{method="WS",route="/v0/ws ping"} 3' in scraped
        assert 'topics_http_requests_total{method="WS",route="/v0/ws publish"} 1' in scraped

    run(tmp_path, scenario)
