from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.server.api import Api, serving
from topics.core.registry import Registry, Topic
from topics.model import TopicConfig
from topics.server.routes import topics as listing

DEFAULTS = {
    "type": "log",
    "ttl_ms": 0,
    "cap_records": 0,
    "cap_bytes": 0,
    "discard": "old",
    "durable": False,
    "durability": "disk",
    "priority": None,
    "auto_priority": True,
    "auto_create": True,
    "idempotency_window_ms": 120000,
    "dedupe_node": True,
    "lease_ms": 30000,
    "claim_jitter_ms": 0,
    "max_deliveries": 0,
    "dead_letter": None,
    "leases_durable": False,
    "partitions": 1,
    "alias": None,
    "protect_unarchived": False,
    "protect_groups": [],
    "protect_max_bytes": 2**30,
    "visibility_ms": 0,
}


@on_loop
async def test_put_creates_then_updates(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.put("/v0/topics/jobs", {"ttl_ms": 60000, "durable": True, "priority": 10})
        assert made.status == 201
        config = DEFAULTS | {"ttl_ms": 60000, "durable": True, "durability": "fsync", "priority": 10}
        assert made.without_performance() == {"topic": "jobs", "created": True, "config": config}
        assert made.body["performance"]["server_total_ms"] >= 0
        assert made.headers["content-type"] == "application/json"

        again = await api.put("/v0/topics/jobs", {"ttl_ms": 60000, "durable": True, "priority": 10})
        assert (again.status, again.body["created"], again.body["config"]) == (200, False, config)

        reset = await api.put("/v0/topics/jobs", {})
        assert (reset.status, reset.body["config"]) == (200, DEFAULTS)


@on_loop
async def test_put_may_leave_one_that_exists_as_it_is(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.put("/v0/topics/jobs?if_missing=true", {"ttl_ms": 1})
        assert (made.status, made.body["created"], made.body["config"]["ttl_ms"]) == (201, True, 1)
        left = await api.put("/v0/topics/jobs?if_missing=true", {"ttl_ms": 2, "partitions": 2, "type": "queue"})
        assert (left.status, left.body["created"], left.body["config"]) == (200, False, DEFAULTS | {"ttl_ms": 1})
        assert (await api.get("/v0/topics/jobs")).body["config"]["ttl_ms"] == 1
        wrong = await api.put("/v0/topics/jobs?if_missing=true", {"ttl_ms": -1})
        assert (wrong.status, wrong.body["error"]["detail"]["field"]) == (400, "ttl_ms")
        assert (await api.put("/v0/topics/jobs?if_missing=perhaps")).status == 400


@on_loop
async def test_put_without_a_body_is_all_defaults(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        made = await api.put("/v0/topics/jobs")
        assert (made.status, made.body["config"]) == (201, DEFAULTS)


@on_loop
async def test_patch_merges_and_never_creates(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await api.patch("/v0/topics/jobs", {"ttl_ms": 5})).refusal == (404, "topic_not_found")
        await api.put("/v0/topics/jobs", {"ttl_ms": 5, "cap_records": 7})
        changed = await api.patch("/v0/topics/jobs", {"ttl_ms": 6})
        assert changed.status == 200
        assert changed.body["config"] == DEFAULTS | {"ttl_ms": 6, "cap_records": 7}


@on_loop
async def test_the_type_never_changes(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/jobs", {"type": "queue"})
        assert (await api.put("/v0/topics/jobs", {"type": "log"})).refusal == (409, "topic_exists_incompatible")
        assert (await api.put("/v0/topics/jobs", {})).body["config"]["type"] == "queue"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ttl_ms": -1}, "ttl_ms"),
        ({"ttl_ms": 2**64}, "ttl_ms"),
        ({"ttl_ms": "1"}, "ttl_ms"),
        ({"ttl_ms": 1.5}, "ttl_ms"),
        ({"discard": "new"}, "discard"),
        ({"durable": "yes"}, "durable"),
        ({"type": "stack"}, "type"),
        ({"dead_letter": "jobs"}, "dead_letter"),
        ({"dead_letter": "a b"}, "dead_letter"),
        (b'{"ttl_ms":1,"ttl_ms":2}', "ttl_ms"),
        (b'{"ttl_ms":NaN}', ""),
        (b'{"ttl_ms"', ""),
        (b"[]", ""),
        (b'{"a":"\xff"}', ""),
        (b'{"a":' * 100_000, ""),
    ],
)
@on_loop
async def test_a_config_that_is_none(tmp_path: Path, body: object, field: str) -> None:
    async with serving(tmp_path) as api:
        refused = await api.put("/v0/topics/jobs", body)
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == field
        assert refused.error["detail"]["expected"]
        assert (await api.get("/v0/topics/jobs")).status == 404


@pytest.mark.parametrize("name", ["-a", ".a", "a%20b", "a%2Fb", "%C3%A9", "a" * 256])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "GET", "DELETE"])
@on_loop
async def test_a_name_that_is_none(tmp_path: Path, method: str, name: str) -> None:
    async with serving(tmp_path) as api:
        refused = await api.call(method, f"/v0/topics/{name}")
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == "topic"


@on_loop
async def test_state(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await api.get("/v0/topics/jobs")).refusal == (404, "topic_not_found")
        await api.put("/v0/topics/jobs")
        fresh = (await api.get("/v0/topics/jobs?touch=false")).without_performance()
        assert fresh == {
            "topic": "jobs",
            "type": "log",
            "head_seq": 0,
            "earliest_seq": 1,
            "next_seq": 1,
            "count": 0,
            "bytes": 0,
            "epoch": 1,
            "evict_floor": 1,
            "config": DEFAULTS,
            "effective_priority": fresh["effective_priority"],
            "last_write_ts": None,
            "last_read_ts": None,
            "records_per_s": 0.0,
        }
        await api.write("jobs", "ab", "c")
        assert (await api.get("/v0/topics/jobs")).body["last_read_ts"] is not None
        full = (await api.get("/v0/topics/jobs")).body
        assert (full["head_seq"], full["next_seq"], full["count"], full["bytes"]) == (2, 3, 2, len('"ab""c"'))
        assert full["last_write_ts"] > 0


@on_loop
async def test_a_full_list_shows_what_looking_at_each_topic_shows(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a", {"partitions": 2})
        await api.write("b", 1)
        (first, second) = (await api.get("/v0/topics?full=true")).body["topics"]
        for listed in (first, second):
            alone = (await api.get(f"/v0/topics/{listed['topic']}?touch=false")).without_performance()
            assert {name: listed[name] for name in alone} == alone
        assert (first["partitions"], second["count"], second["durable"]) == (2, 1, False)
        assert "config" not in (await api.get("/v0/topics")).body["topics"][0]


@on_loop
async def test_state_of_a_partition(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/jobs", {"partitions": 3})
        await api.write("jobs", 1, 2, partition=2)
        found = (await api.get("/v0/topics/jobs?partition=2")).body
        assert (found["partition"], found["partitions"], found["head_seq"]) == (2, 3, 2)
        assert (await api.get("/v0/topics/jobs")).body["head_seq"] == 0
        assert (await api.get("/v0/topics/jobs?partition=3")).refusal == (400, "invalid_request")


@pytest.mark.parametrize("query", ["touch=maybe", "partition=-1", "partition=x", "touch=1&touch=0", "touch=%FF"])
@on_loop
async def test_a_query_that_is_none(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/jobs")
        assert (await api.get(f"/v0/topics/jobs?{query}")).refusal == (400, "invalid_request")


@on_loop
async def test_delete_a_topic(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        absent = await api.delete("/v0/topics/jobs")
        assert absent.status == 200
        assert absent.without_performance() == {"topic": "jobs", "deleted": False, "routers_removed": []}
        await api.write("jobs", 1)
        assert (await api.delete("/v0/topics/jobs?if_empty=true")).refusal == (409, "topic_not_empty")
        assert (await api.delete("/v0/topics/jobs")).body["deleted"] is True
        assert (await api.get("/v0/topics/jobs")).status == 404
        assert (await api.write("jobs", 1))["first_seq"] == 1
        await api.post("/v0/topics/jobs/delete", {"before_seq": 2})
        assert (await api.delete("/v0/topics/jobs?if_empty=true")).body["deleted"] is True


@on_loop
async def test_a_list_goes_page_by_page(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        for name in ("b", "a.2", "a.1", "c"):
            await api.write(name, 1)
        first = await api.get("/v0/topics?page_size=3")
        assert [topic["topic"] for topic in first.body["topics"]] == ["a.1", "a.2", "b"]
        assert json.loads(base64.b64decode(first.body["next_cursor"])) == {"after": "b"}
        rest = await api.get(f"/v0/topics?page_size=3&cursor={first.body['next_cursor']}")
        assert [topic["topic"] for topic in rest.body["topics"]] == ["c"]
        assert "next_cursor" not in rest.body
        assert rest.body["topics"][0] == {
            "topic": "c",
            "type": "log",
            "head_seq": 1,
            "earliest_seq": 1,
            "count": 1,
            "bytes": 1,
            "durable": False,
            "effective_priority": rest.body["topics"][0]["effective_priority"],
            "last_write_ts": rest.body["topics"][0]["last_write_ts"],
            "records_per_s": 0.0,
        }
        exact = await api.get("/v0/topics?page_size=2&prefix=a.")
        assert len(exact.body["topics"]) == 2 and "next_cursor" not in exact.body


@on_loop
async def test_listing_touches_only_when_told_to(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/a")
        await api.get("/v0/topics")
        assert (await api.get("/v0/topics/a?touch=false")).body["last_read_ts"] is None
        await api.get("/v0/topics?touch=true")
        assert (await api.get("/v0/topics/a?touch=false")).body["last_read_ts"] is not None


@pytest.mark.parametrize("query", ["cursor=!!!", "cursor=e30%3D", "cursor=aGk%3D", "page_size=-1", "page_size=ten"])
@on_loop
async def test_a_list_query_that_is_none(tmp_path: Path, query: str) -> None:
    async with serving(tmp_path) as api:
        refused = await api.get(f"/v0/topics?{query}")
        assert refused.refusal == (400, "invalid_request")
        assert refused.error["detail"]["field"] == query.partition("=")[0]


@on_loop
async def test_a_key_sees_and_touches_its_own_names_only(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="all,some::b.|a.,reader:read") as api:
        api.key = "all"
        for name in ("a.1", "b.1", "b.2", "c.1"):
            await api.write(name, 1)
        api.key = "some"
        assert [topic["topic"] for topic in (await api.get("/v0/topics")).body["topics"]] == ["a.1", "b.1", "b.2"]
        assert (await api.get("/v0/topics?prefix=c")).body["topics"] == []
        assert (await api.get("/v0/topics/c.1")).refusal == (403, "forbidden")
        assert (await api.put("/v0/topics/a.1", {"dead_letter": "c.dlq"})).refusal == (403, "forbidden")
        assert (await api.put("/v0/topics/a.1", {"dead_letter": "a.dlq"})).status == 200
        written = await api.post("/v0/topics/a.9", {"records": [{"data": 1}], "config": {"dead_letter": "c.dlq"}})
        assert written.refusal == (403, "forbidden")
        api.key = "reader"
        assert (await api.get("/v0/topics/c.1")).status == 200
        assert (await api.put("/v0/topics/c.1")).refusal == (403, "forbidden")
        api.key = None
        refused = await api.get("/v0/topics")
        assert refused.refusal == (401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"


def test_pages_of_allowed_prefixes_follow_each_other() -> None:
    registry = Registry()
    for number, name in enumerate(("a.1", "a.b.1", "a.b.2", "b.1", "c.1", "c.2")):
        registry.add(Topic(name, TopicConfig(), 1, number, 0))

    def names(allowed: tuple[str, ...], prefix: str = "", after: str = "", limit: int = 10) -> list[str]:
        return [
            topic.name for topic in listing._page(registry, listing._narrowed(allowed, prefix), after, limit, None)[0]
        ]

    assert names(("c.", "a.b.", "a.")) == ["a.1", "a.b.1", "a.b.2", "c.1", "c.2"]
    assert names(("c.", "a."), after="a.b.1", limit=2) == ["a.b.2", "c.1"]
    assert names(("c.", "a."), prefix="a.b") == ["a.b.1", "a.b.2"]
    assert names(("c.", "a.b."), prefix="a") == ["a.b.1", "a.b.2"]
    assert names(("a.",), prefix="c") == []
    assert names((), after="b.1") == ["c.1", "c.2"]


@on_loop
async def test_a_list_of_one_type_or_with_something_in_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path) as api:
        for name, config in (("a.jobs", {"type": "queue"}), ("b", {}), ("c.jobs", {}), ("d.jobs", {"type": "queue"})):
            await api.put(f"/v0/topics/{name}", config)

        async def names(query: str) -> list[str]:
            found, cursor = [], ""
            while True:
                page = (await api.get(f"/v0/topics?{query}&cursor={cursor}")).body
                found += [each["topic"] for each in page["topics"]]
                cursor = page.get("next_cursor", "")
                if not cursor:
                    return found

        for page_size in (1, 2, 100):
            assert await names(f"type=queue&page_size={page_size}") == ["a.jobs", "d.jobs"]
            assert await names(f"contains=jobs&page_size={page_size}") == ["a.jobs", "c.jobs", "d.jobs"]
            assert await names(f"contains=jobs&type=log&page_size={page_size}") == ["c.jobs"]
            assert await names(f"contains=j&prefix=d&page_size={page_size}") == ["d.jobs"]
        monkeypatch.setattr(listing, "LOOKED_MAX", 1)
        monkeypatch.setattr(listing, "PAGE_SIZE_MAX", 1)
        first = (await api.get("/v0/topics?contains=jobs&type=log")).body
        assert (first["topics"], "next_cursor" in first) == ([], True), "one that was looked at did not fit"
        assert await names("contains=jobs&type=log") == ["c.jobs"], "short pages lead on"
        assert (await api.get("/v0/topics?type=pile")).refusal == (400, "invalid_request")


@on_loop
async def test_a_topic_says_how_fast_it_grows_and_when_it_last_did(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        (summary,) = (await api.get("/v0/topics")).body["topics"]
        state = (await api.get("/v0/topics/t")).body
        assert summary["type"] == "log"
        assert summary["last_write_ts"] == state["last_write_ts"] > 0
        assert await grows(api)


async def grows(api: Api) -> bool:
    """Whether a sample sees that a topic gets records, in the list and on its own."""
    while True:
        await api.write("t", *range(50))
        (summary,) = (await api.get("/v0/topics")).body["topics"]
        if summary["records_per_s"] > 0:
            return bool((await api.get("/v0/topics/t")).body["records_per_s"] > 0)
