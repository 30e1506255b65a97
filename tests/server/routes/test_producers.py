from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.client.rig import on_loop
from tests.server.api import serving


@on_loop
async def test_producers_are_listed_and_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        named = {"records": [{"data": 1}], "producer_id": "a/b c", "epoch": 2, "sequence": 5}
        await api.post("/v0/topics/t", named)
        first = (await api.get("/v0/producers?topic=t")).without_performance()
        (producer,) = first["producers"]
        assert first == {"producers": [producer]} and producer == {
            "producer_id": "a/b c",
            "epoch": 2,
            "sequence": 5,
            "last_used_ts": producer["last_used_ts"],
            "one_off": False,
        }
        path = f"/v0/producers?producer_id={quote('a/b c', safe='')}&topic=t"
        gone = await api.call("DELETE", path)
        assert gone.without_performance() == {"producer_id": "a/b c", "forgotten": True, "topic": "t"}
        assert (await api.call("DELETE", path)).body["forgotten"] is False
        assert (await api.post("/v0/topics/t", named | {"epoch": 1})).status == 200, "nothing fences it any more"


@on_loop
async def test_producers_come_in_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for name in ("c", "a", "b", "x"):
            written = {"records": [{"data": 1}], "producer_id": name, "epoch": 0, "sequence": 0}
            await api.post("/v0/topics/t", written)
        page = await api.get("/v0/producers?topic=t&page_size=2")
        assert [producer["producer_id"] for producer in page.body["producers"]] == ["a", "b"]
        page = await api.get(f"/v0/producers?topic=t&page_size=2&cursor={page.body['next_cursor']}")
        assert [producer["producer_id"] for producer in page.body["producers"]] == ["c", "x"]
        assert "next_cursor" not in page.body


@on_loop
async def test_only_admins_see_producers_and_within_their_prefixes(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,mine:admin:a.,writer:read+write+delete") as api:
        api.key = "all"
        for topic in ("a.1", "b.1"):
            await api.post(f"/v0/topics/{topic}", {"records": [{"data": 1}]})
        api.key = "writer"
        assert (await api.get("/v0/producers?topic=a.1")).refusal == (403, "forbidden")
        assert (await api.call("DELETE", "/v0/producers?producer_id=p&topic=a.1")).refusal == (403, "forbidden")
        api.key = "mine"
        assert (await api.get("/v0/producers?topic=a.1")).status == 200
        assert (await api.get("/v0/producers?topic=b.1")).refusal == (403, "forbidden")
        assert (await api.call("DELETE", "/v0/producers?producer_id=p&topic=b.1")).refusal == (403, "forbidden")


@on_loop
async def test_tenants_list_and_forget_their_own_producers_of_batches(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,a:admin+write:a.,b:admin+write:b.") as api:
        for key in ("a", "b", "all"):
            api.key = key
            topic = f"{key}.t"
            await api.post(f"/v0/topics/{topic}", {"records": [{"data": 0}]})
            await api.post(f"/v0/topics/{topic}/stage", {"stage": "s", "records": [{"data": 1}]})
            assert (await api.post("/v0/publish", {"stages": ["s"], "producer_id": "p", "epoch": 1})).status == 200
        api.key = "a"
        (producer,) = (await api.get("/v0/producers")).body["producers"]
        assert (producer["producer_id"], producer["epoch"]) == ("p", 1)
        gone = await api.call("DELETE", "/v0/producers?producer_id=p")
        assert gone.without_performance() == {"producer_id": "p", "forgotten": True, "topic": None}
        assert (await api.get("/v0/producers")).body["producers"] == []
        api.key = "b"
        assert [each["producer_id"] for each in (await api.get("/v0/producers")).body["producers"]] == ["p"]
        api.key = "all"
        kept = [each["producer_id"] for each in (await api.get("/v0/producers")).body["producers"]]
        assert kept == ["p", "p @b."]


@pytest.mark.parametrize(
    ("method", "query", "refusal"),
    [
        ("GET", "?topic=none", (404, "topic_not_found")),
        ("GET", "?topic=a%20b", (400, "invalid_request")),
        ("GET", "?page_size=x", (400, "invalid_request")),
        ("GET", "?cursor=%21", (400, "invalid_request")),
        ("DELETE", "", (400, "invalid_request")),
        ("DELETE", f"?producer_id={'x' * 129}", (400, "invalid_request")),
        ("DELETE", "?producer_id=p&topic=none", (404, "topic_not_found")),
    ],
)
@on_loop
async def test_bad_requests_for_producers_are_refused(
    tmp_path: Path, method: str, query: str, refusal: tuple[int, str]
) -> None:
    async with serving(tmp_path) as api:
        assert (await api.call(method, f"/v0/producers{query}")).refusal == refusal


@on_loop
async def test_too_many_producers_are_told_how_to_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.core.dedupe.PRODUCERS_MAX", 1)
    monkeypatch.setattr("topics.core.batch.PRODUCERS_MAX", 0)
    async with serving(tmp_path) as api:
        written = {"records": [{"data": 1}], "producer_id": "first", "epoch": 0, "sequence": 0}
        assert (await api.post("/v0/topics/t", written)).status == 201
        refused = await api.post("/v0/topics/t", written | {"producer_id": "second"})
        assert refused.refusal == (409, "too_many_producers") and refused.body["error"]["detail"]["max"] == 1
        assert (await api.post("/v0/topics/t", written | {"producer_id": "~second"})).status == 200
        await api.post("/v0/topics/t/stage", {"stage": "s", "records": [{"data": 2}]})
        batch = {"stages": ["s"], "producer_id": "third", "epoch": 0}
        assert (await api.post("/v0/publish", batch)).refusal == (409, "too_many_producers")
        assert (await api.call("DELETE", "/v0/producers?producer_id=first&topic=t")).body["forgotten"]
        assert (await api.post("/v0/topics/t", written | {"producer_id": "second"})).status == 200
