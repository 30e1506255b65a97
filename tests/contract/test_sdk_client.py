from __future__ import annotations

from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop
from tests.contract.sdk import each_form, opened
from topics import Client, errors
from topics.client.listing import TOPICS_PAGE


async def everything(client: Client, *names: str) -> list[list[object]]:
    return [[record.data for record in (await client.topic(name).diff()).records] for name in names]


@each_form
@on_loop
async def test_topics_are_listed_by_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        for name in ("b:2", "a:1", "b:1", "B"):
            await client.topic(name).create()
        assert [state.topic async for state in client.topics()] == ["B", "a:1", "b:1", "b:2"]
        assert [state.topic async for state in client.topics("b:")] == ["b:1", "b:2"]
        assert [state.topic async for state in client.topics(prefix="c")] == []


@each_form
@on_loop
async def test_a_long_list_comes_in_pages(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        names = [f"t{number:04}" for number in range(2 * TOPICS_PAGE)]
        for name in names:
            await client.topic(name).write(name, config={"durability": "ephemeral"})
        states = [state async for state in client.topics()]
        assert [state.topic for state in states] == names
        assert {state.count for state in states} == {1}


def test_a_topic_knows_its_name(tmp_path: Path) -> None:
    topic = topics.open(tmp_path).topic("orders")
    assert topic.name == "orders"
    assert repr(topic) == "<Topic orders>"


@each_form
@on_loop
async def test_stages_become_visible_together_and_once(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        await client.topic("stock").create(partitions=2)
        staged = await client.stage("s1", "orders", [{"data": "order"}])
        assert (staged.topic, staged.count) == ("orders", 1)
        await client.stage("s2", "stock", [{"data": "less"}])
        more = await client.stage("s2", "stock", [{"data": "lesser"}])
        assert more.count == 2
        assert await everything(client, "orders", "stock") == [[], []]
        done = await client.publish(["s1", "s2"], producer=("shop", 1))
        assert [(part.topic, part.first_seq, part.last_seq) for part in done.written] == [
            ("orders", 1, 1),
            ("stock", 1, 2),
        ]
        assert await everything(client, "orders", "stock") == [["order"], ["less", "lesser"]]
        again = await client.publish(["s1", "s2"], producer=("shop", 1))
        assert (again.deduped, again.written) == (True, done.written)
        assert await everything(client, "orders", "stock") == [["order"], ["less", "lesser"]]


@each_form
@on_loop
async def test_a_publish_with_a_stage_that_is_not_there_does_nothing(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        await client.stage("s1", "orders", [{"data": 1}])
        with pytest.raises(errors.StageNotFound):
            await client.publish(["s1", "nothing"], producer=("shop", 1))
        assert await everything(client, "orders") == [[]]


@each_form
@on_loop
async def test_an_aborted_stage_is_gone(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        await client.stage("s1", "orders", [{"data": 1}])
        assert (await client.abort(["s1", "never"])).stages == ("s1",)
        with pytest.raises(errors.StageNotFound):
            await client.publish(["s1"], producer=("shop", 1))


@each_form
@on_loop
async def test_a_stage_goes_to_the_partition_of_its_key(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        await events.create(partitions=8)
        straight = await events.write(1, key="customer-1")
        staged = await client.stage("s1", "events", [{"data": 2}], key="customer-1")
        assert (staged.partition, staged.partitions, staged.type) == (straight.partition, 8, "log")
        with pytest.raises(errors.TopicNotFound):
            await client.stage("s2", "missing", [{"data": 1}])


@each_form
@on_loop
async def test_a_stage_survives_a_restart(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("orders").create()
        await client.stage("s1", "orders", [{"data": "kept"}])
    async with opened(form, tmp_path) as client:
        await client.publish(["s1"], producer=("shop", 1))
        assert await everything(client, "orders") == [["kept"]]


@each_form
@on_loop
async def test_producers_are_listed_and_forgotten(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        for name in ("shop/ü", "~job", "till"):
            async with orders.producer(id=name, epoch=7) as producer:
                await producer.send(name)
        await client.stage("s1", "orders", [{"data": "order"}])
        await client.publish(["s1"], producer=("nightly", 3))
        found = [producer async for producer in client.producers("orders")]
        shown = [(producer.producer_id, producer.epoch, producer.sequence, producer.one_off) for producer in found]
        assert shown == [("shop/ü", 7, 0, False), ("till", 7, 0, False), ("~job", 7, 0, True)]
        assert [producer async for producer in client.producers("orders", prefix="ti")] == [found[1]]
        (nightly,) = [producer async for producer in client.producers()]
        assert (nightly.producer_id, nightly.epoch, nightly.sequence) == ("nightly", 3, None)
        assert nightly.last_used_ts >= found[1].last_used_ts > 0
        for topic, name in (("orders", "shop/ü"), (None, "nightly")):
            gone = await client.forget_producer(name, topic=topic)
            assert gone == topics.ForgottenProducer(producer_id=name, forgotten=True, topic=topic)
            assert not (await client.forget_producer(name, topic=topic)).forgotten
        assert [producer.producer_id async for producer in client.producers("orders")] == ["till", "~job"]
        assert [producer async for producer in client.producers()] == []
        with pytest.raises(errors.InvalidRequest):
            await client.forget_producer("x" * 200)
        with pytest.raises(errors.TopicNotFound):
            await client.forget_producer("till", topic="nothing")


@each_form
@on_loop
async def test_many_producers_come_in_pages(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.client.client.PRODUCERS_PAGE", 2)
    async with opened(form, tmp_path) as client:
        for name in "edcba":
            async with client.topic("t").producer(id=name) as producer:
                await producer.send(1)
        assert [producer.producer_id async for producer in client.producers("t")] == list("abcde")


@each_form
@on_loop
async def test_an_empty_tag_or_node_is_refused(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write(1)
        for work in (
            orders.write(1, tag=""),
            orders.write(1, node=""),
            orders.write_many([{"data": 1}, {"data": 2, "tag": ""}]),
            client.stage("s", "orders", [{"data": 1, "node": ""}]),
        ):
            with pytest.raises(errors.InvalidRequest, match="is empty"):
                await work
        assert await everything(client, "orders") == [[1]]


@each_form
@on_loop
async def test_a_tag_with_a_star_names_that_tag_only(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": 1, "tag": "pre:1"}, {"data": 2, "tag": "pre:*"}, {"data": 3, "tag": "pre:"}])
        assert [record.data for record in (await orders.diff(match="pre:*")).records] == [2]
        await client.router("stars").put("orders", "stars", filter="pre:*", backfill=True)
        assert (await orders.delete(match="pre:*")).deleted == 1
        assert await everything(client, "orders") == [[1, 3]]
        async for record in client.topic("stars").follow():
            assert isinstance(record, topics.Record) and record.tag == "pre:*"
            break


@each_form
@on_loop
async def test_what_a_source_lost_is_told_by_the_first_read_of_its_copy(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("source").create(cap_records=2)
        await client.route("source", "copy")
        cursor = 0
        for _ in range(3):
            await client.topic("source").write_many([{"data": number} for number in range(10)])
            page = await client.topic("copy").diff(from_seq=cursor)
            assert page.tombstone is not None and page.tombstone.reason is topics.Reason.SOURCE_TRIM
            assert (page.tombstone.gap_from, page.tombstone.gap_to) == (cursor + 1, cursor + 8)
            assert [record.data for record in page.records] == [8, 9] and page.caught_up
            cursor = page.next_from_seq
