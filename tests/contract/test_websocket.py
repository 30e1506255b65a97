"""What a WebSocket client can say and hear, over a real socket, with a client that knows nothing of us."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.wsrig import Rig, Talker, run


def data(record: dict[str, Any]) -> list[Any]:
    return [each["data"] for each in record["records"]]


async def publish(talker: Talker, topic: str, *datas: object, **options: object) -> dict[str, Any]:
    return await talker.ask("publish", topic=topic, records=[{"data": each} for each in datas], **options)


# ---- publish


def test_a_publish_is_a_write(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            ack = await publish(talker, "jobs", 1, {"a": [2]}, request_id="p1")
            performance = ack.pop("performance")
            assert ack == {
                "op": "ack",
                "request_id": "p1",
                "topic": "jobs",
                "first_seq": 1,
                "last_seq": 2,
                "seqs": [1, 2],
                "head_seq": 2,
                "count": 2,
                "created": True,
                "deduped": False,
            }
            assert set(performance) == {"server_total_ms", "wal_append_ms", "fsync_ms", "throttle_wait_ms"}
            ack = await publish(talker, "jobs", 3, return_seqs=False, request_id=17)
            assert "seqs" not in ack and (ack["request_id"], ack["last_seq"], ack["created"]) == (17, 3, False)
            page = await rig.api.diff("jobs")
            assert data(page) == [1, {"a": [2]}, 3]

    run(tmp_path, scenario)


def test_a_publish_takes_every_option_of_a_write(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            record = {"data": 1, "tag": "t", "node": "n", "meta": {"m": "1"}}
            ack = await talker.ask(
                "publish",
                topic="jobs",
                records=[record],
                config={"cap_records": 5, "durability": "fsync", "partitions": 4},
                disable_backpressure=True,
                partition=3,
            )
            assert (ack["created"], ack["partition"]) == (True, 3)
            page = await rig.api.diff("jobs", partition=3, include_tags=True)
            (kept,) = page["records"]
            assert (kept["$tag"], kept["$node"], kept["meta"]) == ("t", "n", {"m": "1"})
            assert (await rig.api.get("/v0/topics/jobs")).body["config"]["cap_records"] == 5
            once = [await publish(talker, "once", 1, idempotency_key="k") for _ in range(2)]
            assert [each["deduped"] for each in once] == [False, True]
            producer = {"producer_id": "p", "epoch": 1, "sequence": 1}
            twice = [await publish(talker, "once", 2, **producer) for _ in range(2)]
            assert [each["deduped"] for each in twice] == [False, True]
            refused = await publish(talker, "new", 1, create=False, request_id="c")
            assert (refused["code"], refused["request_id"]) == ("topic_not_found", "c")
            assert (await publish(talker, "jobs", 5, node="batch", key="k"))["op"] == "ack"

    run(tmp_path, scenario)


def test_publishes_are_answered_as_they_are_done_and_none_is_lost(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            count = 500
            for number in range(count):
                await talker.say("publish", topic="jobs", records=[{"data": number}], request_id=number)
            acks = [await talker.hear() for _ in range(count)]
            assert {each["op"] for each in acks} == {"ack"}
            assert [each["last_seq"] for each in acks] == [each["request_id"] + 1 for each in acks]
            page = await rig.api.diff("jobs", limit=1000)
            assert data(page) == list(range(count))

    run(tmp_path, scenario)


# ---- subscribe


def test_a_subscription_brings_what_is_there_and_then_what_comes(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 1, 2, 3)
        async with rig.talk() as talker:
            subscribed = await talker.ask("subscribe", topic="jobs", from_seq=1, request_id="s1")
            assert subscribed == {
                "op": "subscribed",
                "request_id": "s1",
                "topics": {"jobs": {"from_seq": 1, "head_seq": 3, "earliest_seq": 1}},
            }
            record, caught_up = await talker.hear_ops("record", "caught_up")
            assert set(record) == {"op", "topic", "records", "from_seq", "to_seq", "head_seq"}
            assert (record["topic"], data(record)) == ("jobs", [2, 3])
            assert (record["from_seq"], record["to_seq"], record["head_seq"]) == (1, 3, 3)
            assert caught_up == {"op": "caught_up", "topic": "jobs", "head_seq": 3}
            await rig.api.write("jobs", 4)
            assert data((await talker.hear_ops("record"))[0]) == [4]

    run(tmp_path, scenario)


def test_higher_backlog_of_a_wildcard_comes_first(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        for topic, priority in (("t:low", -1000), ("t:high", 1000)):
            await rig.api.put(f"/v0/topics/{topic}", {"priority": priority})
            for _ in range(10):
                await rig.api.write(topic, *["x" * 2000] * 200)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="t:*")
            order: list[str] = []
            while len(order) < 4000:
                (record,) = await talker.hear_ops("record") if len(order) % 2000 else [await talker.hear()]
                if record["op"] == "record":
                    order += [record["topic"]] * len(record["records"])
            assert order == ["t:high"] * 2000 + ["t:low"] * 2000

    run(tmp_path, scenario)


def test_the_default_is_the_beginning_and_tail_is_the_end(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 1, 2)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="jobs")
            assert data((await talker.hear_ops("record", "caught_up"))[0]) == [1, 2]
            subscribed = await talker.ask("subscribe", topic="jobs", tail=True, from_seq=1)
            assert subscribed["topics"]["jobs"]["from_seq"] == 2
            await talker.hear_ops("caught_up")
            await rig.api.write("jobs", 3)
            assert data((await talker.hear_ops("record"))[0]) == [3]

    run(tmp_path, scenario)


def test_many_topics_at_once_each_from_its_place(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        for name in ("a", "b", "c"):
            await rig.api.write(name, 1, 2, 3)
        async with rig.talk() as talker:
            topics = {"a": {"from_seq": 2}, "b": {"tail": True}, "c": None}
            subscribed = await talker.ask("subscribe", topics=topics)
            assert {name: each["from_seq"] for name, each in subscribed["topics"].items()} == {"a": 2, "b": 3, "c": 0}
            heard = [await talker.hear() for _ in range(5)]
            records = {each["topic"]: data(each) for each in heard if each["op"] == "record"}
            assert records == {"a": [3], "c": [1, 2, 3]}
            assert sorted(each["topic"] for each in heard if each["op"] == "caught_up") == ["a", "b", "c"]

    run(tmp_path, scenario)


def test_a_wildcard_brings_topics_that_are_created_later(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("tenant42:a", 1)
        await rig.api.write("other", 1)
        async with rig.talk() as talker:
            subscribed = await talker.ask("subscribe", topic="tenant42:*", tail=True)
            assert list(subscribed["topics"]) == ["tenant42:a"]
            await talker.hear_ops("caught_up")
            await rig.api.write("other", 2)
            await rig.api.write("tenant42:b", "new")
            while (heard := await talker.hear())["op"] != "record":
                assert (heard["op"], heard["topic"]) == ("caught_up", "tenant42:b"), (
                    "born before its record was written"
                )
            assert (heard["topic"], data(heard)) == ("tenant42:b", ["new"])
            ended = await talker.ask("unsubscribe", topic="tenant42:*", request_id="u")
            assert (ended["topic"], sorted(ended["topics"])) == ("tenant42:*", ["tenant42:a", "tenant42:b"])
            await rig.api.write("tenant42:c", 1)
            await talker.say("ping")
            while (heard := await talker.hear())["op"] != "pong":
                assert (heard["op"], heard["topic"]) == ("caught_up", "tenant42:b")

    run(tmp_path, scenario)


def test_filters_and_shapes(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        records = [
            {"data": 1, "tag": "a:1", "node": "me", "meta": {"m": "1"}},
            {"data": 2, "tag": "a:2", "node": "you", "meta": {"m": "2"}},
            {"data": 3, "tag": "b:1"},
        ]
        assert (await rig.api.post("/v0/topics/jobs", {"records": records})).status == 201

        async def shown(**options: object) -> list[dict[str, Any]]:
            async with rig.talk() as talker:
                await talker.ask("subscribe", topic="jobs", **options)
                found: list[dict[str, Any]] = []
                while (heard := await talker.hear())["op"] == "record":
                    found += heard["records"]
                return [{name: value for name, value in each.items() if name != "$ts"} for each in found]

        assert [each["data"] for each in await shown(node="me")] == [2, 3]
        assert [each["data"] for each in await shown(match=["tag", "Glob", "a:*"])] == [1, 2]
        assert (await shown(include_tags=True))[2] == {"$seq": 3, "$tag": "b:1", "data": 3}
        assert (await shown(include_meta=False, limit=1))[0] == {"$seq": 1, "$node": "me", "data": 1}
        assert (await shown(include_data=False, include_meta=False))[2] == {"$seq": 3}
        assert len(await shown(max_batch_bytes=1, consistency="strong")) == 3

    run(tmp_path, scenario)


def test_batches_are_as_large_as_was_asked_for(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", *range(10))
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="jobs", limit=4)
            heard = await talker.hear_ops("record", "record", "record", "caught_up")
            assert [data(each) for each in heard[:3]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]

    run(tmp_path, scenario)


def test_loss_is_told(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.put("/v0/topics/ticks", {"cap_records": 2})
        await rig.api.write("ticks", 1, 2, 3, 4)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="ticks")
            tombstone, record, _ = await talker.hear_ops("tombstone", "record", "caught_up")
            assert tombstone == {
                "op": "tombstone",
                "topic": "ticks",
                "reason": "from_seq_too_old",
                "gap_from": 1,
                "gap_to": 2,
                "earliest_seq": 3,
                "head_seq": 4,
            }
            assert data(record) == [3, 4]

    run(tmp_path, scenario)


def test_a_topic_that_is_deleted_says_so_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("a", 1)
        await rig.api.write("b", 1)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topics={"a": {"tail": True}, "b": {"tail": True}})
            await talker.hear_ops("caught_up", "caught_up")
            await rig.api.delete("/v0/topics/a?force=true")
            deleted = await talker.hear()
            assert deleted == {"op": "topic_deleted", "topic": "a", "head_seq": 1, "reason": "deleted"}
            await rig.api.write("b", 2)
            assert data((await talker.hear_ops("record"))[0]) == [2]
            assert (await talker.ask("unsubscribe", topic="a"))["topics"] == []

    run(tmp_path, scenario)


def test_unsubscribe_ends_it(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("a", 1)
        await rig.api.write("b", 1)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topics={"a": {"tail": True}, "b": {"tail": True}})
            await talker.hear_ops("caught_up", "caught_up")
            ended = await talker.ask("unsubscribe", topic="a", request_id="u1")
            assert ended == {"op": "unsubscribed", "request_id": "u1", "topic": "a", "topics": ["a"]}
            assert rig.watched_count == 1
            await rig.api.write("a", 2)
            await rig.api.write("b", 2)
            assert (await talker.hear_ops("record"))[0]["topic"] == "b"
            ended = await talker.ask("unsubscribe", topics=["a", "b"])
            assert ended == {"op": "unsubscribed", "request_id": None, "topics": ["b"]}

    run(tmp_path, scenario)


def test_everybody_gets_every_record(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 0)
        async with rig.talk() as one, rig.talk() as two, rig.talk(compression="deflate") as three, rig.talk() as writer:
            for talker in (one, two, three):
                await talker.ask("subscribe", topic="jobs", tail=True)
                await talker.hear_ops("caught_up")
            for number in range(20):
                await publish(writer, "jobs", number)
            for talker in (one, two, three):
                heard: list[Any] = []
                while len(heard) < 20:
                    heard += data((await talker.hear_ops("record"))[0])
                assert heard == list(range(20))

    run(tmp_path, scenario)


# ---- ping and errors


def test_ping(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            assert await talker.ask("ping", request_id="ping-1") == {"op": "pong", "request_id": "ping-1"}
            assert await talker.ask("ping") == {"op": "pong", "request_id": None}
            waiter = await talker.socket.ping()
            await waiter

    run(tmp_path, scenario)


WRONG: dict[str, tuple[str, str, str]] = {
    "no JSON": ("{", "invalid_request", ""),
    "no object": ("[]", "invalid_request", ""),
    "empty": ("", "invalid_request", ""),
    "no op": ('{"request_id":"r"}', "invalid_request", "op"),
    "unknown op": ('{"op":"jump","request_id":"r"}', "invalid_request", "op"),
    "op twice": ('{"op":"publish","op":"publish","topic":"a","records":[{"data":1}]}', "invalid_request", "op"),
    "long id": (json.dumps({"op": "ping", "request_id": "r" * 300}), "invalid_request", "request_id"),
    "id of another type": ('{"op":"ping","request_id":[]}', "invalid_request", "request_id"),
    "publish without topic": ('{"op":"publish","records":[{"data":1}],"request_id":"r"}', "invalid_request", "topic"),
    "publish to a bad name": ('{"op":"publish","topic":"a b","records":[{"data":1}]}', "invalid_request", "topic"),
    "publish nothing": ('{"op":"publish","topic":"a","records":[],"request_id":"r"}', "invalid_request", "records"),
    "publish no records": ('{"op":"publish","topic":"a","request_id":"r"}', "invalid_request", "records"),
    "topic twice": ('{"op":"publish","topic":"a","topic":"b","records":[{"data":1}]}', "invalid_request", "topic"),
    "subscribe to nothing": ('{"op":"subscribe","request_id":"r"}', "invalid_request", "topic"),
    "subscribe to no topics": ('{"op":"subscribe","topics":{}}', "invalid_request", "topics"),
    "both": ('{"op":"subscribe","topic":"a","topics":{"a":{}}}', "invalid_request", "topics"),
    "place beside topics": ('{"op":"subscribe","topics":{"a":{}},"tail":true}', "invalid_request", "tail"),
    "bad place": ('{"op":"subscribe","topic":"a","from_seq":-1}', "invalid_request", "from_seq"),
    "bad match": ('{"op":"subscribe","topic":"a","match":["x"]}', "invalid_request", "match"),
    "bad name": ('{"op":"subscribe","topic":"a b"}', "invalid_request", "topic"),
    "bad consistency": ('{"op":"subscribe","topic":"a","consistency":"x"}', "invalid_request", "consistency"),
    "unsubscribe from nothing": ('{"op":"unsubscribe"}', "invalid_request", "topic"),
    "unknown topic": ('{"op":"subscribe","topic":"nowhere","request_id":"r"}', "topic_not_found", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_answered_and_the_connection_stays(tmp_path: Path, name: str) -> None:
    message, code, field = WRONG[name]

    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            await talker.socket.send(message)
            error = await talker.hear()
            assert (error["op"], error["code"]) == ("error", code), error
            assert error["request_id"] == ("r" if '"request_id":"r"' in message else None)
            assert error["message"]
            if field:
                assert error["detail"]["field"] == field
            assert (await talker.ask("ping"))["op"] == "pong"
        metrics = (await rig.api.get("/v0/metrics")).raw.decode()
        assert f'code="{code}"' in metrics, "refusals over a WebSocket are counted like all others"

    run(tmp_path, scenario)


def test_a_subscribe_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("a", 1)
        async with rig.talk() as talker:
            error = await talker.ask("subscribe", topics={"a": {}, "nowhere": {}})
            assert error["code"] == "topic_not_found"
            error = await talker.ask("subscribe", topics={"a": {}, "b": {}, "c": {}})
            assert (error["code"], error["detail"]["field"]) == ("invalid_request", "topics")
            assert rig.watched_count == 0

    run(tmp_path, scenario, max_watch_topics=2)


def test_a_batch_that_is_too_large_is_answered(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            assert (await publish(talker, "a", *range(11)))["code"] == "batch_too_large"
            assert (await publish(talker, "a", "x" * 101))["code"] == "record_too_large"
            assert (await publish(talker, "a", 1))["op"] == "ack"

    run(tmp_path, scenario, max_batch_records=10, max_record_bytes=100)
