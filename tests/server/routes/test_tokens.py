from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.api import Answer, Api, serving
from topics.clock import SystemClock

KEYS = "ann-secret,bob-secret:read:tenant42:,writer-secret:write"
Scenario = Callable[[Api], Awaitable[None]]


def run(tmp_path: Path, scenario: Scenario, **values: Any) -> None:
    async def guarded() -> None:
        async with asyncio.timeout(30), serving(tmp_path, **values) as api:
            await scenario(api)

    asyncio.run(guarded())


async def opening(api: Api, path: str) -> int:
    """The status of a stream, which is left again at once."""
    reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return int((await reader.readuntil(b"\r\n\r\n")).split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


async def watch(api: Api, *topics: str) -> str:
    for topic in topics:
        await api.write(topic, 1)
    answer = await api.post("/v0/watch", {"topics": {topic: {} for topic in topics}})
    assert answer.status == 200, answer.body
    return str(answer.body["wid"])


def test_a_browser_opens_a_stream_with_a_token_and_no_key(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        api.key = "ann-secret"
        wid = await watch(api, "jobs")
        before_ms = SystemClock().now_ms()
        answer = await api.post("/v0/watch/token", {"wid": wid, "topics": ["jobs"], "ttl_ms": 60_000})
        assert answer.status == 200
        made = answer.without_performance()
        assert made == {
            "token": made["token"],
            "expires_ts": made["expires_ts"],
            "scopes": ["read"],
            "topics": ["jobs"],
            "wid": wid,
            "stream_url": f"/v0/watch/{wid}?token={made['token']}",
        }
        assert 60_000 <= made["expires_ts"] - before_ms < 90_000
        assert answer.body["performance"]["server_total_ms"] >= 0
        api.key = None
        assert await opening(api, made["stream_url"]) == 200
        assert await opening(api, f"/v0/watch/{wid}") == 401
        assert await opening(api, f"/v0/watch/{wid}?token=ann-secret") == 200

    run(tmp_path, scenario, api_keys=KEYS)


def test_a_token_opens_what_it_is_for(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        api.key = "ann-secret"
        jobs, both = await watch(api, "jobs"), await watch(api, "jobs", "events")

        async def token(**wanted: object) -> str:
            return str((await api.post("/v0/watch/token", wanted)).body["token"])

        assert await opening(api, f"/v0/watch/{jobs}?token={await token(wid=both)}") == 403
        assert await opening(api, f"/v0/watch/{both}?token={await token(topics=['jobs'])}") == 403
        assert await opening(api, f"/v0/watch/{both}?token={await token(topics=['jobs', 'ev*'])}") == 200
        assert await opening(api, f"/v0/watch/{both}?token={await token()}") == 200
        api.key = "bob-secret"
        assert await opening(api, f"/v0/watch/{jobs}?token={await token()}") in (401, 403, 404), "another key's session"

    run(tmp_path, scenario, api_keys=KEYS)


def test_a_token_is_good_for_streams_only(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        api.key = "ann-secret"
        await api.write("jobs", 1)
        token = (await api.post("/v0/watch/token")).body["token"]
        api.key = None
        for query in (f"token={token}", "token=ann-secret"):
            for method, path in [
                ("GET", "/v0/topics"),
                ("GET", "/v0/topics/jobs"),
                ("POST", "/v0/topics/jobs/diff"),
                ("POST", "/v0/topics/jobs"),
                ("POST", "/v0/watch"),
                ("POST", "/v0/watch/token"),
                ("GET", "/v0/ws"),
                ("GET", "/v0/metrics"),
            ]:
                assert (await api.call(method, f"{path}?{query}")).refusal == (401, "unauthorized"), path
        api.key = token
        assert (await api.get("/v0/topics")).refusal == (401, "unauthorized"), "a token is no key"

    run(tmp_path, scenario, api_keys=KEYS)


@pytest.mark.parametrize(
    ("key", "wanted", "refusal"),
    [
        ("writer-secret", {}, (403, "forbidden")),
        ("bob-secret", {"scopes": ["write"]}, (403, "forbidden")),
        ("bob-secret", {"topics": ["jobs"]}, (403, "forbidden")),
        ("bob-secret", {"topics": ["*"]}, (403, "forbidden")),
        ("bob-secret", {"topics": ["tenant4*"]}, (403, "forbidden")),
        ("ann-secret", {"ttl_ms": 1}, (400, "invalid_request")),
        ("nobody", {}, (401, "unauthorized")),
    ],
)
def test_a_key_gives_away_no_more_than_it_has(
    tmp_path: Path, key: str, wanted: object, refusal: tuple[int, str]
) -> None:
    async def scenario(api: Api) -> None:
        api.key = key
        answer: Answer = await api.post("/v0/watch/token", wanted)
        assert answer.refusal == refusal

    run(tmp_path, scenario, api_keys=KEYS)


def test_without_keys_a_token_is_made_and_not_needed(tmp_path: Path) -> None:
    async def scenario(api: Api) -> None:
        wid = await watch(api, "jobs")
        made = (await api.post("/v0/watch/token", {"wid": wid})).body
        assert await opening(api, made["stream_url"]) == 200
        assert await opening(api, f"/v0/watch/{wid}") == 200

    run(tmp_path, scenario)
