"""The audit log of a whole server: what is in it, searched, verified, and after a crash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.accountrig import ADMIN_KEY, Served, accounts_served
from tests.server.api import Api, serving
from topics.core.auditchain import AUDIT_TOPIC


def lines_of(directory: Path) -> list[dict[str, Any]]:
    text = (directory / "data" / "audit" / "audit.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


async def admin(served: Served) -> Api:
    served.api.key = ADMIN_KEY
    return served.api


async def note(served: Served, name: str) -> None:
    await served.context.audit.note("tried", name, key="key-1", over="http")


@on_loop
async def test_what_administers_and_destroys_is_noted_before_it_is_done(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await api.put("/v0/topics/t", {})
        await api.write("t", 1, 2)
        await api.post("/v0/topics/t/delete", {"before_seq": 2})
        await api.post("/v0/sql", {"sql": "CREATE TOPIC made; SELECT 'DROP'; DROP TOPIC made"})
        await api.delete("/v0/topics/t")
        await api.put("/v0/topics/t", {"type": "nonsense"})
        await api.get("/v0/topics")
    lines = lines_of(tmp_path)
    assert [(line["action"], line["name"], line["outcome"]) for line in lines] == [
        ("PUT /v0/topics/{topic}", "t", "begun"),
        ("PUT /v0/topics/{topic}", "t", "done"),
        ("SQL CreateTopic", "made", "begun"),
        ("SQL DropTopic", "made", "begun"),
        ("SQL CreateTopic", "made", "done"),
        ("SQL DropTopic", "made", "done"),
        ("DELETE /v0/topics/{topic}", "t", "begun"),
        ("DELETE /v0/topics/{topic}", "t", "done"),
        ("PUT /v0/topics/{topic}", "t", "begun"),
        ("PUT /v0/topics/{topic}", "t", "invalid_request"),
    ]
    assert {(line["key"], line["over"], line["address"]) for line in lines} == {("key-1", "http", "127.0.0.1")}


@on_loop
async def test_a_name_in_the_body_a_group_and_a_backup_are_noted_as_well(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await api.post("/v1/heaps", {"topic": "jobs"})
        await api.write("t", 1)
        await api.post("/v0/topics/t/groups/g/reset", {"to": "earliest"})
        await api.delete("/v0/topics/t/groups/g")
        assert (await api.get("/v0/backup")).status == 200
    lines = lines_of(tmp_path)
    assert [(line["action"], line["name"]) for line in lines] == [
        ("POST /v1/heaps", "jobs"),
        ("POST /v1/heaps", "jobs"),
        ("DELETE /v0/topics/{topic}/groups/{group}", "t"),
        ("DELETE /v0/topics/{topic}/groups/{group}", "t"),
        ("GET /v0/backup", ""),
    ]


@on_loop
async def test_it_is_searched_and_paged_the_newest_first(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        for number in range(7):
            await api.put(f"/v0/topics/t{number}", {})
        await served.signed_up()
        done = "/v1/audit?page_size=3&outcome=done"
        first = (await api.get(done)).body
        assert [entry["name"] for entry in first["entries"]] == ["ada@example.org", "t6", "t5"]
        second = (await api.get(f"{done}&cursor={first['next_cursor']}")).body
        assert [entry["name"] for entry in second["entries"]] == ["t4", "t3", "t2"]
        third = (await api.get(f"{done}&cursor={second['next_cursor']}")).body
        assert [entry["name"] for entry in third["entries"]] == ["t1", "t0"] and "next_cursor" not in third
        for query, names in (
            ("action=set_up", ["ada@example.org"]),
            ("name=t3", ["t3", "t3"]),
            ("who=key-1&name=t1&outcome=begun", ["t1"]),
            ("text=EXAMPLE.org", ["ada@example.org"]),
            ("outcome=nothing", []),
            (f"from_ts={first['entries'][0]['at'] + 1000}", []),
            (f"outcome=done&to_ts={third['entries'][-1]['at']}", []),
        ):
            assert [entry["name"] for entry in (await api.get(f"/v1/audit?{query}")).body["entries"]] == names, query


@on_loop
async def test_only_admins_see_it_and_nobody_touches_its_topic(tmp_path: Path) -> None:
    keys = f"{ADMIN_KEY},reader:r,narrow:a:t"
    async with accounts_served(tmp_path, api_keys=keys) as served:
        api = await admin(served)
        await api.put("/v0/topics/t", {})
        assert (await api.get("/v1/audit")).body["entries"]
        assert [topic["topic"] for topic in (await api.get("/v0/topics")).body["topics"]] == ["t"]
        for method, path, body in (
            ("GET", f"/v0/topics/{AUDIT_TOPIC}", None),
            ("POST", f"/v0/topics/{AUDIT_TOPIC}", {"records": [{"data": 1}]}),
            ("POST", f"/v0/topics/{AUDIT_TOPIC}/diff", {}),
            ("DELETE", f"/v0/topics/{AUDIT_TOPIC}", None),
            ("POST", "/v0/watch", {"topics": {AUDIT_TOPIC: {}}}),
        ):
            refused = await api.call(method, path, body)
            assert refused.status in (400, 403), (method, path, refused.body)
        for text in (f'SELECT * FROM "{AUDIT_TOPIC}"', f'INSERT INTO "{AUDIT_TOPIC}" VALUES (1)'):
            assert (await api.post("/v0/sql", {"sql": text})).status in (400, 403, 404), text
        for key in ("reader", "narrow"):
            other = Api(served.server.url)
            other.key = key
            assert (await other.get("/v1/audit")).status == 403


@on_loop
async def test_an_open_server_keeps_it_too_and_guards_it_as_well(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {})
        assert (await api.get("/v1/audit")).body["entries"][0]["name"] == "t"
        refused = await api.post(f"/v0/topics/{AUDIT_TOPIC}", {"records": [{"data": 1}]})
        assert refused.refusal == (403, "forbidden")
        assert (await api.get("/v1/audit/verify")).body["intact"] is True


@on_loop
async def test_keys_that_are_refused_are_noted_up_to_a_rate(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.clock.stand_still()
        stranger = Api(served.server.url)
        stranger.key = "not-a-key-at-all"
        for _ in range(30):
            assert (await stranger.get("/v0/topics")).status == 401
        assert (await Api(served.server.url).get("/v0/topics")).status == 401
        served.clock.ahead_ms = 61_000
        await stranger.get("/v0/topics")
        api = await admin(served)
        refused = (await api.get("/v1/audit?action=key_refused&page_size=100")).body["entries"]
        assert len(refused) == 21 and refused[0]["detail"] == {"left_out": 10}
        assert "not-a-key" not in json.dumps(refused)


@on_loop
async def test_what_somebody_changed_is_found(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        for name in ("a", "b", "c"):
            await note(served, name)
        await api.get("/v1/audit")
        whole = (await api.get("/v1/audit/verify")).body
        assert whole["intact"] and (whole["line_count"], whole["first_seq"], whole["last_seq"]) == (3, 1, 3)
        path = tmp_path / "data" / "audit" / "audit.jsonl"
        text = path.read_text()
        first, second, third = text.splitlines(keepends=True)
        for changed, why in (
            (first + second.replace('"name":"b"', '"name":"x"') + third, "was changed"),
            (first + third, "taken out"),
            (first + second, "lacks line 3"),
            (second + third, ""),
        ):
            path.write_text(changed)
            verdict = (await api.get("/v1/audit/verify")).body
            assert verdict["intact"] is (not why) and why in verdict.get("problem", ""), (why, verdict)
        path.write_text(text)
        assert (await api.get("/v1/audit/verify")).body["intact"]


@on_loop
async def test_after_a_crash_or_a_restore_file_and_topic_are_brought_together(tmp_path: Path) -> None:
    path = tmp_path / "data" / "audit" / "audit.jsonl"
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await note(served, "a")
        await api.get("/v1/audit")
        await note(served, "b")
        served.context.audit._unmirrored.clear()  # as a crash leaves it: the file has a line that the topic lacks
    with path.open("ab") as file:
        file.write(b'{"seq":3,"torn')
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await note(served, "c")
        entries = (await api.get("/v1/audit")).body["entries"]
        assert [(entry["seq"], entry["name"]) for entry in entries] == [(3, "c"), (2, "b"), (1, "a")]
        assert (await api.get("/v1/audit/verify")).body["intact"]
    kept = path.read_bytes()
    path.unlink()
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        assert path.read_bytes() == kept
        api = await admin(served)
        await note(served, "d")
        assert (await api.get("/v1/audit/verify")).body["last_seq"] == 4


@on_loop
async def test_a_disk_that_refuses_the_line_refuses_the_deed(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await api.put("/v0/topics/t", {})
        append = served.context.audit._file.append

        def full(first_seq: int, lines: list[bytes], sync: bool = True) -> None:
            raise OSError(28, "No space left on device", "audit.jsonl")

        served.context.audit._file.append = full
        refused = await api.delete("/v0/topics/t")
        assert refused.status == 503 and "No space left" in refused.error["message"]
        served.context.audit._file.append = append
        assert (await api.get("/v0/topics/t")).status == 200
        assert (await api.delete("/v0/topics/t")).body["deleted"] is True
        assert (await api.get("/v1/audit/verify")).body["intact"]


@on_loop
async def test_config_changes_say_old_and_new_by_field(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        api = await admin(served)
        await api.put("/v0/topics/t", {"ttl_ms": 5000})
        await api.patch("/v0/topics/t", {"ttl_ms": 9000, "cap_records": 7})
        await api.patch("/v0/topics/t", {"cap_records": 7})
        await api.post("/v1/heaps", {"topic": "h", "max_retries_default": 5})
        await api.post("/v0/sql", {"sql": "ALTER TOPIC t SET (cap_records = 8); ALTER TOPIC t SET (cap_records = 9)"})
        await api.put("/v0/topics/u", {})
        await api.put("/v0/routers/r", {"source": "t", "dest": "u"})
        await api.put("/v0/routers/r", {"source": "t", "dest": "u", "preserve_tag": False})
        await api.delete("/v0/topics/t")
        lines = (await api.get("/v1/audit?outcome=done&page_size=100")).body["entries"]
    told = [(line["name"], line["detail"]) for line in reversed(lines)]
    assert told[0] == ("t", {"created": True, "changed": {"ttl_ms": {"old": 0, "new": 5000}}}), told
    assert told[1:3] == [
        ("t", {"changed": {"ttl_ms": {"old": 5000, "new": 9000}, "cap_records": {"old": 0, "new": 7}}}),
        ("t", {"changed": {}}),
    ]
    assert told[3][0] == "h" and told[3][1]["changed"]["max_retries"] == {"old": 3, "new": 5}
    assert [detail["changed"] for _, detail in told[4:6]] == [
        {"cap_records": {"old": 7, "new": 8}},
        {"cap_records": {"old": 8, "new": 9}},
    ]
    assert told[7][1] == {"created": True, "changed": {"source": _new("t"), "dest": _new("u")}}, told[7]
    assert told[8][1] == {"changed": {"preserve_tag": {"old": True, "new": False}}}
    assert told[9] == ("t", {}), "what is gone has no configuration"


def _new(value: object) -> dict[str, object]:
    return {"old": None, "new": value}


@on_loop
async def test_statements_behind_a_failed_one_are_not_recorded_as_done(tmp_path: Path) -> None:
    text = "CREATE TOPIC a; DROP TOPIC missing; CREATE TOPIC b"
    async with accounts_served(tmp_path, api_keys=f"{ADMIN_KEY},reader:r") as served:
        api = await admin(served)
        assert (await api.post("/v0/sql", {"sql": text})).status == 404
        api.key = "reader"
        assert (await api.post("/v0/sql", {"sql": "DROP TOPIC a; DROP TOPIC a"})).status == 403
    assert [(line["action"], line["outcome"]) for line in lines_of(tmp_path)] == [
        ("SQL CreateTopic", "begun"),
        ("SQL DropTopic", "begun"),
        ("SQL CreateTopic", "begun"),
        ("SQL CreateTopic", "done"),
        ("SQL DropTopic", "topic_not_found"),
        ("SQL CreateTopic", "not_begun"),
        ("SQL DropTopic", "begun"),
        ("SQL DropTopic", "begun"),
        ("SQL DropTopic", "forbidden"),
        ("SQL DropTopic", "not_begun"),
    ]
