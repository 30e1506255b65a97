from __future__ import annotations

from pathlib import Path

from tests.client.rig import on_loop
from tests.server.api import serving

DELTA = {"format": "delta", "location": "/d", "key": ["id"]}


@on_loop
async def test_put_look_list_and_delete(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.put("/v0/tables/chat.messages", DELTA | {"columns": [{"name": "id", "type": "bigint"}]})
        assert made.status == 201 and made.body["created"]
        found = (await api.get("/v0/tables/chat.messages")).without_performance()
        assert {name: found[name] for name in DELTA} == DELTA
        assert found["columns"] == [{"name": "id", "type": "bigint", "nullable": True}] and found["routes"] == []
        assert (await api.put("/v0/tables/chat.messages", DELTA)).status == 200
        listed = (await api.get("/v0/tables")).body["tables"]
        assert [(table["table"], table["route_count"]) for table in listed] == [("chat.messages", 0)]
        assert (await api.get("/v0/tables?full=true")).body["tables"][0]["columns"] == []
        assert (await api.call("DELETE", "/v0/tables/chat.messages")).body["deleted"] is True
        assert (await api.call("DELETE", "/v0/tables/chat.messages")).body["deleted"] is False
        assert (await api.get("/v0/tables/chat.messages")).refusal == (404, "table_not_found")


@on_loop
async def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for body, field in (
            ({}, "format"),
            (DELTA | {"format": "oracle"}, "format"),
            (DELTA | {"key": "id"}, "key"),
            (DELTA | {"location": "s3://a:b@c"}, "location"),
            (DELTA | {"columns": [{"name": "id"}]}, "columns[0].type"),
            (b'{"format": "delta", "format": "csv"}', "format"),
        ):
            answer = await api.put("/v0/tables/t", body)
            assert answer.refusal == (400, "invalid_request"), body
            assert answer.error["detail"]["field"] == field, answer.body
        assert (await api.put("/v0/tables/a%20b", DELTA)).refusal == (400, "invalid_request")


@on_loop
async def test_a_key_sees_its_own_tables(tmp_path: Path) -> None:
    keys = "all,few:read+admin:mine"
    async with serving(tmp_path, api_keys=keys) as api:
        api.key = "all"
        for name in ("mine.a", "theirs"):
            assert (await api.put(f"/v0/tables/{name}", DELTA)).status == 201
        api.key = "few"
        assert [table["table"] for table in (await api.get("/v0/tables")).body["tables"]] == ["mine.a"]
        assert (await api.get("/v0/tables/theirs")).status == 403
        assert (await api.put("/v0/tables/theirs", DELTA)).status == 403
        assert (await api.call("DELETE", "/v0/tables/theirs")).status == 403
