"""`GET …/work`: what is refused before there is a stream, and who may have one."""

from __future__ import annotations

from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.queues import Jobs, working

KEYS = "all-secret,rw-secret:rw,reader-secret:read,writer-secret:write,tenant-secret:rw:tenant42:"


@on_loop
async def test_what_is_refused_before_there_is_a_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await Jobs(api).create()
        await api.write("log", 1)
        for path, refusal in [
            ("jobs/work", (400, "invalid_request")),
            ("jobs/work?node=", (400, "invalid_request")),
            ("jobs/work?node=w&max=0", (400, "invalid_request")),
            ("jobs/work?node=w&max=x", (400, "invalid_request")),
            ("jobs/work?node=w&lease_ms=-1", (400, "invalid_request")),
            ("jobs/work?node=w&partition=7", (400, "invalid_request")),
            ("nowhere/work?node=w", (404, "topic_not_found")),
            ("log/work?node=w", (409, "not_a_queue")),
        ]:
            assert (await api.get(f"/v0/topics/{path}")).refusal == refusal, path
        accepts = await api.get("/v0/topics/jobs/work?node=w", Accept="application/json")
        assert accepts.refusal == (406, "not_acceptable")
        metrics = (await api.get("/v0/metrics", Accept="application/json")).body
        assert (metrics["topics_sse_connections"], metrics["topics_queue_streams"]) == (0, 0)


@on_loop
async def test_streams_are_capped(tmp_path: Path) -> None:
    async with serving(tmp_path, max_sse_connections=1) as api:
        await Jobs(api).create()
        async with working(api):
            metrics = (await api.get("/v0/metrics", Accept="application/json")).body
            assert (metrics["topics_sse_connections"], metrics["topics_queue_streams"]) == (1, 1)
            assert (await api.get("/v0/topics/jobs/work?node=w")).refusal == (429, "throttled")


@on_loop
async def test_what_a_key_may_do(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await Jobs(api).create()
        await Jobs(api, "tenant42:jobs").create()
        for key in ("reader-secret", "writer-secret", "tenant-secret"):
            api.key = key
            assert (await api.get("/v0/topics/jobs/work?node=w")).refusal == (403, "forbidden"), key
        async with working(api, queue="tenant42:jobs"):
            pass
        api.key = "rw-secret"
        tokens = {}
        for scopes in (["read"], ["read", "write"]):
            made = await api.post("/v0/watch/token", {"scopes": scopes, "topics": ["jobs"]})
            tokens[len(scopes)] = made.body["token"]
        api.key = None
        assert (await api.get("/v0/topics/jobs/work?node=w")).refusal == (401, "unauthorized")
        assert (await api.get(f"/v0/topics/jobs/work?node=w&token={tokens[1]}")).refusal == (403, "forbidden")
        outside = await api.get(f"/v0/topics/tenant42:jobs/work?node=w&token={tokens[2]}")
        assert outside.refusal == (403, "forbidden")
        for token in (tokens[2], "rw-secret"):
            async with working(api, token=token):
                pass
