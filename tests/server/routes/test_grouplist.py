"""All groups over a real socket: a line each, page by page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.client.rig import on_loop
from tests.server.api import serving
from tests.server.groups import Consumers
from tests.server.lanerig import body_of
from tests.server.lanerig import serving as lane
from tests.server.routes.test_groups import KEYS
from topics.core.commands import Drop


@on_loop
async def test_groups_of_all_topics_over_all_partitions(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/many", {"partitions": 2})
        for partition in (0, 1):
            await api.write("many", 1, 2, 3, partition=partition)
        await api.write("one", 1)
        wide = Consumers(api, "many", "wide")
        await wide.did("consume", limit=1, consumer="a", partition=0)
        batch = await wide.did("consume", limit=2, consumer="b", partition=1)
        await wide.did("ack", upto_seq=batch["last_seq"], partition=1)
        await Consumers(api, "one", "b").did("reset", to="latest")
        await Consumers(api, "one", "b").did("pause")
        await Consumers(api, "one", "a").did("reset", to="earliest")
        listed = (await api.get("/v0/groups")).body
        assert "next_cursor" not in listed
        assert [(each["topic"], each["group"], each["lag"], each["paused"]) for each in listed["groups"]] == [
            ("many", "wide", 4, False),
            ("one", "a", 1, False),
            ("one", "b", 0, True),
        ]
        first = listed["groups"][0]
        assert (first["partitions"], first["in_flight"], first["consumers"]) == (2, 1, 1)
        assert first["oldest_unacked_ts"] > 0 and listed["groups"][2]["oldest_unacked_ts"] is None

        seen: list[str] = []
        cursor = ""
        for _ in range(3):
            page = (await api.get(f"/v0/groups?page_size=1&cursor={cursor}")).body
            seen += [f"{each['topic']}/{each['group']}" for each in page["groups"]]
            cursor = page.get("next_cursor", "")
        assert cursor == "" and seen == ["many/wide", "one/a", "one/b"]
        assert [each["group"] for each in (await api.get("/v0/groups?prefix=o")).body["groups"]] == ["a", "b"]


@on_loop
async def test_a_key_sees_its_own(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        for topic in ("t", "tenant42:t"):
            await api.write(topic, 1)
            await Consumers(api, topic, "g").did("reset", to="earliest")
        api.key = "tenant-secret"
        assert [each["topic"] for each in (await api.get("/v0/groups")).body["groups"]] == ["tenant42:t"]
        api.key = "writer-secret"
        assert (await api.get("/v0/groups")).refusal == (403, "forbidden")
        api.key = "all-secret"
        assert (await api.get("/v0/groups?cursor=nonsense")).status == 400


@on_loop
async def test_a_topic_that_goes_while_they_are_listed_is_left_out(tmp_path: Path) -> None:
    async with lane(tmp_path) as rig:
        for topic in ("a", "b", "c"):
            await rig.ask("POST", f"/v0/topics/{topic}", {"records": [{"data": 1}]})
            await rig.ask("POST", f"/v0/topics/{topic}/groups/g/reset", {"to": "earliest"})
        groups = rig.engine.groups
        listed = groups.list

        def dropping(topic: str) -> Any:
            if topic == "a":
                rig.context.host.decide(Drop("b"))
            return listed(topic)

        groups.list = dropping  # type: ignore[method-assign]
        found = body_of(await rig.ask("GET", "/v0/groups"))["groups"]
        assert [each["topic"] for each in found] == ["a", "c"]
