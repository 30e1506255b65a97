from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.server.api import Api, serving
from topics.server.routes import routers

DEFAULTS = {
    "preserve_node": True,
    "preserve_tag": True,
    "filter": None,
    "allow_cycle": False,
    "guarantee": "at_least_once",
    "create_dest": True,
    "backfill": False,
}
QUIET = {
    "lag_records": 0,
    "lag_ms": 0,
    "forwarded_total": 0,
    "trimmed_total": 0,
    "stalled": None,
    "last_error": None,
    "last_error_ts": None,
}
PATH = "/v0/routers/orders-%3Eaudit"


async def route(api: Api, source: str, dest: str, **options: Any) -> None:
    answer = await api.put(f"/v0/routers/{source}-%3E{dest}", {"source": source, "dest": dest} | options)
    assert answer.status == 201, answer.body


async def arrived(api: Api, topic: str, count: int, **wanted: object) -> list[dict[str, Any]]:
    """The records of a topic, as soon as there are so many."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        from_seq = found[-1]["$seq"] if found else 0
        found += (await api.diff(topic, from_seq=from_seq, wait_ms=30_000, include_tags=True, **wanted))["records"]
    return found


@on_loop
async def test_put_creates_then_updates(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.put(PATH, {"source": "orders", "dest": "audit"})
        assert made.status == 201
        told = made.without_performance()
        assert told.pop("created_ts") > 0
        assert told.pop("created") is True
        assert (
            told == {"router": "orders->audit", "source": "orders", "dest": "audit", "cursors": [0]} | DEFAULTS | QUIET
        )
        assert made.body["performance"]["server_total_ms"] >= 0

        again = await api.put(PATH, {"source": "orders", "dest": "audit"})
        assert (again.status, again.body["created"]) == (200, False)
        options = {
            "preserve_node": False,
            "preserve_tag": False,
            "filter": ["tag", "Glob", "public:*"],
            "guarantee": "exactly_once",
            "create_dest": False,
        }
        changed = await api.put(PATH, {"source": "orders", "dest": "audit"} | options)
        assert (changed.status, changed.body["created"]) == (200, False)
        assert {name: changed.body[name] for name in options} == options
        assert (await api.get(PATH)).without_performance() == {
            name: value for name, value in changed.without_performance().items() if name != "created"
        }
        assert {state["topic"] for state in (await api.get("/v0/topics")).body["topics"]} == {"orders", "audit"}


@on_loop
async def test_records_are_copied_and_counted(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("orders", "before")
        await route(api, "orders", "audit")
        await api.post(
            "/v0/topics/orders",
            {"records": [{"data": {"sku": "A1"}, "tag": "t", "node": "n1", "meta": {"k": "v"}}, {"data": 2}]},
        )
        first, second = await arrived(api, "audit", 2)
        assert (first["$seq"], first["data"], first["$tag"]) == (1, {"sku": "A1"}, "t")
        assert (first["$node"], first["meta"]) == ("n1", {"k": "v"})
        assert (second["$seq"], second["data"]) == (2, 2)
        state = (await api.get(PATH)).body
        assert (state["forwarded_total"], state["lag_records"], state["cursors"]) == (2, 0, [3])


@on_loop
async def test_what_is_there_already_is_copied_when_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("orders", 1, 2)
        await route(api, "orders", "audit", backfill=True)
        assert [record["data"] for record in await arrived(api, "audit", 2)] == [1, 2]


@on_loop
async def test_a_full_destination_stalls_the_router_and_it_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/audit", {"cap_records": 1, "discard": "reject"})
        await route(api, "orders", "audit")
        await api.write("orders", 1)
        await arrived(api, "audit", 1)
        await api.write("orders", 2)
        state: dict[str, Any] = {"stalled": None}
        while state["stalled"] is None:
            state = (await api.get(PATH)).body
        assert state["lag_records"] == 1 and "audit" in state["stalled"] and state["last_error_ts"] > 0
        summary = (await api.get("/v0/routers")).body["routers"][0]
        assert (summary["stalled"], summary["lag_records"]) == (state["stalled"], 1)
        await api.put("/v0/topics/audit", {})
        assert [record["data"] for record in await arrived(api, "audit", 2)] == [1, 2]
        recovered = (await api.get(PATH)).body
        assert recovered["stalled"] is None and recovered["last_error"]


@on_loop
async def test_a_router_is_deleted_and_its_copies_stay(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await route(api, "orders", "audit")
        await api.write("orders", 1)
        await arrived(api, "audit", 1)
        gone = await api.delete(PATH)
        assert (gone.status, gone.without_performance()) == (200, {"router": "orders->audit", "deleted": True})
        assert (await api.delete(PATH)).without_performance() == {"router": "orders->audit", "deleted": False}
        assert (await api.get(PATH)).refusal == (404, "router_not_found")
        await api.write("orders", 2)
        assert [record["data"] for record in (await api.diff("audit"))["records"]] == [1]


@on_loop
async def test_routers_go_with_their_topics_and_the_answer_says_which(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for source, dest in (("orders", "audit"), ("orders", "mirror"), ("audit", "cold"), ("other", "else")):
            await route(api, source, dest)
        gone = await api.delete("/v0/topics/audit")
        assert gone.body["routers_removed"] == ["audit->cold", "orders->audit"]
        left = (await api.get("/v0/routers")).body["routers"]
        assert [router["router"] for router in left] == ["orders->mirror", "other->else"]
        assert (await api.delete("/v0/topics/nothing")).body["routers_removed"] == []


@on_loop
async def test_a_cycle_is_refused_with_its_path(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await route(api, "a", "b")
        await route(api, "b", "c")
        refused = await api.put("/v0/routers/back", {"source": "c", "dest": "a"})
        assert refused.refusal == (409, "router_cycle")
        assert refused.error["detail"]["cycle"] == ["c", "a", "b", "c"]
        assert (await api.get("/v0/routers/back")).status == 404
        allowed = await api.put("/v0/routers/back", {"source": "c", "dest": "a", "allow_cycle": True})
        assert allowed.status == 201


@on_loop
async def test_a_destination_has_one_source(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await route(api, "a", "all")
        refused = await api.put("/v0/routers/second", {"source": "b", "dest": "all"})
        assert refused.refusal == (409, "topic_exists_incompatible")
        assert refused.error["detail"]["reason"] == "router_dest_fan_in"
        assert (await api.get("/v0/topics/b")).status == 404, "nothing was made for it"


@on_loop
async def test_a_missing_destination_may_not_be_made(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        refused = await api.put(PATH, {"source": "orders", "dest": "audit", "create_dest": False})
        assert refused.refusal == (404, "topic_not_found")
        assert (await api.get("/v0/topics/orders")).status == 404


@on_loop
async def test_too_many_routers_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    async with serving(tmp_path, max_routers=1) as api:
        await route(api, "a", "b")
        refused = await api.put("/v0/routers/more", {"source": "c", "dest": "d"})
        assert refused.refusal == (429, "throttled")
        assert (refused.error["detail"]["limit"], refused.error["detail"]["max"]) == ("max_routers", 1)
        assert int(refused.headers["retry-after"]) >= 1
        assert (await api.get("/v0/topics/c")).status == (await api.get("/v0/topics/d")).status == 404
        again = await api.put("/v0/routers/a-%3Eb", {"source": "a", "dest": "b", "preserve_tag": False})
        assert again.status == 200, "what exists may be changed"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (PATH, {"dest": "audit"}, "source"),
        (PATH, {"source": "orders"}, "dest"),
        (PATH, {"source": "orders", "dest": "orders"}, "dest"),
        (PATH, {"source": "orders", "dest": "audit", "filter": ["tag", "Like", "x"]}, "filter[1]"),
        (PATH, {"source": "orders", "dest": "audit", "guarantee": "maybe"}, "guarantee"),
        (PATH, {"source": "orders>", "dest": "audit"}, "source"),
        ("/v0/routers/a%20b", {"source": "orders", "dest": "audit"}, "router"),
    ],
)
@on_loop
async def test_what_is_wrong_is_named_and_changes_nothing(
    tmp_path: Path, path: str, body: dict[str, Any], field: str
) -> None:
    async with serving(tmp_path) as api:
        refused = await api.put(path, body)
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == field and refused.error["detail"]["expected"]
        assert (await api.get("/v0/topics")).body["topics"] == []


@on_loop
async def test_a_name_may_stand_in_the_address_as_it_is(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await api.put("/v0/routers/a->b", {"source": "a", "dest": "b"})).status == 201
        assert (await api.get("/v0/routers/a-%3eb")).body["router"] == "a->b"
        assert (await api.get("/v0/routers/a%20b")).refusal == (400, "invalid_request")


@on_loop
async def test_a_list_has_filters_and_pages(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        pairs = [("orders", "audit"), ("orders", "mirror"), ("other", "cold"), ("audit", "deep")]
        for source, dest in pairs:
            await route(api, source, dest)
        names = sorted(f"{source}->{dest}" for source, dest in pairs)

        async def listed(query: str) -> list[str]:
            return [router["router"] for router in (await api.get(f"/v0/routers?{query}")).body["routers"]]

        assert await listed("") == names
        assert await listed("prefix=or") == ["orders->audit", "orders->mirror"]
        assert await listed("source=orders") == ["orders->audit", "orders->mirror"]
        assert await listed("dest=audit") == ["orders->audit"]
        assert await listed("source=orders&dest=mirror") == ["orders->mirror"]
        assert await listed("source=nothing") == []
        found, query = [], "page_size=3"
        for _ in range(2):
            page = (await api.get(f"/v0/routers?{query}")).body
            found += [router["router"] for router in page["routers"]]
            query = f"page_size=3&cursor={page.get('next_cursor')}"
        assert found == names and "next_cursor" not in page
        (first,) = (await api.get("/v0/routers?page_size=1")).body["routers"]
        assert first == {
            "router": "audit->deep",
            "source": "audit",
            "dest": "deep",
            "guarantee": "at_least_once",
            "forwarded_total": 0,
            "lag_records": 0,
            "lag_ms": 0,
            "stalled": None,
        }
        (full,) = (await api.get("/v0/routers?page_size=1&full=true")).body["routers"]
        assert full == (await api.get("/v0/routers/audit-%3Edeep")).without_performance()
        for query in ("cursor=x", "page_size=-1", "full=maybe"):
            assert (await api.get(f"/v0/routers?{query}")).refusal == (400, "invalid_request")


KEYS = "all,look:read,drop:delete,make:admin,mine::t42:"


@on_loop
async def test_scopes(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        body = {"source": "a", "dest": "b"}
        for key, scope in (("look", "admin"), ("drop", "admin")):
            api.key = key
            refused = await api.put(PATH, body)
            assert refused.refusal == (403, "forbidden") and refused.error["detail"]["scope"] == [scope]
        api.key = "make"
        assert (await api.put(PATH, body)).status == 201
        assert (await api.get(PATH)).status == (await api.get("/v0/routers")).status == 403
        assert (await api.delete(PATH)).status == 403
        api.key = "look"
        assert (await api.get(PATH)).status == (await api.get("/v0/routers")).status == 200
        api.key = "drop"
        assert (await api.delete(PATH)).status == 200
        api.key = None
        assert (await api.get("/v0/routers")).status == 401


@on_loop
async def test_a_key_touches_its_own_names_only(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all"
        for name, source, dest in (
            ("secret", "in", "out"),
            ("t42:leak", "in2", "t42:in"),
            ("t42:drain", "t42:x", "elsewhere"),
            ("not-mine", "t42:a", "t42:b"),
        ):
            assert (await api.put(f"/v0/routers/{name}", {"source": source, "dest": dest})).status == 201

        api.key = "mine"
        for name, source, dest, field in (
            ("other", "t42:s", "t42:d", "router"),
            ("t42:r", "in", "t42:d", "source"),
            ("t42:r", "t42:s", "out", "dest"),
            ("t42:leak", "t42:s", "t42:d", "source"),
            ("t42:drain", "t42:s", "t42:d", "dest"),
        ):
            refused = await api.put(f"/v0/routers/{name}", {"source": source, "dest": dest})
            assert refused.refusal == (403, "forbidden") and refused.error["detail"]["field"] == field
        assert (await api.put("/v0/routers/t42:ok", {"source": "t42:s", "dest": "t42:d"})).status == 201
        for name in ("secret", "t42:leak", "t42:drain", "not-mine"):
            assert (await api.get(f"/v0/routers/{name}")).refusal == (403, "forbidden")
            assert (await api.delete(f"/v0/routers/{name}")).refusal == (403, "forbidden")
        listed = (await api.get("/v0/routers?page_size=1")).body
        assert [router["router"] for router in listed["routers"]] == ["t42:ok"] and "next_cursor" not in listed
        gone = await api.delete("/v0/topics/t42:x")
        assert gone.body["routers_removed"] == ["t42:drain"]
        gone = await api.delete("/v0/topics/t42:a")
        assert gone.body["routers_removed"] == [], "a name that is not theirs is not told"
        api.key = "all"
        assert (await api.get("/v0/routers/not-mine")).status == 404


@on_loop
async def test_a_router_with_a_longer_name_is_another_one(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="boss,mine:rw+a:mine.") as api:
        api.key = "boss"
        await api.put("/v0/routers/mine.r-2", {"source": "theirs", "dest": "mine.copy"})
        api.key = "mine"
        assert (await api.put("/v0/routers/mine.r", {"source": "mine.a", "dest": "mine.b"})).status == 201
        taken = await api.put("/v0/routers/mine.r-2", {"source": "mine.a", "dest": "mine.c"})
        assert taken.refusal == (403, "forbidden")


@on_loop
async def test_a_list_looks_beyond_what_a_key_may_not_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routers, "PAGE_SIZE_MAX", 2)
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all"
        for number in range(5):
            await route(api, f"a{number}", f"b{number}")
        for number in range(3):
            await route(api, f"t42:a{number}", f"t42:b{number}")
        api.key = "mine"
        found, query = [], "?page_size=2"
        while query:
            page = (await api.get(f"/v0/routers{query}")).body
            found += [router["router"] for router in page["routers"]]
            query = f"?page_size=2&cursor={page['next_cursor']}" if "next_cursor" in page else ""
        assert found == [f"t42:a{number}->t42:b{number}" for number in range(3)]


@on_loop
async def test_routers_survive_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await route(api, "orders", "audit", filter="x", guarantee="exactly_once")
        await api.post("/v0/topics/orders", {"records": [{"data": 1, "tag": "x"}, {"data": 2}]})
        await arrived(api, "audit", 1)
        before = (await api.get(PATH)).without_performance()
    async with serving(tmp_path) as api:
        after = (await api.get(PATH)).without_performance()
        assert {name: after[name] for name in DEFAULTS} == {name: before[name] for name in DEFAULTS}
        await api.post("/v0/topics/orders", {"records": [{"data": 3, "tag": "x"}]})
        assert [record["data"] for record in await arrived(api, "audit", 2)] == [1, 3]
