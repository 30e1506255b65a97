"""Who may open a WebSocket and do what on it, how many may be open, and how one ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.frames import CloseCode

from tests.client.rig import soon
from tests.server.wsrig import Rig, Talker, run

KEYS = "all,reader:read,writer:write,admin:write+admin,tenant:read+write:tenant42:"


def data(record: dict[str, Any]) -> list[Any]:
    return [each["data"] for each in record["records"]]


async def publish(talker: Talker, topic: str, *datas: object, **options: object) -> dict[str, Any]:
    return await talker.ask("publish", topic=topic, records=[{"data": each} for each in datas], **options)


# ---- who may


@pytest.mark.parametrize(
    ("key", "allowed", "refused"),
    [
        ("all", {"subscribe", "publish", "configure", "ping"}, set()),
        ("reader", {"subscribe", "ping"}, {"publish", "configure"}),
        ("writer", {"publish", "ping"}, {"subscribe", "configure"}),
        ("admin", {"publish", "configure", "ping"}, {"subscribe"}),
        ("tenant", {"ping"}, {"subscribe", "publish", "configure"}),
    ],
)
def test_each_command_needs_its_scope(tmp_path: Path, key: str, allowed: set[str], refused: set[str]) -> None:
    commands: dict[str, dict[str, Any]] = {
        "subscribe": {"op": "subscribe", "topic": "jobs"},
        "publish": {"op": "publish", "topic": "jobs", "records": [{"data": 1}]},
        "configure": {"op": "publish", "topic": "jobs", "records": [{"data": 1}], "config": {}},
        "ping": {"op": "ping"},
    }

    async def scenario(rig: Rig) -> None:
        rig.api.key = "all"
        await rig.api.write("jobs", 1)
        for name in allowed | refused:
            async with rig.talk(key) as talker:
                answer = await talker.ask(**commands[name])
                assert (answer["op"] == "error") == (name in refused), (name, answer)
                if name in refused:
                    assert answer["code"] == "forbidden"

    run(tmp_path, scenario, api_keys=KEYS)


def test_names_lie_within_the_prefixes_of_the_key(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk("tenant") as talker:
            assert (await publish(talker, "tenant42:a", 1))["op"] == "ack"
            assert (await talker.ask("subscribe", topic="tenant42:*", tail=True))["op"] == "subscribed"
            await talker.hear_ops("caught_up")
            for topic in ("*", "tenant4*", "jobs", "tenant43:a"):
                assert (await talker.ask("subscribe", topic=topic))["code"] == "forbidden"
            topics: dict[str, object] = {"tenant42:a": {}, "jobs": {}}
            assert (await talker.ask("subscribe", topics=topics))["code"] == "forbidden"

    run(tmp_path, scenario, api_keys=KEYS)


async def status(rig: Rig, key: str | None = None, **options: Any) -> int:
    with pytest.raises(InvalidStatus) as caught:
        async with rig.talk(key, **options):
            pass
    return int(caught.value.response.status_code)


def test_who_comes_without_a_key_is_refused(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        assert await status(rig) == 401
        assert await status(rig, "nobody") == 401
        assert (await rig.api.get("/v0/ws?token=all")).status == 401, "no token in the address here"

    run(tmp_path, scenario, api_keys=KEYS)


def test_pages_of_others_stay_out_where_there_are_no_keys(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        assert await status(rig, origin="https://evil.example") == 403
        here = f"http://{rig.api.address.netloc}"
        for origin in (here, "https://app.example"):
            async with rig.talk(origin=origin) as talker:
                assert (await talker.ask("ping"))["op"] == "pong"

    run(tmp_path, scenario, cors_origins="https://app.example")


def test_a_page_cannot_have_brought_a_key(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk("all", origin="https://any.example") as talker:
            assert (await talker.ask("ping"))["op"] == "pong"

    run(tmp_path, scenario, api_keys=KEYS)


# ---- compression


@pytest.mark.parametrize(("on", "offer", "agreed"), [(0, "deflate", 0), (1, None, 0), (1, "deflate", 1)])
def test_compression_is_agreed_on_where_both_want_it(tmp_path: Path, on: int, offer: str | None, agreed: int) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk(compression=offer) as talker:
            assert len(talker.socket.protocol.extensions) == agreed
            await publish(talker, "jobs", "x" * 1000, 2)
            await talker.ask("subscribe", topic="jobs")
            record, _ = await talker.hear_ops("record", "caught_up")
            assert data(record) == ["x" * 1000, 2]
            await talker.socket.send("{")
            assert (await talker.hear())["code"] == "invalid_request"

    run(tmp_path, scenario, ws_compression=bool(on))


# ---- caps


def test_sockets_count_as_streams(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk("all"), rig.talk("all"):
            assert rig.stream_count == 2
            rig.api.key = "all"
            assert "topics_sse_connections 2" in (await rig.api.get("/v0/metrics")).raw.decode()
            refused = await rig.api.call("GET", "/v0/ws")
            assert refused.refusal == (429, "throttled") and "retry-after" in refused.headers
            assert refused.error["detail"] == {"limit": "max_sse_connections_per_key", "max": 2}
            async with rig.talk("reader"):
                rig.api.key = "writer"
                refused = await rig.api.call("GET", "/v0/ws")
                assert refused.error["detail"] == {"limit": "max_sse_connections", "max": 3}
        await rig.until(lambda: rig.stream_count == 0)
        async with rig.talk("all"):
            assert rig.stream_count == 1

    run(tmp_path, scenario, api_keys=KEYS, max_sse_connections=3, max_sse_connections_per_key=2)


def test_an_open_socket_is_no_request_under_way_but_its_publishes_are(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk("all") as one, rig.talk("all") as two:
            for talker in (one, two):
                assert (await publish(talker, "jobs", 1))["op"] == "ack"
            for number in range(10):
                await one.say("publish", topic="jobs", records=[{"data": number}])
            heard = [await one.hear() for _ in range(10)]
            refused = [each for each in heard if each["op"] == "error"]
            assert refused and {each["detail"]["limit"] for each in refused} == {"max_inflight_per_key"}
            assert (await publish(one, "jobs", 1))["op"] == "ack"

    run(tmp_path, scenario, api_keys=KEYS, max_inflight_per_key=1)


# ---- the end


def test_a_close_is_answered_with_its_code(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        for code in (CloseCode.NORMAL_CLOSURE, CloseCode.GOING_AWAY, 4000):
            async with rig.talk() as talker:
                await talker.ask("ping")
                await talker.socket.close(code)
                assert talker.socket.close_code == code

    run(tmp_path, scenario)


def test_the_server_stops_with_1001_and_every_publish_answered(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.put("/v0/topics/jobs", {"durability": "fsync"})
        async with rig.talk() as talker:
            await publish(talker, "jobs", 0)
            commands, count = rig.socket._commands, 30

            async def hear_all() -> list[Any]:
                return [json.loads(message) async for message in talker.socket]

            hearing = asyncio.create_task(hear_all())
            for number in range(count):
                await talker.say("publish", topic="jobs", records=[{"data": number}], request_id=number)
            await rig.until(lambda: commands._count > count)
            assert commands.in_flight > 0
            await rig.server.close()
            heard = await soon(hearing)
            assert talker.socket.close_code == CloseCode.GOING_AWAY
            assert sorted(each["request_id"] for each in heard) == list(range(count))
            assert {each["op"] for each in heard} == {"ack"}

    run(tmp_path, scenario)
