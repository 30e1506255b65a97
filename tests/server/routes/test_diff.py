from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.server import lanerig
from tests.server.api import Api, serving
from tests.server.wsrig import Rig, run

WAIT_MS = 30_000
"""Longer than the guard of a test: a wait that nobody ends fails."""
PIPELINED = 3

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@on_loop
async def test_a_page_and_the_next(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        records = [{"data": 1, "tag": "x", "node": "n", "meta": {"k": "v"}}, {"data": 2}, {"data": 3}]
        await api.post("/v0/topics/t", {"records": records})
        answer = await api.post("/v0/topics/t/diff", {"limit": 2})
        first = answer.without_performance()
        ts = first["records"][0]["$ts"]
        assert first == {
            "topic": "t",
            "records": [
                {"$seq": 1, "$ts": ts, "$node": "n", "meta": {"k": "v"}, "data": 1},
                {"$seq": 2, "$ts": ts, "data": 2},
            ],
            "next_from_seq": 2,
            "head_seq": 3,
            "earliest_seq": 1,
            "caught_up": False,
            "tombstone": None,
            "lag": 1,
            "epoch": 1,
        }
        assert answer.body["performance"]["records_scanned"] == 2
        rest = await api.diff("t", from_seq=2)
        assert ([record["$seq"] for record in rest["records"]], rest["caught_up"], rest["lag"]) == ([3], True, 0)


@on_loop
async def test_an_empty_body_reads_from_the_beginning(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        assert len((await api.post("/v0/topics/t/diff")).body["records"]) == 1


@on_loop
async def test_tags_and_meta_as_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.post("/v0/topics/t", {"records": [{"data": 1, "tag": "x", "meta": {"k": "v"}}]})
        (record,) = (await api.diff("t", include_tags=True, include_meta=False))["records"]
        assert (record["$tag"], "meta" in record) == ("x", False)


@on_loop
async def test_own_nodes_are_left_out_and_passed(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for node in ("a", "b", "c"):
            await api.write("t", node, node=node)
        one = await api.diff("t", node="c")
        assert ([record["data"] for record in one["records"]], one["next_from_seq"]) == (["a", "b"], 3)
        two = await api.diff("t", node=["a", "c"])
        assert [record["data"] for record in two["records"]] == ["b"]
        await api.patch("/v0/topics/t", {"dedupe_node": False})
        assert len((await api.diff("t", node="c"))["records"]) == 3


@on_loop
async def test_a_tag_filter(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        records = [{"data": tag, "tag": tag} for tag in ("a.1", "b", "a.2")] + [{"data": None}]
        await api.post("/v0/topics/t", {"records": records})
        found = await api.diff("t", match=["tag", "Glob", "a.*"])
        assert ([record["data"] for record in found["records"]], found["next_from_seq"]) == (["a.1", "a.2"], 4)
        assert [record["data"] for record in (await api.diff("t", match="b"))["records"]] == ["b"]


@on_loop
async def test_reading_by_time(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        (first,) = (await api.diff("t"))["records"]
        stamp = first["$ts"]
        while True:
            await api.write("t", 2)
            last = (await api.diff("t"))["records"][-1]
            if last["$ts"] > stamp:
                break
        later = await api.diff("t", from_ts=last["$ts"])
        assert all(record["$ts"] >= last["$ts"] for record in later["records"]) and later["records"]
        assert len((await api.diff("t", from_ts=stamp))["records"]) == last["$seq"]
        beyond = await api.diff("t", from_ts=last["$ts"] + 1_000_000)
        assert (beyond["records"], beyond["caught_up"]) == ([], True)
        both = await api.diff("t", from_ts=stamp, from_seq=last["$seq"] - 1)
        assert [record["$seq"] for record in both["records"]] == [last["$seq"]]


@on_loop
async def test_what_was_lost_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 2})
        await api.write("t", 1, 2, 3, 4, 5)
        page = await api.diff("t")
        assert page["tombstone"] == {
            "gap_from": 1,
            "gap_to": 3,
            "reason": "cap",
            "missed_estimate": 3,
            "earliest_seq": 4,
            "head_seq": 5,
        }
        assert [record["$seq"] for record in page["records"]] == [4, 5]
        assert (await api.diff("t", from_seq=99))["tombstone"]["reason"] == "recreated"


@on_loop
async def test_limits_are_clamped(tmp_path: Path) -> None:
    async with serving(tmp_path, max_limit=2) as api:
        await api.write("t", *range(5))
        assert len((await api.diff("t", limit=10**9))["records"]) == 2
        assert len((await api.diff("t", limit=0))["records"]) == 2
        assert len((await api.diff("t", max_batch_bytes=1))["records"]) == 1
        assert len((await api.diff("t", max_batch_bytes=10**12))["records"]) == 2


@on_loop
async def test_a_partition(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 2})
        await api.write("t", "b", partition=1)
        page = await api.diff("t", partition=1)
        assert (page["partition"], page["records"][0]["data"]) == (1, "b")
        assert (await api.diff("t"))["records"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"from_seq": -1}, "from_seq"),
        ({"from_seq": 2**64}, "from_seq"),
        ({"from_seq": "1"}, "from_seq"),
        ({"from_seq": 1.5}, "from_seq"),
        ({"from_ts": -1}, "from_ts"),
        ({"limit": -1}, "limit"),
        ({"limit": True}, "limit"),
        ({"wait_ms": -1}, "wait_ms"),
        ({"max_batch_bytes": -1}, "max_batch_bytes"),
        ({"node": 5}, "node"),
        ({"node": [5]}, "node[0]"),
        ({"include_tags": "yes"}, "include_tags"),
        ({"match": ["tag", "Like", "x"]}, "match[1]"),
        ({"match": ["tag", "Glob", "x"]}, "match[2]"),
        ({"partition": 1}, "partition"),
        (b'{"limit":1,"limit":2}', "limit"),
        (b"[]", ""),
        (b"{", ""),
    ],
)
@on_loop
async def test_a_diff_that_is_none(tmp_path: Path, body: object, field: str) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        refused = await api.post("/v0/topics/t/diff", body)
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == field


@on_loop
async def test_a_diff_never_creates(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await api.post("/v0/topics/t/diff", {})).refusal == (404, "topic_not_found")


# ---- waiting


async def waiting(api: Api, **wanted: object) -> asyncio.Task[dict[str, Any]]:
    """A long-poll that has reached the server: a request that came later is answered."""
    task = asyncio.create_task(api.diff("t", wait_ms=WAIT_MS, **wanted))
    while (await api.get("/v0/topics/t?touch=false")).body["last_read_ts"] is None:
        pass
    return task


@on_loop
async def test_a_wait_ends_with_a_record(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        task = await waiting(api)
        assert not task.done()
        await api.write("t", "news")
        page = await soon(task)
        assert page["records"] and page["next_from_seq"] == 1


@on_loop
async def test_a_wait_that_finds_something_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        assert len((await soon(api.diff("t", wait_ms=WAIT_MS)))["records"]) == 1


@on_loop
async def test_a_wait_goes_on_past_what_is_filtered(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        task = await waiting(api, node="me")
        await api.write("t", "mine", node="me")
        await api.write("t", "theirs", node="you")
        page = await soon(task)
        assert [record["data"] for record in page["records"]] == ["theirs"]


@on_loop
async def test_a_wait_is_over_when_its_time_is(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        page = await soon(api.diff("t", wait_ms=1))
        assert (page["records"], page["caught_up"]) == ([], True)


@on_loop
async def test_a_wait_ends_with_its_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        task = asyncio.create_task(api.post("/v0/topics/t/diff", {"wait_ms": WAIT_MS}))
        while (await api.get("/v0/topics/t?touch=false")).body["last_read_ts"] is None:
            pass
        await api.delete("/v0/topics/t")
        assert (await soon(task)).refusal == (404, "topic_not_found")


@on_loop
async def test_a_wait_ends_when_the_server_stops(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        task = await waiting(api)
    page = await soon(task)
    assert page["records"] == []


@on_loop
async def test_no_record_is_missed_by_waiting_readers(tmp_path: Path) -> None:
    """Readers follow while a writer writes; each must see every record once, and none waits out its time."""
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")

        async def follow() -> list[int]:
            seen: list[int] = []
            while len(seen) < 50:
                page = await api.diff("t", from_seq=len(seen), wait_ms=WAIT_MS)
                seen += [record["$seq"] for record in page["records"]]
            return seen

        readers = [asyncio.create_task(follow()) for _ in range(4)]
        for number in range(50):
            await api.write("t", number)
        assert await soon(asyncio.gather(*readers)) == [list(range(1, 51))] * 4


@on_loop
async def test_a_record_that_comes_before_the_wait_has_begun_ends_it(tmp_path: Path) -> None:
    """Both requests come in one turn of the loop, and the second one's record is visible before any task has run."""
    async with lanerig.serving(tmp_path) as rig:
        await rig.ask("PUT", "/v0/topics/orders", {"durability": "ephemeral"})
        reader, writer = await rig.call(known=False), await rig.call(known=False)
        poll = lanerig.write(b'{"wait_ms":%d}' % WAIT_MS, topic="orders/diff")
        rig.connection_of(reader).data_received(poll)
        rig.connection_of(writer).data_received(lanerig.plain(b'"news"'))
        page = lanerig.body_of(await soon(reader.answer()))
        assert [record["data"] for record in page["records"]] == ["news"]


# ---- waiting for nobody


async def closes(connection: Connection) -> None:
    connection[1].close()


async def resets(connection: Connection) -> None:
    connected = connection[1].get_extra_info("socket")
    connected.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    connection[1].transport.abort()


async def sends_no_more(connection: Connection) -> None:
    """It is still there, and nobody could know: it gets what there is."""
    connection[1].write_eof()
    answers = await soon(connection[0].read())
    assert answers.count(b"HTTP/1.1 200 OK") == answers.count(b'"records":[]') == PIPELINED


@pytest.mark.parametrize("way", [closes, resets, sends_no_more], ids=lambda way: way.__name__)
def test_a_wait_ends_with_its_client(tmp_path: Path, way: Callable[[Connection], Awaitable[None]]) -> None:
    async def scenario(rig: Rig) -> None:
        rig.api.key = "all"
        await rig.api.put("/v0/topics/t")
        context = rig.server._context
        poll = b'{"wait_ms":%d}' % WAIT_MS
        head = b"POST /v0/topics/t/diff HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer all\r\nContent-Length: %d\r\n"
        request = head % len(poll) + b"Content-Type: application/json\r\n\r\n" + poll
        connections = []
        for _ in range(10):
            connections.append(await asyncio.open_connection(rig.api.address.hostname, rig.api.address.port))
            connections[-1][1].write(request * PIPELINED)
        wait_count = 10 * PIPELINED
        await soon(rig.until(lambda: len(context.tasks) == wait_count))
        assert sum(context.quota._inflight.values()) == wait_count
        await asyncio.gather(*map(way, connections))
        await soon(rig.until(lambda: not context.tasks))
        assert (rig.watched_count, context.quota._inflight) == (0, {})
        for _, writer in connections:
            writer.close()
        await soon(rig.until(lambda: not len(rig.server._connections)))

    run(tmp_path, scenario, api_keys="all")
