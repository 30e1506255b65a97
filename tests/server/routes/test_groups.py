"""Consumer groups over a real socket: every verb, field, status and refusal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop, soon
from tests.server.api import serving
from tests.server.groups import Consumers

KEYS = "all-secret,rw-secret:rw,reader-secret:read,writer-secret:write,tenant-secret:rw:tenant42:"


@on_loop
async def test_a_consume_brings_records_and_a_claim(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.post("/v0/topics/t", {"records": [{"data": {"n": 1}, "tag": "a"}, {"data": 2}, {"data": 3}]})
        group = Consumers(api)
        batch = await group.did("consume", limit=2, consumer="c1", visibility_ms=20_000)
        claim_id, deadline = batch.pop("claim_id"), batch.pop("deadline")
        records = batch.pop("records")
        assert [(record["$seq"], record["data"]) for record in records] == [(1, {"n": 1}), (2, 2)]
        assert deadline == records[0]["$ts"] + 20_000 or deadline > records[0]["$ts"]
        assert claim_id.startswith("claim_")
        assert batch == {
            "topic": "t",
            "group": "g",
            "consumer": "c1",
            "count": 2,
            "first_seq": 1,
            "last_seq": 2,
            "visibility_ms": 20_000,
            "deliveries": 1,
            "committed_seq": 0,
            "head_seq": 3,
            "lag": 3,
            "tombstone": None,
            "paused": False,
        }
        acked = await group.did("ack", upto_seq=2, consumer="c1", claim_id=claim_id)
        assert acked == {"topic": "t", "group": "g", "acked": 2, "committed_seq": 2, "head_seq": 3, "lag": 1}


@on_loop
async def test_tags_come_when_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.post("/v0/topics/t", {"records": [{"data": 1, "tag": "a"}]})
        batch = await Consumers(api).did("consume", include_tags=True)
        assert batch["records"][0]["$tag"] == "a"


@on_loop
async def test_a_consume_may_ack_what_came_before(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(4))
        group = Consumers(api)
        assert await group.consume(2) == [1, 2]
        batch = await group.did("consume", ack_upto_seq=2)
        assert (batch["committed_seq"], [record["$seq"] for record in batch["records"]]) == (2, [3, 4])


@pytest.mark.parametrize(
    ("start", "seqs"),
    [("earliest", [1, 2, 3]), ("latest", []), (2, [2, 3]), (0, [1, 2, 3]), (99, []), ({"ts": 1}, [1, 2, 3])],
)
@on_loop
async def test_where_a_group_begins(tmp_path: Path, start: object, seqs: list[int]) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1, 2, 3)
        group = Consumers(api)
        assert await group.consume(**{"from": start}) == seqs
        # It is pinned: another start changes nothing.
        await group.did("nack", upto_seq=3)
        assert await group.consume(**{"from": "earliest"}) == seqs
        await api.write("t", 4)
        assert await group.consume() == [4]


@on_loop
async def test_claims_of_others_hold_the_commit_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(6))
        group = Consumers(api)
        assert await group.consume(2, consumer="a") == [1, 2]
        assert await group.consume(2, consumer="b") == [3, 4]
        assert (await group.did("ack", upto_seq=4, consumer="b"))["committed_seq"] == 0
        assert (await group.did("ack", upto_seq=99, consumer="a"))["committed_seq"] == 6
        state = await group.state()
        assert (state["lag"], state["in_flight"], state["ranges"]) == (0, 0, [])


@on_loop
async def test_nack_and_extend(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(4))
        group = Consumers(api)
        await group.consume(4, consumer="a")
        answer = await group.did("extend", consumer="a", visibility_ms=50_000)
        assert answer["extended"] == 4 and answer["deadline"] == (await group.state())["ranges"][0]["deadline"]
        answer = await group.did("nack", upto_seq=3, from_seq=2)
        assert (answer["nacked"], answer["committed_seq"]) == (2, 0)
        batch = await group.did("consume")
        assert ([record["$seq"] for record in batch["records"]], batch["deliveries"]) == ([2, 3], 2)
        assert (await group.did("nack", consumer="a", delay_ms=60_000))["nacked"] == 2
        assert await group.consume() == []
        state = await group.state()
        assert [each["kind"] for each in state["ranges"]] == ["delayed", "claimed", "delayed"]
        assert (state["in_flight"], state["waiting"]) == (2, 2)


@on_loop
async def test_reset_pause_resume_and_drop(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(5))
        group = Consumers(api)
        assert await group.did("reset", to=3) == {
            "topic": "t",
            "group": "g",
            "created": True,
            "committed_seq": 2,
            "head_seq": 5,
        }
        assert await group.consume() == [3, 4, 5]
        assert (await group.did("reset", to="latest"))["created"] is False
        assert await group.consume() == []
        await group.did("reset", to="earliest")
        assert await group.did("pause") == {"topic": "t", "group": "g", "paused": True}
        batch = await group.did("consume")
        assert (batch["paused"], batch["records"]) == (True, [])
        assert (await group.state())["paused"] is True
        await group.did("resume")
        assert await group.consume(1) == [1]
        assert (await api.call("DELETE", group.path)).body["deleted"] is True
        assert (await api.call("DELETE", group.path)).body["deleted"] is False
        assert (await api.get(group.path)).refusal == (404, "group_not_found")


@on_loop
async def test_what_is_lost_is_told_until_it_is_acked(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"cap_records": 2})
        group = Consumers(api)
        await api.write("t", 1, 2)
        await group.did("reset", to=1)
        await api.write("t", 3, 4)
        batch = await group.did("consume", limit=1)
        assert batch["tombstone"] == {
            "gap_from": 1,
            "gap_to": 2,
            "reason": "cap",
            "missed_estimate": 2,
            "earliest_seq": 3,
            "head_seq": 4,
        }
        assert [record["$seq"] for record in batch["records"]] == [3] and batch["committed_seq"] == 2
        assert (await group.did("consume", limit=1))["tombstone"] is None
        await group.did("nack", upto_seq=3)
        batch = await group.did("consume", limit=1)
        assert (batch["tombstone"]["gap_to"], batch["last_seq"]) == (2, 3)
        await group.did("ack", upto_seq=3)
        state = await group.state()
        assert (state["losses"], state["lost_count"], state["committed_seq"]) == ([], 2, 3)


@on_loop
async def test_a_consume_waits_for_records(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {})
        group = Consumers(api)
        waiting = asyncio.ensure_future(group.consume(wait_ms=30_000))
        while not (await _metric(api, "topics_group_consumes_waiting")):
            await asyncio.sleep(0)
        await api.write("t", 1)
        assert await soon(waiting) == [1]


async def _metric(api: Any, name: str) -> float:
    text = (await api.get("/v0/metrics")).raw.decode()
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " "))


@on_loop
async def test_who_waits_and_goes_away_gets_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {})
        group = Consumers(api)
        reader, writer = await asyncio.open_connection(api.address.hostname, api.address.port)
        body = b'{"wait_ms":30000}'
        writer.write(b"POST %b/consume HTTP/1.1\r\nHost: localhost\r\n" % group.path.encode())
        writer.write(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        while not (await _metric(api, "topics_group_consumes_waiting")):
            await asyncio.sleep(0)
        writer.close()
        while await _metric(api, "topics_group_consumes_waiting"):
            await asyncio.sleep(0)
        await api.write("t", 1)
        assert await group.consume() == [1]
        assert (await group.state())["members"][0]["claims"] == 1
        assert not await reader.read()


@on_loop
async def test_partitions_have_positions_of_their_own(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"partitions": 2})
        await api.write("t", 1, 2, partition=1)
        group = Consumers(api)
        batch = await group.did("consume", partition=1)
        assert (batch["partition"], batch["count"]) == (1, 2)
        assert (await group.did("ack", upto_seq=2, partition=1))["partition"] == 1
        assert (await group.post("nack", upto_seq=2)).refusal == (404, "group_not_found")
        await group.did("consume")
        listed = (await api.get("/v0/topics/t/groups")).body["groups"]
        assert [(each["partition"], each["committed_seq"]) for each in listed] == [(0, 0), (1, 2)]
        assert (await group.state("?partition=1"))["lag"] == 0


@on_loop
async def test_a_topic_says_how_long_claims_last(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        answer = await api.put("/v0/topics/t", {"visibility_ms": 7})
        assert answer.body["config"]["visibility_ms"] == 100
        await api.put("/v0/topics/t", {"visibility_ms": 5000})
        await api.write("t", 1)
        batch = await Consumers(api).did("consume")
        assert batch["deadline"] - batch["records"][0]["$ts"] < 60_000


@on_loop
async def test_dead_letters_of_a_group_stay_for_others(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.put("/v0/topics/t", {"max_deliveries": 1, "dead_letter": "t.dead"})
        await api.write("t", "poison", "good")
        group = Consumers(api)
        await group.consume(1)
        await group.did("nack", upto_seq=1)
        assert await group.consume() == [2]
        while not (await group.state())["dead_lettered"]:
            await asyncio.sleep(0)
        (letter,) = (await api.diff("t.dead"))["records"]
        assert letter["data"] == "poison"
        assert letter["meta"] == {
            "$dead_letter_from": "t",
            "$dead_letter_src_seq": "1",
            "$dead_letter_deliveries": "1",
            "$dead_letter_reason": "max_deliveries",
            "$dead_letter_group": "g",
        }
        assert (await group.state())["committed_seq"] == 1
        assert await Consumers(api, group="other").consume() == [1, 2]


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("consume", {"limit": 0}, "limit"),
        ("consume", {"from": "yesterday"}, "from"),
        ("consume", {"from": True}, "from"),
        ("consume", {"from": -1}, "from"),
        ("consume", {"from": {"ts": 1, "x": 2}}, "from"),
        ("consume", {"partition": 1}, "partition"),
        ("consume", {"consumer": "x" * 2000}, "consumer"),
        ("ack", {}, "upto_seq"),
        ("ack", {"upto_seq": -1}, "upto_seq"),
        ("ack", {"upto_seq": 1, "from_seq": 3}, "from_seq"),
        ("nack", {}, "upto_seq"),
        ("extend", {}, "upto_seq"),
        ("reset", {}, "to"),
        ("reset", {"to": None}, "to"),
    ],
)
@on_loop
async def test_what_is_refused(tmp_path: Path, verb: str, body: dict[str, Any], field: str) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        group = Consumers(api)
        await group.consume()
        answer = await group.post(verb, **body)
        assert answer.refusal == (400, "invalid_request")
        assert answer.error["detail"]["field"] == field
        assert answer.error["detail"]["expected"]


@on_loop
async def test_what_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        assert (await Consumers(api).post("consume")).refusal == (404, "topic_not_found")
        await api.write("t", 1)
        acked = await Consumers(api, group="new").did("ack", upto_seq=1)
        assert (acked["acked"], acked["committed_seq"]) == (1, 1), "an ack is a first contact too"
        for verb, body in (
            ("ack", {"upto_seq": 1, "claim_id": "claim_1"}),
            ("nack", {"upto_seq": 1}),
            ("extend", {"upto_seq": 1}),
            ("pause", {}),
        ):
            assert (await Consumers(api).post(verb, **body)).refusal == (404, "group_not_found")
        assert (await Consumers(api, group="-x").post("consume")).refusal == (400, "invalid_request")


@on_loop
async def test_scopes_and_prefixes(tmp_path: Path) -> None:
    async with serving(tmp_path, api_keys=KEYS) as api:
        api.key = "all-secret"
        await api.write("t", 1)
        group = Consumers(api)
        for key, status in (("reader-secret", 403), ("writer-secret", 403), ("tenant-secret", 403), ("rw-secret", 200)):
            api.key = key
            assert (await group.post("consume")).status == status
        for verb in ("ack", "nack", "extend", "reset", "pause", "resume"):
            api.key = "reader-secret"
            assert (await group.post(verb)).status == 403
        assert (await api.get(group.path)).status == 200
        assert (await api.get("/v0/topics/t/groups")).status == 200


@on_loop
async def test_a_group_survives_a_restart(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(5))
        group = Consumers(api)
        await group.consume(2)
        await group.did("ack", upto_seq=2)
        before = await group.state()
    async with serving(tmp_path) as api:
        assert await Consumers(api).state() == before
        assert await Consumers(api).consume() == [3, 4, 5]


@on_loop
async def test_what_a_scrape_tells_of_groups(tmp_path: Path) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", *range(5))
        group = Consumers(api)
        await group.consume(2)
        await group.did("ack", upto_seq=1)
        text = (await api.get("/v0/metrics")).raw.decode()
        labels = '{topic="t",partition="0",group="g"}'
        assert f"topics_group_lag{labels} 4" in text
        assert f"topics_group_in_flight{labels} 1" in text
        assert f"topics_group_lost_total{labels} 0" in text


@pytest.mark.parametrize("verb", ["pause", "resume"])
@on_loop
async def test_what_has_nothing_to_say_is_an_object_or_nothing(tmp_path: Path, verb: str) -> None:
    async with serving(tmp_path) as api:
        await api.write("t", 1)
        await Consumers(api).consume()
        refused = await api.post(f"/v0/topics/t/groups/g/{verb}", [None])
        assert refused.status == 400 and refused.error["code"] == "invalid_request"
        assert (await api.post(f"/v0/topics/t/groups/g/{verb}", {})).status == 200
