from __future__ import annotations

from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, take
from tests.contract.sdk import each_form, opened
from topics import Gap, Guarantee, Page, Reason, Record, RouterConfig, RouterDropped, errors
from topics.client import router as client_router


async def datas(topic: topics.Topic, count: int) -> list[object]:
    """What the first records are about, as soon as there are so many."""
    return [event.data for event in await take(topic.follow(), count) if isinstance(event, Record)]


@each_form
@on_loop
async def test_a_router_copies_what_is_written(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders, audit = client.topic("orders"), client.topic("audit")
        await orders.write("before")
        router = client.router("copies")
        assert (router.name, repr(router)) == ("copies", "<Router copies>")
        state = await router.put("orders", "audit")
        assert state.created and state.config == RouterConfig(source="orders", dest="audit")
        assert (state.router, state.cursors, state.stalled) == ("copies", (1,), None)
        await orders.write_many([{"data": {"sku": "A1"}, "tag": "t", "node": "n1", "meta": {"k": "v"}}, {"data": 2}])
        first, second = await take(audit.follow(), 2)
        assert isinstance(first, Record) and isinstance(second, Record)
        assert (first.seq, first.data, first.tag, first.node, first.meta) == (1, {"sku": "A1"}, "t", "n1", {"k": "v"})
        assert (second.seq, second.data) == (2, 2)
        state = await router.state()
        assert (state.forwarded_total, state.cursors, state.lag_records, state.created) == (2, (3,), 0, False)
        assert await router.drop() == RouterDropped(router="copies", deleted=True)
        assert await router.drop() == RouterDropped(router="copies", deleted=False)
        with pytest.raises(errors.RouterNotFound, match="copies"):
            await router.state()


@each_form
@on_loop
async def test_every_option_is_taken_and_told(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders, shop = client.topic("orders"), client.topic("shop")
        await orders.write_many([{"data": n, "tag": tag, "node": "n"} for n, tag in enumerate(("public:a", "b"), 1)])
        state = await client.router("public").put(
            "orders",
            "shop",
            filter=["tag", "Glob", "public:*"],
            preserve_node=False,
            preserve_tag=False,
            guarantee="exactly_once",
            backfill=True,
            allow_cycle=True,
        )
        assert state.config == RouterConfig(
            source="orders",
            dest="shop",
            filter=("tag", "Glob", "public:*"),
            preserve_node=False,
            preserve_tag=False,
            guarantee=Guarantee.EXACTLY_ONCE,
            backfill=True,
            allow_cycle=True,
        )
        (copy,) = await take(shop.follow(), 1)
        assert isinstance(copy, Record) and (copy.data, copy.tag, copy.node) == (1, None, None)
        assert copy.meta is not None and copy.meta["_topics_router"]
        again = await client.router("public").put("orders", "shop", filter="b")
        assert not again.created and again.config == RouterConfig(
            source="orders", dest="shop", filter=("tag", "Eq", "b")
        )
        await orders.write_many([{"data": 3, "tag": "public:c"}, {"data": 4, "tag": "b"}])
        assert await datas(shop, 2) == [1, 4]


@each_form
@on_loop
async def test_a_route_is_a_router_with_the_usual_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        state = await client.route("orders", "audit", filter="x")
        assert (state.router, state.created, state.config.filter) == ("orders->audit", True, ("tag", "Eq", "x"))
        assert not (await client.route("orders", "audit")).created
        assert (await client.router("orders->audit").state()).config.filter is None


@each_form
@on_loop
async def test_routers_are_listed_by_name(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_router, "ROUTERS_PAGE", 2)
    async with opened(form, tmp_path) as client:
        for source, dest in (("b", "x"), ("a", "y"), ("b", "z"), ("a", "w"), ("y", "v")):
            await client.route(source, dest)
        assert [state.router async for state in client.routers()] == ["a->w", "a->y", "b->x", "b->z", "y->v"]
        assert [state.router async for state in client.routers("b")] == ["b->x", "b->z"]
        assert [state.router async for state in client.routers(source="a")] == ["a->w", "a->y"]
        assert [state.router async for state in client.routers(dest="y")] == ["a->y"]
        assert [state.router async for state in client.routers("a", dest="v")] == []
        (state,) = [state async for state in client.routers(dest="v")]
        assert state == await client.router("y->v").state()


@each_form
@on_loop
async def test_dropping_a_topic_tells_which_routers_went_with_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        await client.route("orders", "audit")
        await client.route("audit", "cold")
        await client.route("orders", "mirror")
        assert (await client.topic("audit").drop()).routers == ("audit->cold", "orders->audit")
        assert [state.router async for state in client.routers()] == ["orders->mirror"]
        assert (await client.topic("cold").drop()).routers == ()


@each_form
@on_loop
async def test_refusals(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path, max_routers=3) as client:
        await client.route("a", "b")
        await client.route("b", "c")
        with pytest.raises(errors.RouterCycle) as cycle:
            await client.route("c", "a")
        assert cycle.value.detail["cycle"] == ["c", "a", "b", "c"]
        with pytest.raises(errors.TopicExistsIncompatible) as fan_in:
            await client.route("other", "b")
        assert fan_in.value.detail["reason"] == "router_dest_fan_in"
        with pytest.raises(errors.TopicNotFound):
            await client.route("a", "missing", create_dest=False)
        with pytest.raises(errors.InvalidRequest, match="another topic than the source"):
            await client.route("a", "a")
        with pytest.raises(errors.InvalidRequest, match="is not a topic name"):
            await client.router("r").put("a b", "c")
        with pytest.raises(errors.InvalidRequest, match="is not a router name"):
            await client.router("r r").put("a", "d")
        with pytest.raises(errors.InvalidRequest, match="is not a router name"):
            await client.router("r r").state()
        with pytest.raises(errors.InvalidRequest, match=r"no field preserve_tags; did you mean preserve_tag\?"):
            await client.router("r").put("a", "d", preserve_tags=True)
        with pytest.raises(errors.InvalidRequest, match="filter must be"):
            await client.router("r").put("a", "d", filter=["x"])
        with pytest.raises(errors.InvalidRequest, match="guarantee must be"):
            await client.router("r").put("a", "d", guarantee="some")
        await client.route("c", "d")
        with pytest.raises(errors.Throttled) as many:
            await client.route("d", "e")
        assert many.value.detail["limit"] == "max_routers"
        assert [state.topic async for state in client.topics()] == ["a", "b", "c", "d"], "a refusal makes no topic"


@each_form
@on_loop
async def test_what_the_source_lost_is_told_in_the_destination(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders, audit = client.topic("orders"), client.topic("audit")
        await orders.create(cap_records=2)
        await audit.create(cap_records=1, discard="reject")
        await client.route("orders", "audit")
        await orders.write(1)
        assert await datas(audit, 1) == [1]
        for number in range(2, 7):
            await orders.write(number)
        await audit.create()
        gap, *records = await take(audit.follow(1), 3)
        assert gap == Gap(2, 4, Reason.SOURCE_TRIM)
        assert [event.data for event in records if isinstance(event, Record)] == [5, 6]
        assert (await client.router("orders->audit").state()).trimmed_total == 3


@each_form
@on_loop
async def test_a_log_feeds_a_queue_and_a_queue_a_log(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        jobs = client.queue("jobs", node="worker")
        await jobs.create()
        await client.route("orders", "jobs")
        await client.route("jobs", "seen")
        await client.topic("orders").write_many([{"data": 1, "tag": "t"}, {"data": 2}])
        claimed = await jobs.claim(2, wait_ms=30_000)
        while len(claimed) < 2:
            claimed += await jobs.claim(2, wait_ms=30_000)
        assert [(job.seq, job.data, job.tag) for job in claimed] == [(1, 1, "t"), (2, 2, None)]
        assert await datas(client.topic("seen"), 2) == [1, 2], "jobs that somebody has are records all the same"


@each_form
@on_loop
async def test_partitions_go_to_partitions(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        source = client.topic("wide")
        await source.create(partitions=3)
        await client.topic("narrow").create(partitions=2)
        state = await client.route("wide", "narrow")
        assert state.cursors == (0, 0, 0)
        for partition in range(3):
            await source.write_many([{"data": [partition, number]} for number in range(3)], partition=partition)
        found: dict[int, list[list[int]]] = {0: [], 1: []}
        async for page in client.pages(["narrow", "narrow/1"]):
            assert isinstance(page, Page)
            found[page.partition] += [record.data for record in page.records]
            if sum(map(len, found.values())) == 9:
                break
        assert found[1] == [[1, 0], [1, 1], [1, 2]]
        for partition in (0, 2):
            assert [number for at, number in found[0] if at == partition] == [0, 1, 2], "in the order of the source"
        assert (await client.router("wide->narrow").state()).cursors == (3, 3, 3)


@each_form
@on_loop
async def test_five_masters_mirror_each_other(tmp_path: Path, form: str) -> None:
    """A ring of topics, one for each node: everybody gets what the others wrote, once, and it comes to rest."""
    async with opened(form, tmp_path) as client:
        nodes = [f"node-{number}" for number in range(5)]
        for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
            await client.route(node, following, allow_cycle=True)
        for turn in range(3):
            for node in nodes:
                await client.topic(node).write({"turn": turn, "by": node}, node=node)
        everything = sorted((turn, node) for turn in range(3) for node in nodes)
        for node in nodes:
            found = [event for event in await take(client.topic(node).follow(), 15) if isinstance(event, Record)]
            assert sorted((event.data["turn"], event.data["by"]) for event in found) == everything
            for writer in nodes:
                assert [event.data["turn"] for event in found if event.node == writer] == [0, 1, 2], "in its order"
            heard = (await client.topic(node).diff(node=node)).records
            assert len(heard) == 12 and node not in {record.node for record in heard}
        while any([state.lag_records async for state in client.routers()]):
            await settle()
        assert [state.forwarded_total async for state in client.routers()] == [12] * 5, "nothing goes around for ever"
        assert {(await client.topic(node).state()).head_seq for node in nodes} == {15}
