"""`/v0/watch` over a real socket: every field, every frame, every refusal."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.sserig import Frame, decoded, listening, watching

KEYS = "all-secret,reader-secret:read,writer-secret:write,tenant-secret:read+write:tenant42:"


def gist(frames: list[Frame]) -> list[tuple[str, Any]]:
    return [(frame.event, frame.seqs if frame.event == "record" else frame.fields["topic"]) for frame in frames]


# ---- the session


@on_loop
async def test_a_session_says_where_its_topics_stand(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1, 2, 3)
        await api.put("/v0/topics/events", {"cap_records": 1})
        await api.write("events", 1, 2)
        answer = await api.post("/v0/watch", {"topics": {"jobs": {"from_seq": 2}, "events": {"tail": True}}})
        assert answer.status == 200
        body = answer.without_performance()
        wid = body.pop("wid")
        assert re.fullmatch(r"wid_[A-Za-z0-9_-]{22}", wid)
        assert body == {
            "stream_url": f"/v0/watch/{wid}",
            "session_ttl_ms": 300_000,
            "topics": {
                "jobs": {"from_seq": 2, "head_seq": 3, "earliest_seq": 1},
                "events": {"from_seq": 2, "head_seq": 2, "earliest_seq": 2},
            },
        }
        assert "server_total_ms" in answer.body["performance"]
        assert (await api.get("/v0/metrics", Accept="application/json")).body["topics_watch_sessions"] == 1


@on_loop
async def test_what_is_wrong_with_a_session_is_said_before_there_is_one(tmp_path: Path) -> None:
    refused: list[tuple[dict[str, Any], tuple[int, str], str]] = [
        ({}, (400, "invalid_request"), "topics"),
        ({"topics": {}}, (400, "invalid_request"), "topics"),
        ({"topics": ["jobs"]}, (400, "invalid_request"), "topics"),
        ({"topics": {"jobs": 3}}, (400, "invalid_request"), "topics[...]"),
        ({"topics": {"jobs": {"from_seq": -1}}}, (400, "invalid_request"), "topics.jobs.from_seq"),
        ({"topics": {"jobs": {"partition": 1}}}, (400, "invalid_request"), "partition"),
        ({"topics": {"a b": {}}}, (400, "invalid_request"), "topics.a b"),
        ({"topics": {"jobs": {}, "jobs#0": {}}}, (400, "invalid_request"), "topics.jobs#0"),
        ({"topics": {"jobs": {}}, "consistency": "weak"}, (400, "invalid_request"), "consistency"),
        ({"topics": {"jobs": {"match": ["tag", "Near", "x"]}}}, (400, "invalid_request"), "topics.jobs.match[1]"),
        ({"topics": {"jobs": {}}, "cursor": "!"}, (400, "invalid_request"), "cursor"),
        ({"topics": {name: {} for name in "abcd"}}, (400, "invalid_request"), "topics"),
    ]
    async with serving(tmp_path, max_watch_topics=3) as api:
        await api.write("jobs", 1)
        for body, refusal, field in refused:
            answer = await api.post("/v0/watch", body)
            assert (answer.refusal, answer.error["detail"]["field"]) == (refusal, field), body
        missing = await api.post("/v0/watch", {"topics": {"jobs": {}, "nowhere": {}}})
        assert missing.refusal == (404, "topic_not_found") and missing.error["detail"]["topic"] == "nowhere"
        twice = await api.post("/v0/watch", b'{"topics":{"jobs":{},"jobs":{"tail":true}}}')
        assert twice.refusal == (400, "invalid_request")
        assert (await api.get("/v0/metrics", Accept="application/json")).body["topics_watch_sessions"] == 0
        lenient = await api.post("/v0/watch?lenient=true", {"topics": {"jobs": {}, "nowhere": {}}})
        assert lenient.status == 200 and list(lenient.body["topics"]) == ["jobs"]


@on_loop
async def test_sessions_are_bounded_and_let_go(tmp_path: Path) -> None:
    async with serving(tmp_path, max_watch_sessions=2) as api:
        await api.write("jobs", 1)
        await asyncio.gather(*(watching(api, {"jobs": {}}) for _ in range(2)))
        full = await api.post("/v0/watch", {"topics": {"jobs": {}}})
        assert full.refusal == (429, "throttled") and int(full.headers["retry-after"]) >= 1
        assert (full.error["detail"]["limit"], full.error["detail"]["max"]) == ("max_watch_sessions", 2)
    async with serving(tmp_path, max_watch_sessions=2, watch_session_ttl_ms=1) as api:
        urls = [await watching(api, {"jobs": {}}) for _ in range(2)]
        while (await api.post("/v0/watch", {"topics": {"jobs": {}}})).status != 200:
            pass  # Until a millisecond has passed.
        assert (await api.get(urls[0])).refusal == (404, "not_found")


# ---- the stream


@on_loop
async def test_a_stream_from_its_head_to_live(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.post(
            "/v0/topics/jobs",
            {
                "records": [
                    {"data": {"n": 1}, "tag": "a", "node": "n1", "meta": {"m": "x"}},
                    {"data": 2, "tag": "b"},
                    {"data": 3, "node": "me"},
                ]
            },
        )
        url = await watching(api, {"jobs": {}}, node="me", include_tags=True)
        async with listening(api, url) as stream:
            assert stream.status == 200
            assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["connection"] == "keep-alive"
            assert stream.headers["x-accel-buffering"] == "no"
            first = await stream.next()
            assert (first.retry, first.event, first.data, first.positions) == (2000, "", "", {"jobs": 0})
            batch = await stream.next()
            assert batch.event == "record" and batch.positions == {"jobs": 3}
            records = batch.fields.pop("records")
            stamp = records[0]["$ts"]
            assert records == [
                {"$seq": 1, "$ts": stamp, "$node": "n1", "$tag": "a", "meta": {"m": "x"}, "data": {"n": 1}},
                {"$seq": 2, "$ts": stamp, "$tag": "b", "data": 2},
            ]
            assert {name: value for name, value in batch.fields.items() if name != "records"} == {
                "topic": "jobs",
                "from_seq": 0,
                "to_seq": 3,
                "head_seq": 3,
            }
            caught_up = await stream.next()
            assert (caught_up.event, caught_up.fields) == ("caught-up", {"topic": "jobs", "head_seq": 3})
            assert caught_up.positions == {"jobs": 3}
            await api.write("jobs", "live")
            live = await stream.next()
            assert (live.event, live.seqs, live.positions) == ("record", [4], {"jobs": 4})
            assert (await api.get("/v0/metrics", Accept="application/json")).body["topics_sse_connections"] == 1


@on_loop
async def test_shapes_limits_and_filters(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        records = [{"data": "x" * 100, "tag": f"t{n % 2}", "meta": {"m": "1"}} for n in range(6)]
        await api.post("/v0/topics/jobs", {"records": records})

        async def frames(topics: dict[str, Any], **options: Any) -> list[Frame]:
            async with listening(api, await watching(api, topics, **options)) as stream:
                return (await stream.until("caught-up"))[1:]

        bare = await frames({"jobs": {}}, include_data=False, include_meta=False)
        assert [sorted(record) for record in bare[0].fields["records"]] == [["$seq", "$ts"]] * 6
        assert gist(await frames({"jobs": {}}, limit=4))[:2] == [("record", [1, 2, 3, 4]), ("record", [5, 6])]
        small = await frames({"jobs": {}}, max_batch_bytes=1)
        assert [frame.seqs for frame in small[:-1]] == [[1], [2], [3], [4], [5], [6]], "one at least"
        assert gist(await frames({"jobs": {"match": "t1"}}))[0] == ("record", [2, 4, 6])
        assert gist(await frames({"jobs": {"from_seq": 4}}, match=["tag", "Glob", "t0*"]))[0] == ("record", [5])


@on_loop
async def test_line_breaks_in_data_do_not_break_the_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        body = b'{"records":[{"data":{\r\n"a": 1,\n"b": [\r2]}}]}'
        assert (await api.post("/v0/topics/jobs", body)).status == 201
        async with listening(api, await watching(api, {"jobs": {}})) as stream:
            await stream.next()
            assert (await stream.next()).fields["records"][0]["data"] == {"a": 1, "b": [2]}


@on_loop
async def test_many_topics_over_one_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        await api.write("audit", 1)
        async with listening(api, await watching(api, {"jobs": {}, "audit": {}})) as stream:
            frames = [await stream.next() for _ in range(5)]
            assert frames[-1].positions == {"jobs": 1, "audit": 1}
            await api.write("audit", 2)
            frame = await stream.next()
            assert (frame.fields["topic"], frame.positions) == ("audit", {"jobs": 1, "audit": 2})
            await api.delete("/v0/topics/jobs")
            gone = await stream.next()
            assert (gone.event, gone.fields) == (
                "topic-deleted",
                {"topic": "jobs", "head_seq": 1, "reason": "deleted"},
            )
            assert gone.positions == {"jobs": 1, "audit": 2}
            await api.write("audit", 3)
            assert (await stream.next()).positions == {"audit": 3}, "the rest goes on"


@on_loop
async def test_gaps_are_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/ticks", {"cap_records": 2})
        await api.write("ticks", *range(5))
        async with listening(api, await watching(api, {"ticks": {"from_seq": 1}})) as stream:
            await stream.next()
            old = await stream.next()
            assert (old.event, old.fields) == (
                "tombstone",
                {
                    "topic": "ticks",
                    "reason": "from_seq_too_old",
                    "gap_from": 2,
                    "gap_to": 3,
                    "earliest_seq": 4,
                    "head_seq": 5,
                },
            )
            assert old.positions == {"ticks": 3}
            assert gist([await stream.next() for _ in range(2)]) == [("record", [4, 5]), ("caught-up", "ticks")]
            await api.write("ticks", *range(4))
            cap = await stream.next()
            assert (cap.fields["reason"], cap.fields["gap_from"], cap.fields["gap_to"]) == ("cap", 6, 7)


@on_loop
async def test_a_wildcard_takes_in_what_is_created_later(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("tenant42:a", 1)
        await api.write("tenant7:a", 1)
        answer = await api.post("/v0/watch", {"topics": {"tenant42:*": {}}})
        assert list(answer.body["topics"]) == ["tenant42:a"]
        named = await api.post("/v0/watch", {"topics": {"tenant42:*": {}, "tenant42:a": {"tail": True}}})
        assert named.body["topics"]["tenant42:a"]["from_seq"] == 1, "a name goes before a wildcard"
        async with listening(api, answer.body["stream_url"]) as stream:
            await stream.until("caught-up")
            await api.write("tenant42:b", 1)
            frames = [await stream.next(), await stream.next()]
            assert {frame.fields["topic"] for frame in frames} == {"tenant42:b"}
            assert frames[-1].positions == {"tenant42:a": 1, "tenant42:b": 1}
        await api.write("tenant42:c", 1)
        async with listening(api, answer.body["stream_url"]) as stream:
            frames = (await stream.until("record"))[1:]
            while frames[-1].fields["topic"] != "tenant42:c":
                frames += await stream.until("record")
            assert frames[-1].seqs == [1], "also what came while nobody was listening"


@on_loop
async def test_a_partition_is_named_by_its_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/wide", {"partitions": 4})
        await api.write("wide", "x", partition=3)
        answer = await api.post("/v0/watch", {"topics": {"wide": {"partition": 1}, "wide#3": {}}})
        assert list(answer.body["topics"]) == ["wide#1", "wide#3"]
        async with listening(api, answer.body["stream_url"]) as stream:
            frames = (await stream.until("record"))[1:]
            assert (frames[-1].fields["partition"], frames[-1].positions["wide#3"]) == (3, 1)


# ---- going on


@on_loop
async def test_a_session_goes_on_where_it_was_and_back_to_the_last_event(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1, 2, 3, 4)
        url = await watching(api, {"jobs": {}}, limit=1)
        async with listening(api, url) as stream:
            frames = await stream.until("caught-up")
        second, fourth = frames[2], frames[4]
        await api.write("jobs", 5)
        async with listening(api, url) as stream:
            assert (await stream.next()).positions == {"jobs": 4}
            assert (await stream.next()).seqs == [5], "without a word, at what was sent last"
        async with listening(api, url, {"Last-Event-ID": str(second.id)}) as stream:
            assert (await stream.next()).positions == {"jobs": 2}
            assert [(await stream.next()).seqs for _ in range(3)] == [[3], [4], [5]], "back"
            await stream.next()
        async with listening(api, url, {"Last-Event-ID": str(fourth.id)}) as stream:
            assert (await stream.next()).positions == {"jobs": 4}
        future = await api.post("/v0/watch", {"topics": {"jobs": {"from_seq": 2}}})
        async with listening(api, future.body["stream_url"], {"Last-Event-ID": str(fourth.id)}) as stream:
            assert (await stream.next()).positions == {"jobs": 2}, "never forward"


@on_loop
async def test_a_last_event_id_that_is_none_is_complained_of_and_ignored(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        url = await watching(api, {"jobs": {}})
        for wrong in ("nonsense", "e30x", "eyJqb2JzIjoiMSJ9", "eyIkYXQiOjF9"):
            async with listening(api, url, {"Last-Event-ID": wrong}) as stream:
                first, complaint = [await stream.next() for _ in range(2)]
                assert first.retry == 2000
                assert (complaint.event, complaint.fields["code"], complaint.id) == ("error", 400, None)
                assert "Last-Event-ID" in complaint.fields["error"]


@on_loop
async def test_a_new_session_goes_on_from_a_cursor(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1, 2, 3)
        await api.write("audit", 1)
        async with listening(api, await watching(api, {"jobs": {}, "audit": {}}, limit=2)) as stream:
            frames = await stream.until("record")
        cursor = frames[-1].id
        answer = await api.post("/v0/watch", {"cursor": cursor, "topics": {"jobs": {}, "audit": {"tail": True}}})
        assert {key: each["from_seq"] for key, each in answer.body["topics"].items()} == decoded(str(cursor))
        alone = await api.post("/v0/watch", {"cursor": cursor})
        assert alone.body["topics"] == answer.body["topics"], "which topics, the cursor knows as well"


@on_loop
async def test_a_topic_that_was_made_anew_is_told_to_who_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1, 2, 3)
        url = await watching(api, {"jobs": {}})
        async with listening(api, url) as stream:
            last = (await stream.until("caught-up"))[-1]
        await api.delete("/v0/topics/jobs")
        await api.write("jobs", *range(5))
        for _ in range(2):
            async with listening(api, url, {"Last-Event-ID": str(last.id)}) as stream:
                frames = (await stream.until("caught-up"))[1:]
                assert gist(frames[1:]) == [("record", [1, 2, 3, 4, 5]), ("caught-up", "jobs")]
                told = frames[0].fields
                assert (told["reason"], told["gap_from"], told["gap_to"]) == ("recreated", 1, 5)
        async with listening(api, url, {"Last-Event-ID": str(frames[-1].id)}) as stream:
            assert (await stream.until("caught-up"))[1:-1] == [], "once told, it is not told again"


@on_loop
async def test_a_topic_that_is_gone_is_told_to_who_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        await api.write("rest", 1)
        url = await watching(api, {"jobs": {}, "rest": {}})
        await api.delete("/v0/topics/jobs")
        async with listening(api, url) as stream:
            frames = await stream.until("caught-up")
            assert gist(frames[1:]) == [("topic-deleted", "jobs"), ("record", [1]), ("caught-up", "rest")]
        async with listening(api, url) as stream:
            assert gist((await stream.until("caught-up"))[1:]) == [("caught-up", "rest")], "once"


@on_loop
async def test_more_topics_than_an_id_can_name(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        topics = [f"t{number}" for number in range(65)]
        await asyncio.gather(*(api.write(topic, 1) for topic in topics))
        url = await watching(api, {topic: {} for topic in topics})
        seen: list[Frame] = []
        async with listening(api, url) as stream:
            while sum(frame.event == "caught-up" for frame in seen) < len(topics):
                seen.append(await stream.next())
        assert all(len(str(frame.id)) < 80 and "$at" in frame.positions for frame in seen)
        answer = await api.post("/v0/watch", {"cursor": seen[-1].id, "topics": {topic: {} for topic in topics}})
        assert {each["from_seq"] for each in answer.body["topics"].values()} == {1}
        records = [frame for frame in seen if frame.event == "record"]
        async with listening(api, url, {"Last-Event-ID": str(records[40].id)}) as stream:
            again: list[Frame] = []
            while sum(frame.event == "record" for frame in again) < 24:
                again.append(await stream.next())
        names = {frame.fields["topic"] for frame in again if frame.event == "record"}
        assert names == {frame.fields["topic"] for frame in records[41:]}


# ---- one stream at a time, and how it ends


@on_loop
async def test_a_second_stream_takes_over(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        url = await watching(api, {"jobs": {}})
        async with listening(api, url) as first:
            await first.until("caught-up")
            async with listening(api, url) as second:
                (last,) = await first.rest()
                assert (last.event, last.fields["code"]) == ("error", 409)
                await api.write("jobs", 2)
                await second.next()
                assert gist(await second.until("record"))[-1] == ("record", [2])
                assert (await api.get("/v0/metrics", Accept="application/json")).body["topics_sse_connections"] == 1


@on_loop
async def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        streams = [listening(api, await watching(api, {"jobs": {}})) for _ in range(3)]
        open_streams = [await stream.__aenter__() for stream in streams]
        for stream in open_streams:
            await stream.until("caught-up")
    for stream, context in zip(open_streams, streams, strict=True):
        (last,) = await stream.rest()
        assert (last.event, last.fields["code"]) == ("error", 503)
        await context.__aexit__(None, None, None)


@on_loop
async def test_heartbeats_come_when_nothing_else_does(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        async with listening(api, await watching(api, {"jobs": {}}, heartbeat_ms=1)) as stream:
            await stream.until("caught-up")
            beat = await stream.next(beats=True)
            assert re.fullmatch(r"hb \d{13}", beat.comment) and beat.id is None


@on_loop
async def test_an_old_client_gets_the_same_events_bare(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        async with listening(api, await watching(api, {"jobs": {}}), version="1.0") as stream:
            assert "transfer-encoding" not in stream.headers and stream.headers["connection"] == "close"
            assert gist((await stream.until("caught-up"))[1:]) == [("record", [1]), ("caught-up", "jobs")]


@on_loop
async def test_a_head_request_opens_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        url = await watching(api, {"jobs": {}})
        async with listening(api, url) as stream:
            await stream.until("caught-up")
            answer = await api.call("HEAD", url)
            assert (answer.status, answer.raw) == (200, b"")
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            await api.write("jobs", 2)
            assert (await stream.next()).seqs == [2], "nor takes it over"


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("*/*", 200),
        ("text/html, text/event-stream;q=0.9", 200),
        ("application/json", 406),
        ("text/html", 406),
    ],
)
@on_loop
async def test_accept(tmp_path: Path, accept: str, status: int) -> None:
    async with serving(tmp_path) as api:
        await api.write("jobs", 1)
        url = await watching(api, {"jobs": {}})
        async with listening(api, url, {"Accept": accept}) as stream:
            assert stream.status == status


# ---- who may


@on_loop
async def test_keys_scopes_and_prefixes(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await api.write("tenant42:jobs", 1)
        await api.write("other", 1)
        mine = await watching(api, {"other": {}, "tenant42:jobs": {}})

        api.key = "writer-secret"
        assert (await api.post("/v0/watch", {"topics": {"other": {}}})).refusal == (403, "forbidden")
        api.key = "tenant-secret"
        for topics in ({"other": {}}, {"tenant42:jobs": {}, "other": {}}, {"*": {}}, {"tenant4*": {}}):
            assert (await api.post("/v0/watch", {"topics": topics})).refusal == (403, "forbidden"), topics
        assert (await api.post("/v0/watch", {"topics": {"tenant42:*": {}}})).status == 200
        assert (await api.get(mine)).refusal == (401, "unauthorized"), "a wid is no key"
        api.key = None
        assert (await api.get(mine)).refusal == (401, "unauthorized")
        assert (await api.post("/v0/watch", {"topics": {"other": {}}})).refusal == (401, "unauthorized")
        api.key = "all-secret"
        async with listening(api, mine) as stream:
            assert stream.status == 200
        assert (await api.get("/v0/watch/wid_AAAAAAAAAAAAAAAAAAAAAA")).refusal == (404, "not_found")


@on_loop
async def test_a_token_in_the_address_opens_the_stream_and_no_more_than_it_is_for(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await api.write("tenant42:jobs", 1)
        await api.write("other", 1)
        url = await watching(api, {"tenant42:jobs": {}})
        both = await watching(api, {"tenant42:jobs": {}, "other": {}})
        token = (await api.post("/v0/watch/token", {"topics": ["tenant42:*"]})).body["token"]
        api.key = None
        for secret in (token, "all-secret"):
            async with listening(api, f"{url}?token={secret}") as stream:
                assert gist((await stream.until("caught-up"))[1:])[-1] == ("caught-up", "tenant42:jobs")
        assert (await api.get(f"{url}?token=wrong")).refusal == (401, "unauthorized")
        assert (await api.get(f"{both}?token={token}")).refusal == (403, "forbidden")
        assert (await api.post(f"/v0/watch?token={token}", {"topics": {"tenant42:jobs": {}}})).status == 401


@on_loop
async def test_streams_are_bounded(tmp_path: Path) -> None:
    async with serving(tmp_path, max_sse_connections=1) as api:
        await api.write("jobs", 1)
        urls = [await watching(api, {"jobs": {}}) for _ in range(2)]
        async with listening(api, urls[0]) as stream:
            await stream.until("caught-up")
            full = await api.get(urls[1])
            assert full.refusal == (429, "throttled") and full.error["detail"]["limit"] == "max_sse_connections"
