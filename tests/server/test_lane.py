from __future__ import annotations

import asyncio
import errno
import json
import logging
from functools import partial
from pathlib import Path

import pytest

from tests.server.httprig import Answer, run
from tests.server.lanerig import TOPIC, LaneRig, answers, body_of, fails_to_close, plain, reached, serving, write
from topics.server.traffic import SAMPLE

LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def without_performance(answer: Answer) -> dict[str, object]:
    return {name: value for name, value in body_of(answer).items() if name != "performance"}


async def count_of_writes(rig: LaneRig) -> int:
    text = (await rig.ask("GET", "/v0/metrics")).body.decode()
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith('topics_http_requests_total{method="POST",route="/v0/topics/{topic}"}')
    ]
    return int(line.rpartition(" ")[2])


# ---- together


@LOOPS
def test_writes_of_one_turn_are_one_command_and_each_has_its_answer(loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(8)
            frames = rig.frames
            for number, caller in enumerate(callers):
                caller.send(plain(b"%d" % number))
            given = await answers(callers)
            assert rig.frames == frames + 1
            assert [answer.status for answer in given] == [200] * 8
            seqs = [body_of(answer)["first_seq"] for answer in given]
            assert sorted(seqs) == list(range(9, 17))
            assert [(await rig.stored())[seq - 1] for seq in seqs] == list(range(8))

    run(scenario, loop)


def test_a_connection_that_writes_alone_does_not_wait_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            first, second = await rig.calls(2)
            lone, other = rig.connection_of(first), rig.connection_of(second)
            for _ in range(2):
                first.send(plain(b"1"))
                assert (await first.answer()).status == 200
            log = rig.engine.machine.log(rig.engine.machine.topic(TOPIC))
            lone.data_received(plain(b"2"))
            assert log.head_seq == 5, "within the call"
            assert (await first.answer()).status == 200
            frames = rig.frames
            other.data_received(plain(b"3"))
            lone.data_received(plain(b"4"))
            assert log.head_seq == 5, "somebody else came first, so there may be more"
            assert [answer.status for answer in await answers([first, second])] == [200, 200]
            assert rig.frames == frames + 1
            lone.data_received(plain(b"5"))
            assert log.head_seq == 7, "the last time it was not alone"
            assert (await first.answer()).status == 200
            assert await rig.stored() == [0, 0, 1, 1, 2, 3, 4, 5]

    run(scenario)


def test_the_answer_is_that_of_the_ordinary_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            caller.send(write(b'{"records": [{"data": 1}]}'))
            ordinary = await caller.answer()
            frames = rig.frames
            caller.send(plain(b"1"))
            ours = await caller.answer()
            assert rig.frames == frames + 1
            assert body_of(ours)["performance"].keys() == body_of(ordinary)["performance"].keys()
            expected = {**without_performance(ordinary), "first_seq": 3, "last_seq": 3, "seqs": [3], "head_seq": 3}
            assert without_performance(ours) == expected
            assert list(body_of(ours)) == list(body_of(ordinary))
            assert ours.headers.keys() == ordinary.headers.keys()
            first, second = (answer.headers["x-request-id"].rsplit("-", 1) for answer in (ordinary, ours))
            assert first[0] == second[0] and int(second[1]) == int(first[1]) + 1

    run(scenario)


def test_seqs_may_get_a_digit_more_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(6)
            for caller in callers:
                caller.send(plain(b"1"))
            assert sorted(body_of(answer)["head_seq"] for answer in await answers(callers)) == [7, 8, 9, 10, 11, 12]

    run(scenario)


def test_bodies_of_all_lengths_are_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            datas = [
                json.dumps("x" * length).encode() for length in (1, 70, 71, 72, 73, 74, 75, 76, 968, 975, 4000, 5000)
            ]
            for data in datas:
                caller.send(plain(data))
                assert (await caller.answer()).status == 200
            assert [json.dumps(data).encode() for data in (await rig.stored())[1:]] == datas

    run(scenario)


def test_a_topic_of_several_partitions_is_told_which(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"partitions": 2})
            caller = await rig.call()
            caller.send(plain(b"1"))
            assert body_of(await caller.answer())["partition"] == 0

    run(scenario)


@pytest.mark.parametrize("durability", ["ephemeral", "memory", "disk", "fsync"])
def test_every_class_is_written(durability: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await rig.ask("PUT", "/v0/topics/orders", {"durability": durability})
            callers = await rig.calls(3)
            for caller in callers:
                caller.send(plain(b"1"))
            assert sorted(body_of(answer)["first_seq"] for answer in await answers(callers)) == [4, 5, 6]
            assert await rig.stored() == [0, 0, 0, 1, 1, 1]

    run(scenario)


# ---- each by itself


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"nul", "invalid_request"),
        (b"1,2", "invalid_request"),
        (b'1,"tag":7', "invalid_request"),
        (b"[" * 600 + b"]" * 600, "invalid_request"),
        (b'"\xff"', "invalid_request"),
        (b'"%b"' % (b"x" * 200), "record_too_large"),
    ],
    ids=["broken", "two values", "another field", "too deep", "no UTF-8", "too large"],
)
def test_one_that_is_refused_does_not_touch_the_others(data: bytes, code: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, max_record_bytes=2000 if data.startswith(b"[") else 150) as rig:
            alone = await rig.call(known=False)
            alone.send(plain(data))
            expected = await alone.answer()
            callers = await rig.calls(5)
            for number, caller in enumerate(callers):
                caller.send(plain(data if number == 2 else b'"good"'))
            given = await answers(callers)
            assert [answer.status for number, answer in enumerate(given) if number != 2] == [200] * 4
            assert (given[2].status, given[2].error) == (expected.status, code)
            assert json.loads(given[2].body)["error"] == json.loads(expected.body)["error"]
            assert await rig.stored() == [0] * 5 + ["good"] * 4

    run(scenario)


def test_neighbours_cannot_make_a_value_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(2)
            callers[0].send(plain(b'"a'))
            callers[1].send(plain(b'b"'))
            assert [answer.status for answer in await answers(callers)] == [400, 400]

    run(scenario)


def test_what_is_more_than_a_plain_write_goes_the_ordinary_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call()
            caller.send(plain(b'1,"tag":"a"'))
            assert body_of(await caller.answer())["first_seq"] == 2
            caller.send(write(b'{"records":[{"data":1}],"idempotency_key":"k","config":{}}'))
            assert body_of(await caller.answer())["first_seq"] == 3
            caller.send(plain(b'1},{"data":2'))
            assert body_of(await caller.answer())["seqs"] == [4, 5]
            for _ in range(2):
                keyed = await rig.call("Idempotency-Key: once")
                keyed.send(plain(b"0", "Idempotency-Key: once"))
                assert body_of(await keyed.answer())["deduped"] is True
            assert await rig.stored() == [0, 1, 1, 1, 2, 0]

    run(scenario)


def test_a_length_that_is_not_written_as_most_write_it_goes_the_ordinary_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            caller = await rig.call(known=False)
            for seq in (1, 2, 3):
                caller.send(plain(b"%d" % seq).replace(b"Content-Length: ", b"Content-Length:"))
                assert body_of(await caller.answer())["first_seq"] == seq
            assert await rig.stored() == [1, 2, 3]

    run(scenario)


def test_a_topic_that_went_away_is_made_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(3)
            await rig.ask("DELETE", "/v0/topics/orders")
            for caller in callers:
                caller.send(plain(b"1"))
            given = [(answer.status, body_of(answer)["created"]) for answer in await answers(callers)]
            assert sorted(given) == [(200, False), (200, False), (201, True)]

    run(scenario)


def test_a_full_topic_takes_as_many_as_fit(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(4)
            await rig.ask("PUT", "/v0/topics/orders", {"cap_records": 6, "discard": "reject"})
            for caller in callers:
                caller.send(plain(b"1"))
            given = await answers(callers)
            assert sorted(answer.status for answer in given)[:2] == [200, 200]
            assert [answer.error for answer in given if answer.status != 200] == ["topic_full"] * 2
            assert len(await rig.stored()) == 6

    run(scenario)


def test_a_throttled_server_admits_the_share_it_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(4)
            rig.context.throttle.share = 0.5
            for caller in callers:
                caller.send(plain(b"1"))
            given = await answers(callers)
            assert sorted(answer.status for answer in given) == [200, 200, 429, 429]
            assert rig.context.throttle.refused == 2

    run(scenario)


def test_a_batch_limit_is_no_limit_for_writes_that_happen_to_come_together(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, max_batch_records=2) as rig:
            callers = await rig.calls(5)
            frames = rig.frames
            for caller in callers:
                caller.send(plain(b"1"))
            assert [answer.status for answer in await answers(callers)] == [200] * 5
            assert rig.frames == frames + 3

    run(scenario)


# ---- keys


def test_a_key_is_checked_with_the_head_that_brings_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        keys = "secret-one:rw:orders,secret-two:read,secret-three:write:other"
        async with serving(tmp_path, api_keys=keys) as rig:
            callers = await rig.calls(3, "Authorization: Bearer secret-one")
            frames = rig.frames
            for caller in callers:
                caller.send(plain(b"1", "Authorization: Bearer secret-one"))
            assert [answer.status for answer in await answers(callers)] == [200] * 3
            assert rig.frames == frames + 1
            for token, status in [("secret-two", 403), ("secret-three", 403), ("secret-four", 401)]:
                callers[0].send(plain(b"1", f"Authorization: Bearer {token}"))
                assert (await callers[0].answer()).status == status
                callers[0].send(plain(b"1", f"Authorization: Bearer {token}"))
                assert (await callers[0].answer()).status == status
            callers[0].send(plain(b"1"))
            assert (await callers[0].answer()).status == 401

    run(scenario)


def test_a_quota_counts_each_write_of_a_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="secret", max_inflight_per_key=3) as rig:
            key = "Authorization: Bearer secret"
            callers = await rig.calls(5, key)
            for caller in callers[:3]:
                caller.send(plain(b"1", key))
            assert [answer.status for answer in await answers(callers[:3])] == [200] * 3
            await rig.ask("PUT", "/v0/topics/orders", {"durability": "fsync"}, key)
            entered, leave = rig.hold_syncs()
            for caller in callers:
                caller.send(plain(b"1", key))
            await reached(entered)
            refused = await answers(callers[3:])
            leave.set()
            given = await answers(callers[:3])
            assert [answer.status for answer in given] == [200] * 3
            assert [(answer.status, json.loads(answer.body)["error"]["detail"]["limit"]) for answer in refused] == [
                (429, "max_inflight_per_key")
            ] * 2

    run(scenario)


# ---- what goes wrong


def test_a_disk_that_fails_is_told_to_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(3)
            rig.fs.fail("write_at", errno.EIO, path="*.wal", always=True)
            for caller in callers:
                caller.send(plain(b"1"))
            given = await answers(callers)
            assert {(answer.status, answer.error) for answer in given} == {(503, "log_stopped")}
            for caller in callers:
                caller.send(plain(b"1"))
            assert {answer.error for answer in await answers(callers)} == {"log_stopped"}
            rig.fs.clear()

    run(partial(fails_to_close, scenario))


# ---- what is counted


def test_every_write_is_counted_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(5)
            for _ in range(10):
                for number, caller in enumerate(callers):
                    caller.send(plain(b"nul" if number == 3 else b"1"))
                await answers(callers)
            assert await count_of_writes(rig) == 55
            traffic = rig.context.traffic.of("POST", "/v0/topics/{topic}")
            assert sum(traffic.duration_us.counts) == -(-55 // SAMPLE)
            assert rig.context.traffic.errors == {(400, "invalid_request"): 10}

    run(scenario)


def test_with_an_access_log_each_write_has_its_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, access_log=True) as rig:
            callers = await rig.calls(3)
            for caller in callers:
                caller.send(plain(b"1"))
            await answers(callers)

    with caplog.at_level(logging.INFO, "topics.server.accesslog"):
        run(scenario)
    assert [record.message for record in caplog.records if record.name == "topics.server.accesslog"] == ["request"] * 6


def test_a_track_lives_as_long_as_a_connection_that_uses_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(2)
            tracks = rig.server._track_of.__self__._tracks  # type: ignore[attr-defined]
            assert len(tracks) == 1
            for caller in callers:
                await caller.close()
            while len(rig.server._connections):
                await asyncio.sleep(0)
            assert len(tracks) == 0

    run(scenario)


def test_a_defect_that_one_answer_meets_is_told_to_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(3)
            unlucky = sorted(rig.server._connections._open, key=lambda each: each._id)[1]  # type: ignore[attr-defined]

            def fail(template: bytes, seq: bytes) -> bool:
                raise ValueError("on purpose")

            monkeypatch.setattr(unlucky, "answer_plain", fail)
            for caller in callers:
                caller.send(plain(b"1"))
            assert sorted(answer.status for answer in await answers(callers)) == [200, 200, 500]

    run(scenario)


def test_a_defect_of_all_is_told_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            callers = await rig.calls(3)
            topic = rig.engine.machine.topics.get("orders")
            assert topic is not None
            log = rig.engine.machine.logs.pop(topic.first_log_id)
            for caller in callers:
                caller.send(plain(b"1"))
            assert [answer.status for answer in await answers(callers)] == [500] * 3
            rig.engine.machine.logs[topic.first_log_id] = log
            callers[0].send(plain(b"1"))
            assert (await callers[0].answer()).status == 200

    run(scenario)
