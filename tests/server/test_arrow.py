from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.client.rig import on_loop, settle, soon
from tests.server.api import Answer, Api, serving
from topics.core.records import DEFAULT_LIMITS
from topics.limits import ARROW_RECORDS_MAX
from topics.server import arrow
from topics.server.arrow import ARROW_STREAM, with_codecs
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.settings import Settings
from topics.testing import SimClock

ACCEPT = {"Accept": ARROW_STREAM}


def body(**columns: Any) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


# The first table loads pandas, which would hold up the loop that the server under test runs on, too.
body(data=["1"])


async def send(api: Api, path: str, content: bytes) -> Answer:
    return await api.call("POST", path, content, {"Content-Type": ARROW_STREAM})


async def read(api: Api, topic: str, **wanted: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    answer = await api.call("POST", f"/v0/topics/{topic}/diff", wanted, ACCEPT)
    assert (answer.status, answer.headers["content-type"]) == (200, ARROW_STREAM)
    return pa.ipc.open_stream(answer.raw).read_all().to_pylist(), json.loads(answer.headers["topics-page"])


@on_loop
async def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        content = body(data=['{"x":1}', None], tag=["a", None], node=[None, "n"], meta=['{"k":"v"}', None])
        written = await send(api, "/v0/topics/t?idempotency_key=k", content)
        assert written.status == 201, written.body
        assert written.body["seqs"] == [1, 2]
        again = await send(api, "/v0/topics/t?idempotency_key=k", content)
        assert (again.status, again.body["deduped"]) == (200, True)
        rows, page = await read(api, "t")
        assert [(row["seq"], row["node"], row["tag"], row["meta"], row["data"]) for row in rows] == [
            (1, None, "a", '{"k":"v"}', '{"x":1}'),
            (2, "n", None, None, "null"),
        ]
        by_json = (await api.post("/v0/topics/t/diff")).without_performance()
        assert {name: value for name, value in page.items() if name != "performance"} == {
            name: value for name, value in by_json.items() if name != "records"
        }


@on_loop
async def test_each_job_may_have_its_own_time_in_a_column(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/jobs", {"type": "queue"})
        delays = pa.array([None, 86_400_000, 0], pa.int64())
        assert (await send(api, "/v0/topics/jobs", body(data=["1", "2", "3"], delay_ms=delays))).status == 200
        assert (await send(api, "/v0/topics/jobs", body(data=["4"], not_before=[2**50]))).status == 200
        assert (await send(api, "/v0/topics/log", body(data=["1"], delay_ms=[5]))).refusal == (409, "not_a_queue")
        rows, _ = await read(api, "jobs")
        assert [row["state"] for row in rows] == ["ready", "delayed", "ready", "delayed"]


@on_loop
async def test_a_page_holds_more_than_one_of_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for _ in range(3):
            await send(api, "/v0/topics/t?return_seqs=false", body(data=["1"] * 10_000))
        rows, page = await read(api, "t", limit=ARROW_RECORDS_MAX)
        assert (len(rows), page["next_from_seq"], page["caught_up"]) == (30_000, 30_000, True)
        rows, page = await read(api, "t", limit=12_345, from_seq=7)
        assert ([rows[0]["seq"], rows[-1]["seq"]], page["lag"]) == ([8, 12_352], 30_000 - 12_352)


@on_loop
async def test_a_wait_ends_with_a_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        waiting = asyncio.ensure_future(soon(read(api, "t", wait_ms=30_000)))
        await api.write("t", 1)
        rows, page = await waiting
        assert ([row["data"] for row in rows], page["head_seq"]) == (["1"], 1)


@on_loop
async def test_a_loss_is_told_in_the_header(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 2})
        await api.write("t", 1, 2, 3)
        _, page = await read(api, "t")
        assert (page["tombstone"]["gap_from"], page["tombstone"]["gap_to"]) == (1, 1)


@on_loop
async def test_stages_take_records_once_at_their_place(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t")
        for _ in range(2):
            staged = await send(api, "/v0/topics/t/stage?stage=s&at=0", body(data=["1", "2"]))
            assert (staged.status, staged.body["count"]) == (200, 2)
        assert (await send(api, "/v0/topics/t/stage?stage=s&at=2", body(data=["3"]))).body["count"] == 3
        assert (await send(api, "/v0/topics/t/stage?stage=s&at=1", body(data=["3"]))).refusal == (409, "stage_conflict")
        assert (await send(api, "/v0/topics/t/stage?stage=x&at=1", body(data=["3"]))).refusal == (
            404,
            "stage_not_found",
        )
        assert (await send(api, "/v0/topics/t/stage", body(data=["3"]))).refusal == (400, "invalid_request")
        await api.post("/v0/publish", {"stages": ["s"], "producer_id": "p", "epoch": 1})
        rows, _ = await read(api, "t")
        assert [row["data"] for row in rows] == ["1", "2", "3"]


@on_loop
async def test_refusals_are_json(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        refused = await send(api, "/v0/topics/t", body(data=["1", "{"]))
        assert (refused.refusal, refused.error["detail"]["field"]) == ((400, "invalid_request"), "records[1].data")
        missing = await api.call("POST", "/v0/topics/none/diff", {}, ACCEPT)
        assert (missing.refusal, missing.headers["content-type"]) == ((404, "topic_not_found"), "application/json")
        elsewhere = await send(api, "/v0/publish", body(data=["1"]))
        assert elsewhere.refusal == (415, "unsupported_media_type")


@on_loop
async def test_who_takes_both_gets_arrow_unless_it_is_worth_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        for accept, kind in [
            (f"application/json, {ARROW_STREAM}", ARROW_STREAM),
            (f"{ARROW_STREAM.upper()}; q=0.5", ARROW_STREAM),
            (f"{ARROW_STREAM};q=0, */*", "application/json"),
            ("*/*", "application/json"),
            (f"{ARROW_STREAM}s", "application/json"),
        ]:
            answer = await api.call("POST", "/v0/topics/t/diff", {}, {"Accept": accept})
            assert (answer.status, answer.headers["content-type"]) == (200, kind), accept


@on_loop
async def test_a_server_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_is_installed", lambda: False)
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        refused = await api.call("POST", "/v0/topics/t/diff", {}, ACCEPT)
        assert refused.refusal == (406, "not_acceptable") and arrow.INSTALL in refused.error["message"]
        either = await api.call("POST", "/v0/topics/t/diff", {}, {"Accept": f"{ARROW_STREAM}, application/json"})
        assert (either.status, either.headers["content-type"]) == (200, "application/json")
        unread = await send(api, "/v0/topics/t", body(data=["1"]))
        assert unread.refusal == (415, "unsupported_media_type") and arrow.INSTALL in unread.error["message"]


@on_loop
async def test_an_answer_that_comes_when_nobody_waits_for_it_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_CODECS", ("topics.limits", "no_module_of_this_name_is_loaded_yet"))
    monkeypatch.setattr(arrow, "import_module", lambda name: None)
    context = Context(Settings(), DEFAULT_LIMITS, SimClock(), 0)
    answers: list[Response] = []
    parked: list[Reply] = []

    def park(context: Context, request: Request, reply: Reply) -> None:
        parked.append(reply)

    with_codecs(park, context, Request("POST", "/", "", {}, b"", 0), answers.append)
    (task,) = context.tasks
    while not parked:
        await asyncio.sleep(0)
    task.cancel()
    await settle()
    assert [answer.status for answer in answers] == [500], "it is told that it was interrupted"
    parked[0](Response(200))
    assert len(answers) == 1
