"""Records of a group pushed over a real socket: what comes, how much of it, and what becomes of it at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.server.api import Api, serving
from tests.server.groups import Consumers
from tests.server.sserig import Listening, listening


@asynccontextmanager
async def pushing(api: Api, **options: object) -> AsyncIterator[Listening]:
    """A consumer's stream, its beginning read."""
    query = "&".join(f"{name}={value}" for name, value in options.items())
    async with listening(api, f"/v0/topics/t/groups/g/watch?{query}") as stream:
        assert stream.status == 200
        assert (await stream.next(beats=True)).retry == 2000
        assert (await stream.next(beats=True)).comment.startswith("hb ")
        yield stream


async def pushed(stream: Listening) -> dict[str, Any]:
    frame = await stream.next()
    assert frame.event == "batch", frame
    assert frame.id == str(frame.fields["last_seq"])
    return frame.fields


def seqs_of(batch: dict[str, Any]) -> list[int]:
    return [record["$seq"] for record in batch["records"]]


@on_loop
async def test_a_batch_as_it_is_pushed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {})
        async with pushing(api, consumer="c", limit=2, include_tags="true") as stream:
            await api.post("/v0/topics/t", {"records": [{"data": {"a": 1}, "tag": "x"}, {"data": 2}, {"data": 3}]})
            batch = await pushed(stream)
            assert seqs_of(batch) == [1, 2] and batch["records"][0]["$tag"] == "x"
            assert (batch["topic"], batch["group"], batch["count"], batch["first_seq"]) == ("t", "g", 2, 1)
            assert (batch["deliveries"], batch["committed_seq"], batch["lag"]) == (1, 0, 3)
            assert batch["tombstone"] is None
            await Consumers(api).did("ack", upto_seq=2, claim_id=batch["claim_id"])
            assert seqs_of(await pushed(stream)) == [3]


@on_loop
async def test_there_are_never_more_claims_than_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(8))
        group = Consumers(api)
        async with pushing(api, limit=2, max_claims=2) as stream:
            assert [seqs_of(await pushed(stream)) for _ in range(2)] == [[1, 2], [3, 4]]
            assert (await group.state())["next_seq"] == 5
            await group.did("ack", upto_seq=1)
            assert (await group.state())["next_seq"] == 5, "a part of a claim is still a claim"
            await group.did("ack", upto_seq=2)
            assert seqs_of(await pushed(stream)) == [5, 6]
            await group.did("nack", upto_seq=4, delay_ms=60_000)
            assert seqs_of(await pushed(stream)) == [7, 8]


@on_loop
async def test_what_a_stream_holds_at_its_end_others_get_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(4))
        group = Consumers(api)
        async with pushing(api, limit=2) as stream:
            assert seqs_of(await pushed(stream)) == [1, 2]
            waiting = asyncio.ensure_future(group.did("consume", limit=2, consumer="other", wait_ms=30_000))
            assert seqs_of(await soon(waiting)) == [3, 4]
            waiting = asyncio.ensure_future(group.did("consume", consumer="other", wait_ms=30_000))
        batch = await soon(waiting)
        assert (seqs_of(batch), batch["deliveries"]) == ([1, 2], 2)


@on_loop
async def test_a_stream_ends_with_its_group_and_with_its_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        async with pushing(api) as stream:
            await pushed(stream)
            await api.call("DELETE", Consumers(api).path)
            frame = await stream.next()
            assert (frame.event, frame.fields["code"]) == ("error", 404)
            assert "dropped" in frame.fields["error"]
        async with pushing(api) as stream:
            await pushed(stream)
            await api.call("DELETE", "/v0/topics/t")
            frame = await stream.next()
            assert (frame.event, frame.fields["code"]) == ("error", 404)


@on_loop
async def test_a_paused_group_pushes_when_it_is_resumed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        group = Consumers(api)
        await group.did("reset", to=1)
        await group.did("pause")
        async with pushing(api) as stream:
            await group.did("resume")
            assert seqs_of(await pushed(stream)) == [1]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=0", 400),
        ("from=never", 400),
        ("from=", 400),
        ("visibility_ms=", 400),
        ("max_claims=65", 400),
        ("partition=1", 400),
        ("from=2", 200),
    ],
)
@on_loop
async def test_what_is_refused_before_the_stream_begins(tmp_path: Path, query: str, status: int) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        async with listening(api, f"/v0/topics/t/groups/g/watch?{query}") as stream:
            assert stream.status == status


@on_loop
async def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        stream_block = pushing(api)
        stream = await stream_block.__aenter__()
        await pushed(stream)
    frames = await stream.rest()
    assert (frames[-1].event, frames[-1].fields["code"]) == ("error", 503)
    await stream_block.__aexit__(None, None, None)
    async with serving(tmp_path) as api:
        assert await Consumers(api).consume() == [1]
