"""An alias can stand wherever a name can: over HTTP, in the SDK, while following, and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, take
from tests.contract.sdk import each_form, opened
from tests.server.api import serving
from topics import Record, errors


@each_form
@on_loop
async def test_every_verb_takes_the_alias(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create(alias="o", partitions=2)
        alias = client.topic("o")
        written = await alias.write(1, tag="a")
        assert written.topic == "orders"
        assert [record.data for record in (await alias.diff()).records] == [1]
        (event,) = await take(alias.follow(), 1)
        assert isinstance(event, Record) and event.data == 1
        assert (await alias.state(partition=1)).topic == "orders"
        assert (await alias.delete(match="a")).deleted == 1
        await alias.configure(ttl_ms=60_000)
        assert (await client.topic("orders").state()).config.ttl_ms == 60_000
        await client.stage("s", "o", [{"data": 2}])
        await client.publish(["s"], producer=("p", 1))
        assert [record.data for record in (await client.topic("orders").diff()).records] == [2]
        assert [state.topic async for state in client.topics()] == ["orders"]
        topic, event = (await take(client.follow({"o": 1}), 1))[0]
        assert topic == "orders" and isinstance(event, Record) and event.data == 2
    async with opened(form, tmp_path) as client:
        assert (await client.topic("o").state()).head_seq == 2
        await client.topic("o").drop()
        with pytest.raises(errors.TopicNotFound):
            await client.topic("orders").state()
        await client.topic("o").write(1)
        assert (await client.topic("o").state()).topic == "o", "the name is free again"


@each_form
@on_loop
async def test_an_alias_is_nobody_elses_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create(alias="o")
        await client.topic("stock").create()
        for alias in ("o", "orders"):
            with pytest.raises(errors.NameTaken):
                await client.topic("stock").configure(alias=alias)
            with pytest.raises(errors.NameTaken):
                await client.topic("new").create(alias=alias)
        with pytest.raises(errors.InvalidRequest, match="another name"):
            await client.topic("stock").configure(alias="stock")
        assert [state.topic async for state in client.topics()] == ["orders", "stock"]
        await client.topic("orders").configure(alias=None)
        await client.topic("stock").configure(alias="o")
        assert (await client.topic("o").state()).topic == "stock"


@on_loop
async def test_a_key_needs_the_prefix_of_an_alias_to_give_it(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys="root,tenant:read+write+admin:t1:") as api:
        api.key = "tenant"
        assert (await api.put("/v0/topics/t1:a", {"alias": "t2:a"})).refusal == (403, "forbidden")
        assert (await api.put("/v0/topics/t1:a", {"alias": "t1:b"})).status == 201
        assert (await api.write("t1:b", 1))["topic"] == "t1:a"


@on_loop
async def test_an_alias_in_a_crash_is_there_again(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").create(alias="o")
        await client.topic("orders").configure(alias="p")
        await client.sql("REGISTER TABLE x USING delta LOCATION '/x' KEY (a)")
        await client.sql("ALTER TOPIC p ADD SOURCE x ON INSERT WHERE (a > 1)")
    async with topics.open(tmp_path) as client:
        await client.topic("p").write(1)
        with pytest.raises(errors.TopicNotFound):
            await client.topic("o").state()
        (routes,) = await client.sql("SHOW ROUTES")
        assert [row[:6] for row in routes.rows] == [["orders", "x", "insert", "key", "a > 1", None]]
