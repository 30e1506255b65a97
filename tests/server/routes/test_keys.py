"""Managed keys over a real socket: made, used, revoked; on every way in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.client.rig import on_loop, soon
from tests.server.accountrig import ADMIN_KEY, Served, accounts_served
from tests.server.api import Api, serving
from topics.core.accountcommands import NoteKeysUsed
from topics.errors import Unauthorized
from topics.server import managedkeys, upkeep

KEY = {"name": "ci", "scopes": ["read", "write"]}


async def made(served: Served, **fields: object) -> dict[str, str]:
    served.api.key = ADMIN_KEY
    answer = await served.api.post("/v1/keys", KEY | fields)
    assert answer.status == 201, answer.body
    return answer.body


def with_key(served: Served, key: str) -> Api:
    api = Api(served.server.url)
    api.key = key
    return api


@on_loop
async def test_a_key_from_its_making_to_its_end(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served, prefixes=["tenant:"])
        assert new["key"].startswith(f"dh_{new['id']}_") and new["created_by"] == "key-1"
        api = with_key(served, new["key"])
        await api.write("tenant:a", 1)
        assert (await api.post("/v0/topics/other", {"records": [{"data": 1}]})).refusal == (403, "forbidden")
        assert (await api.delete("/v0/topics/tenant:a")).refusal == (403, "forbidden")
        assert (await api.get("/v1/auth/me")).body["name"] == "ci"
        shown = (await served.api.get(f"/v1/keys/{new['id']}")).body
        assert "key" not in shown and shown["status"] == "active" and shown["scopes"] == ["read", "write"]
        revoked = await served.api.delete(f"/v1/keys/dh_{new['id']}")
        assert revoked.body["status"] == "revoked"
        refused = await api.get("/v0/topics")
        assert refused.refusal == (401, "unauthorized") and "revoked" in refused.error["message"]
        assert [key["status"] for key in (await served.api.get("/v1/keys")).body["keys"]] == ["revoked"]
        assert (await served.api.delete("/v1/keys/none")).refusal == (404, "NOT_FOUND")


@on_loop
async def test_a_key_survives_a_restart_and_is_nowhere_in_plain(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
    secret = new["key"].rpartition("_")[2].encode()
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        assert (await with_key(served, new["key"]).get("/v0/topics")).status == 200
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not [path for path in files if secret in path.read_bytes()]
    assert [path for path in files if b"$argon2id$" in path.read_bytes()]


@on_loop
async def test_a_key_expires(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served, expires_ts=served.clock.now_ms() + 60_000)
        api = with_key(served, new["key"])
        await api.write("t", 1)
        served.clock.ahead_ms = 61_000
        refused = await api.get("/v0/topics")
        assert refused.refusal == (401, "unauthorized") and "expired" in refused.error["message"]
        assert (await served.api.get(f"/v1/keys/{new['id']}")).body["status"] == "expired"


@on_loop
async def test_nobody_gives_away_more_than_they_have(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=f"{ADMIN_KEY},narrow:a:tenant.,little:a") as served:
        narrow = with_key(served, "narrow")
        assert (await narrow.post("/v1/keys", KEY)).status == 403
        assert (await narrow.get("/v1/keys")).status == 403
        assert (await with_key(served, "little").post("/v1/keys", KEY)).status == 403
        assert (await with_key(served, "little").post("/v1/keys", KEY | {"scopes": ["admin"]})).status == 201


@on_loop
async def test_a_body_that_is_no_key(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        served.api.key = ADMIN_KEY
        for fields, field in (
            ({"name": ""}, "name"),
            ({"scopes": ["root"]}, "scopes"),
            ({"scopes": "read"}, "scopes"),
            ({"prefixes": ["-"]}, "prefixes"),
            ({"expires_ts": 1}, "expires_ts"),
            ({"expires_ts": -1}, "expires_ts"),
        ):
            refused = await served.api.post("/v1/keys", KEY | fields)
            assert refused.status == 400 and refused.error["detail"]["field"] == field, refused.body
        assert not served.accounts.keys


@on_loop
async def test_a_key_is_compared_once_for_many_requests(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        compared = 0
        matches = served.context.hashing.matches

        async def counted(hashed: str, text: str) -> bool:
            nonlocal compared
            compared += 1
            return bool(await matches(hashed, text))

        served.context.hashing.matches = counted
        api = with_key(served, new["key"])
        answers = await asyncio.gather(*(api.get("/v0/topics") for _ in range(20)))
        assert {answer.status for answer in answers} == {200} and compared == 1
        wrong = with_key(served, new["key"][:-1] + ("0" if new["key"][-1] != "0" else "1"))
        for _ in range(5):
            assert (await wrong.get("/v0/topics")).refusal == (401, "unauthorized")
        assert compared == 2


@on_loop
async def test_more_keys_than_are_remembered_are_all_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managedkeys, "REMEMBERED_MAX", 1)
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        keys = [(await made(served))["key"] for _ in range(2)]
        for key in keys * 2:
            assert (await with_key(served, key).get("/v0/topics")).status == 200
            assert (await with_key(served, key[:-1] + "!").get("/v0/topics")).status == 401
            wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
            assert (await with_key(served, wrong).get("/v0/topics")).status == 401
        known = served.context.authenticator.managed
        assert len(known._verified) == len(known._refused) == 1
        with pytest.raises(Unauthorized, match="a known key is needed"):
            served.context.authenticator.owned("key:nothing")


@on_loop
async def test_who_guesses_has_to_wait(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        served.clock.stand_still()
        start = new["key"][:-6]
        statuses = [(await with_key(served, f"{start}{number:06x}").get("/v0/topics")).status for number in range(14)]
        assert statuses == [401] * 10 + [429] * 4
        known = with_key(served, ADMIN_KEY)
        assert (await known.get("/v0/topics")).status == 200
        served.clock.ahead_ms = 120_000
        assert (await with_key(served, new["key"]).get("/v0/topics")).status == 200


@on_loop
async def test_a_connection_that_stays_open_is_cut_off_too(tmp_path: Path) -> None:
    """The quick way of plain writes knows keys by their bytes."""
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        body = b'{"records":[{"data":1}]}'
        request = (
            b"POST /v0/topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n%b" % (new["key"].encode(), len(body), body)
        )
        reader, writer = await asyncio.open_connection(served.api.address.hostname, served.api.address.port)

        async def send() -> int:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
            return int(head.split()[1])

        assert [await send() for _ in range(4)] == [201, 200, 200, 200]
        await served.api.delete(f"/v1/keys/{new['id']}")
        assert [await send() for _ in range(2)] == [401, 401]
        writer.close()
        await writer.wait_closed()
        served.api.key = ADMIN_KEY
        assert (await served.api.get("/v0/topics/t")).body["head_seq"] == 4


@on_loop
async def test_an_open_stream_ends_with_its_key(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        api = with_key(served, new["key"])
        await api.write("t", 1)
        wid = (await api.post("/v0/watch", {"topics": {"t": {"from_seq": 0}}})).body["wid"]
        token = (await api.post("/v0/watch/token", {"scopes": ["read"], "wid": wid})).body["token"]
        stream = asyncio.create_task(Api(served.server.url).get(f"/v0/watch/{wid}?token={token}"))
        while not served.context.open_streams:
            await asyncio.sleep(0)
        await served.api.delete(f"/v1/keys/{new['id']}")
        answer = await stream
        assert answer.status == 200
        refused = await Api(served.server.url).get(f"/v0/watch/{wid}?token={token}")
        assert refused.refusal == (401, "unauthorized")


@on_loop
async def test_when_a_key_was_used_is_noted_for_many_at_once(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        first, second = await made(served), await made(served)
        noted: list[object] = []
        decide = served.context.host.decide
        served.context.host.decide = lambda command: noted.append(command) or decide(command)
        for key in (first, second, first):
            await with_key(served, key["key"]).get("/v0/topics")
        served.server._upkeep.note_used_keys()
        served.server._upkeep.note_used_keys()
        used = [command for command in noted if isinstance(command, NoteKeysUsed)]
        assert len(used) == 1 and set(used[0].key_ids) == {first["id"], second["id"]}
        shown = (await served.api.get(f"/v1/keys/{first['id']}")).body
        assert shown["last_used_ts"] >= shown["created_ts"]


@on_loop
async def test_used_key_shows_its_last_use_at_once(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        used, unused = await made(served), await made(served)
        await with_key(served, used["key"]).get("/v0/topics")
        for _ in range(2):
            listed = {key["id"]: key["last_used_ts"] for key in (await served.api.get("/v1/keys")).body["keys"]}
            assert listed[unused["id"]] is None and listed[used["id"]] >= used["created_ts"]
            shown = (await served.api.get(f"/v1/keys/{used['id']}")).body
            assert shown["last_used_ts"] >= used["created_ts"]
            served.server._upkeep.note_used_keys()


@on_loop
async def test_when_a_key_was_used_is_noted_each_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BEAT_S", 0.001)
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        new = await made(served)
        beats: list[int] = []
        noted = asyncio.Event()
        decide = served.context.host.decide

        def watched(command: object) -> object:
            if isinstance(command, NoteKeysUsed):
                beats.append(served.server._upkeep._beats)
                noted.set()
            return decide(command)

        served.context.host.decide = watched
        api = with_key(served, new["key"])
        for minute in (1, 2):
            noted.clear()
            await api.get("/v0/topics")
            await soon(noted.wait())
            assert len(beats) == minute
        assert [beat % upkeep.MINUTE_BEATS for beat in beats] == [0, 0], "a fact a minute, not a second"
        shown = (await served.api.get(f"/v1/keys/{new['id']}")).body
        assert shown["last_used_ts"] >= shown["created_ts"]


@on_loop
async def test_an_open_server_says_that_keys_do_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        answer = await api.post("/v1/keys", KEY)
        assert answer.status == 201 and "TOPICS_AUTH=1" in answer.body["warning"]
        me = (await api.get("/v1/auth/me")).body
        assert (me["authentication"], me["kind"]) == (False, "everybody")
        assert me["scopes"] == ["read", "write", "delete", "admin"]
        assert (await api.post("/v1/auth/login", {"email": "a@b", "password": "x"})).status in (409, 412)


@on_loop
async def test_a_name_with_markup_stays_text(tmp_path: Path) -> None:
    async with accounts_served(tmp_path, api_keys=ADMIN_KEY) as served:
        name = "<script>alert(1)</script>"
        new = await made(served, name=name)
        answer = await served.api.get(f"/v1/keys/{new['id']}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers.get("x-content-type-options") == "nosniff"
        assert json.loads(answer.raw)["name"] == name
