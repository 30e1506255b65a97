from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.api import Api, serving

PIPE = {"definition": "INSERT INTO TOPIC mine.alerts SELECT tag FROM STREAM mine.orders"}
REPORT = {"runner": "r1", "state": "running", "position": "mine.orders/0@7", "lag_records": 3, "output_rows_total": 9}


async def prepared(api: Api) -> None:
    for topic in ("mine.orders", "theirs"):
        assert (await api.put(f"/v0/topics/{topic}", {"alias": f"mine.{topic}.alias"})).status == 201
    assert (await api.put("/v0/tables/mine.t", {"format": "delta", "location": "/d", "key": ["id"]})).status == 201


async def posted(api: Api, path: str, body: Any = None) -> Any:
    return await api.call("POST", path, {} if body is None else body)


@on_loop
async def test_the_life_of_a_pipeline(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await prepared(api)
        made = await api.put("/v0/pipelines/mine.p", PIPE | {"options": {"trigger_ms": 7}})
        assert made.status == 201 and made.body["created"]
        assert (await api.put("/v0/pipelines/mine.p", PIPE | {"options": {"trigger_ms": 7}})).status == 200
        state = (await api.get("/v0/pipelines/mine.p")).without_performance()
        assert (state["kind"], state["condition"], state["report"]) == ("insert", "waiting", None)
        assert state["config"]["options"]["trigger_ms"] == 7
        orders = await posted(api, "/v0/pipelines/mine.p/report", REPORT | {"logs": [_line("hello")]})
        assert orders.without_performance() == {
            "pipeline": "mine.p",
            "exists": True,
            "paused": False,
            "digest": state["digest"],
        }
        taken = await posted(api, "/v0/pipelines/mine.p/report", REPORT | {"runner": "r2"})
        assert taken.refusal == (409, "pipeline_taken") and taken.error["detail"]["runner"] == "r1"
        assert (await api.get("/v0/pipelines/mine.p")).body["report"]["lag_records"] == 3
        assert (await api.get("/v0/pipelines/mine.p/logs?limit=5")).body["logs"] == [_line("hello")]
        before = (await api.get("/v0/pipelines")).body["digest"]
        assert (await posted(api, "/v0/pipelines/mine.p/pause")).body["paused"] is True
        assert (await api.get("/v0/pipelines")).body["digest"] != before
        assert (await posted(api, "/v0/pipelines/mine.p/resume")).body["paused"] is False
        assert (await api.get("/v0/pipelines")).body["digest"] == before
        assert (await api.call("DELETE", "/v0/pipelines/mine.p")).body["deleted"] is True
        assert (await posted(api, "/v0/pipelines/mine.p/pause")).refusal == (404, "pipeline_not_found")
        assert (await posted(api, "/v0/pipelines/mine.p/report", REPORT)).body["exists"] is False


def _line(message: str) -> dict[str, Any]:
    return {"ts": 1, "level": "info", "message": message}


@on_loop
async def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await prepared(api)
        wrong = await api.put("/v0/pipelines/p", {"definition": "INSERT INTO TOPIC t SELECT tag FRO STREAM x"})
        assert wrong.refusal == (400, "invalid_sql") and wrong.error["detail"]["column"] > 1
        assert (await api.put("/v0/pipelines/p", {})).refusal == (400, "invalid_request")
        missing = {"definition": "INSERT INTO TOPIC t SELECT tag FROM STREAM nothing"}
        assert (await api.put("/v0/pipelines/p", missing)).refusal == (404, "topic_not_found")
        assert (await api.put("/v0/pipelines/routes:x", PIPE)).refusal == (400, "invalid_request")
        for body, field in (
            ({}, "runner"),
            (REPORT | {"runner": ""}, "runner"),
            (REPORT | {"state": "fine"}, "state"),
            (REPORT | {"lag_ms": "1"}, "lag_ms"),
            (REPORT | {"logs": [_line("x")] * 1001}, "logs"),
        ):
            answer = await posted(api, "/v0/pipelines/p/report", body)
            assert answer.refusal == (400, "invalid_request") and answer.error["detail"]["field"] == field


@on_loop
async def test_a_key_needs_every_name(tmp_path: Path) -> None:
    keys = "all,few:read+write+admin:mine,reader:read:mine"
    async with serving(tmp_path, api_keys=keys) as api:
        api.key = "all"
        await prepared(api)
        for name, text in (
            ("mine.p", PIPE["definition"]),
            ("mine.reads", "INSERT INTO TOPIC mine.x SELECT tag FROM STREAM theirs"),
            ("mine.writes", "INSERT INTO TOPIC theirs SELECT tag FROM STREAM mine.orders"),
            ("theirs", PIPE["definition"]),
        ):
            assert (await api.put(f"/v0/pipelines/{name}", {"definition": text})).status == 201
        sql = {"sql": "ALTER TOPIC theirs ADD SOURCE mine.t ON INSERT"}
        assert (await posted(api, "/v0/sql", sql)).status == 200
        api.key = "few"
        listed = (await api.get("/v0/pipelines")).body["pipelines"]
        assert [each["pipeline"] for each in listed] == ["mine.p", "routes:mine.t"]
        assert (await api.get("/v0/pipelines/routes:mine.t")).status == 200
        for name in ("mine.reads", "mine.writes", "theirs"):
            path = f"/v0/pipelines/{name}"
            answers = [await api.get(path), await api.get(f"{path}/logs"), await api.call("DELETE", path)]
            answers += [await posted(api, f"{path}/pause"), await posted(api, f"{path}/report", REPORT)]
            answers.append(await api.put(path, PIPE))
            assert {answer.status for answer in answers} == {403}, name
        for text in (
            "INSERT INTO TOPIC mine.x SELECT tag FROM STREAM theirs",
            "INSERT INTO TOPIC mine.x SELECT tag FROM STREAM mine.theirs.alias",
            "INSERT INTO TOPIC mine.theirs.alias SELECT tag FROM STREAM mine.orders",
            "INSERT INTO TOPIC mine.x SELECT o.tag FROM STREAM mine.orders o JOIN theirs ON true",
        ):
            assert (await api.put("/v0/pipelines/mine.q", {"definition": text})).status == 403, text
        for name, text in (
            ("mine.reads", PIPE["definition"]),
            ("mine.q", "INSERT INTO TOPIC mine.x SELECT tag FROM STREAM mine.theirs.alias"),
            ("mine.q", "INSERT INTO TOPIC mine.x SELECT o.tag FROM STREAM mine.orders o JOIN theirs ON true"),
        ):
            sql = {"sql": f'CREATE OR REPLACE PIPELINE "{name}" AS {text}'}
            assert (await posted(api, "/v0/sql", sql)).status == 403, name
        for sql_text in (
            'ALTER PIPELINE "mine.reads" PAUSE',
            'DROP PIPELINE "mine.writes"',
            'DESCRIBE PIPELINE "mine.reads"',
        ):
            assert (await posted(api, "/v0/sql", {"sql": sql_text})).status == 403, sql_text
        api.key = "reader"
        assert (await api.get("/v0/pipelines/mine.p")).status == 200
        assert (await posted(api, "/v0/pipelines/mine.p/report", REPORT)).status == 403
        assert (await posted(api, "/v0/pipelines/mine.p/pause")).status == 403


@on_loop
async def test_key_with_prefixes_names_no_place_of_a_runner(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,few:read+write+admin:mine") as api:
        api.key = "all"
        await prepared(api)
        api.key = "few"
        table = {"format": "csv", "location": "/etc"}
        variable = {"format": "csv", "location_env": "HOME"}
        into = "APPEND INTO DELTA.'/etc/cron.d' FROM STREAM mine.orders"
        checkpoint = PIPE | {"options": {"checkpoint": "/etc"}}
        tried = [await api.put("/v0/tables/mine.new", body) for body in (table, variable)]
        tried += [await api.put("/v0/pipelines/mine.new", body) for body in ({"definition": into}, checkpoint)]
        for text in (
            "REGISTER TABLE mine.new USING CSV LOCATION '/etc'",
            f'CREATE PIPELINE "mine.new" AS {into}',
        ):
            tried.append(await posted(api, "/v0/sql", {"sql": text}))
        assert [answer.refusal for answer in tried] == [(403, "forbidden")] * len(tried), [each.body for each in tried]
        assert (await api.put("/v0/pipelines/mine.new", PIPE)).status == 201, "what names no place"


@on_loop
async def test_foreign_names_are_forbidden_before_anything_else(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,few:read+write+admin:mine") as api:
        api.key = "few"
        for name in ("theirs.nothing", "routes:theirs.nothing", "bad name"):
            path = f"/v0/pipelines/{name.replace(' ', '%20')}"
            answers = [await api.get(path), await api.get(f"{path}/logs?limit=x"), await api.call("DELETE", path)]
            answers += [await posted(api, f"{path}/{verb}", {"x": 1}) for verb in ("pause", "resume", "report")]
            answers += [await api.put(path, {}), await api.put(path, b"nonsense")]
            assert {answer.status for answer in answers} == {403}, name
