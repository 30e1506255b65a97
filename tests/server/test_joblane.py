"""Claims and acks of several workers that come in one turn: one command each, and every worker its own answer."""

from __future__ import annotations

import asyncio
import errno
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.server.httprig import Answer, Caller, run
from tests.server.lanerig import LaneRig, answers, body_of, fails_to_close, reached, serving
from topics.server.joblane import dispatch_alone
from topics.server.message import Reply, Request

QUEUE = "jobs"
LOOPS = pytest.mark.parametrize("loop", ["asyncio", "uvloop"])


def ask(verb: str, body: object, *headers: str) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST /v0/topics/{QUEUE}/{verb} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""]).encode() + content


def claim(node: str, most: int = 1, **options: object) -> bytes:
    return ask("claim", {"node": node, "max": most, **options})


def ack(node: str, seqs: list[int], **options: object) -> bytes:
    return ask("ack", {"node": node, "seqs": seqs, **options})


def seqs_of(answer: Answer) -> list[int]:
    assert answer.status == 200, answer.body
    return [job["$seq"] for job in body_of(answer)["claimed"]]


async def make(rig: LaneRig, jobs: int, **config: object) -> None:
    made = await rig.ask("PUT", f"/v0/topics/{QUEUE}", {"type": "queue", **config})
    assert made.status == 201, made.body
    if jobs:
        await rig.ask("POST", f"/v0/topics/{QUEUE}", {"records": [{"data": number} for number in range(jobs)]})


async def worker(rig: LaneRig, node: str) -> Caller:
    """A connection that has claimed and acked before, in vain, so that both are on tracks."""
    caller = await rig.call(known=False)
    caller.send(ack(node, [10**9]))
    assert body_of(await caller.answer())["skipped"] == [10**9]
    caller.send(ask("claim", {"node": "", "max": 1}))
    assert (await caller.answer()).status == 400
    return caller


async def workers(rig: LaneRig, count: int) -> list[Caller]:
    return [await worker(rig, f"w{number}") for number in range(count)]


async def state(rig: LaneRig) -> dict[str, int]:
    queue: dict[str, int] = body_of(await rig.ask("GET", f"/v0/topics/{QUEUE}"))["queue"]
    return queue


def together(rig: LaneRig) -> list[int]:
    """How many were decided by each command of the lane from now on."""
    counts: list[int] = []
    engine, claiming = rig.engine, rig.engine.claiming
    claim_together, submit = claiming.claim_together, engine.submit

    def claimed(topic: str, claimers: Any, *others: Any) -> Any:
        counts.append(len(claimers))
        return claim_together(topic, claimers, *others)

    def submitted(command: Any) -> Any:
        if hasattr(command, "acks"):
            counts.append(len(command.acks))
        return submit(command)

    claiming.claim_together, engine.submit = claimed, submitted  # type: ignore[method-assign]
    return counts


# ---- together


@LOOPS
def test_claims_and_acks_of_one_turn_are_one_command_each(loop: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 30)
            callers = await workers(rig, 4)
            frames, counts = rig.frames, together(rig)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}", 3))
            given = await answers(callers)
            assert (rig.frames, counts) == (frames + 1, [4])
            held = [seqs_of(answer) for answer in given]
            assert sorted(held) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]], "as if one after the other"
            for number, caller in enumerate(callers):
                caller.send(ack(f"w{number}", held[number]))
            done = [body_of(answer) for answer in await answers(callers)]
            assert (rig.frames, counts) == (frames + 2, [4, 4])
            assert [(each["acked"], each["skipped"], each["ready"], each["in_flight"]) for each in done] == [
                (3, [], 18, 0)
            ] * 4
            assert await state(rig) == {"ready": 18, "in_flight": 0, "delayed": 0, "dead_lettered": 0}

    run(scenario, loop)


def test_the_answers_are_those_of_the_ordinary_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 4)
            caller = await worker(rig, "w0")
            ordinary = await rig.ask("POST", f"/v0/topics/{QUEUE}/claim", {"node": "w0", "max": 2})
            caller.send(claim("w0", 2))
            ours = await caller.answer()
            assert list(body_of(ours)) == list(body_of(ordinary))
            assert ours.headers.keys() == ordinary.headers.keys()
            assert [list(job) for job in body_of(ours)["claimed"]] == [
                list(job) for job in body_of(ordinary)["claimed"]
            ]
            assert body_of(ours)["performance"].keys() == body_of(ordinary)["performance"].keys()
            ordinary = await rig.ask("POST", f"/v0/topics/{QUEUE}/ack", {"node": "w0", "seqs": [1, 9]})
            caller.send(ack("w0", [3, 9]))
            ours = await caller.answer()
            for answer in (ordinary, ours):
                assert body_of(answer) | {"performance": 0, "in_flight": 0} == {
                    "topic": QUEUE,
                    "acked": 1,
                    "skipped": [9],
                    "ready": 0,
                    "in_flight": 0,
                    "performance": 0,
                }
            assert list(body_of(ours)) == list(body_of(ordinary))

    run(scenario)


def test_what_two_say_about_one_job_counts_once(tmp_path: Path) -> None:
    """The same worker on two connections; and seqs that are named twice."""

    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 5)
            callers = await workers(rig, 3)
            callers[0].send(claim("w", 4))
            assert seqs_of(await callers[0].answer()) == [1, 2, 3, 4]
            counts = together(rig)
            callers[0].send(ack("w", [1, 2, 2]))
            callers[1].send(ack("w", [3, 2, 1, 3]))
            callers[2].send(ack("x", [4]))
            given = [body_of(answer) for answer in await answers(callers)]
            assert sum(counts) == 3, "together or not"
            assert sum(each["acked"] for each in given) == 3
            assert given[0]["acked"] + len(set(given[0]["skipped"])) == 2
            assert given[1]["acked"] + len(set(given[1]["skipped"])) == 3
            assert (given[2]["acked"], given[2]["skipped"]) == (0, [4])
            assert await state(rig) == {"ready": 1, "in_flight": 1, "delayed": 0, "dead_lettered": 0}

    run(scenario)


def test_lease_ids_fence_on_the_lane_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 2)
            caller = await worker(rig, "w")
            caller.send(claim("w", 2))
            lease_ids = [job["lease_id"] for job in body_of(await caller.answer())["claimed"]]
            caller.send(ack("w", [1, 2], lease_ids=[lease_ids[1], lease_ids[1]]))
            done = body_of(await caller.answer())
            assert (done["acked"], done["skipped"]) == (1, [1])

    run(scenario)


def test_partitions_are_kept_apart_and_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 0, partitions=2)
            for partition in (0, 1):
                record = {"records": [{"data": partition}], "partition": partition}
                await rig.ask("POST", f"/v0/topics/{QUEUE}", record)
            callers = await workers(rig, 2)
            for partition, caller in enumerate(callers):
                caller.send(claim("w", 1, partition=partition))
            given = [body_of(answer) for answer in await answers(callers)]
            assert [(each["partition"], each["claimed"][0]["data"]) for each in given] == [(0, 0), (1, 1)]
            for partition, caller in enumerate(callers):
                caller.send(ack("w", [1], partition=partition))
            given = [body_of(answer) for answer in await answers(callers)]
            assert [(each["partition"], each["acked"]) for each in given] == [(0, 1), (1, 1)]

    run(scenario)


# ---- each by itself


def test_one_that_is_refused_does_not_touch_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 9)
            callers = await workers(rig, 3)
            callers[0].send(claim("w0", 2))
            callers[1].send(ask("claim", b'{"node":"w1","max":"many"}'))
            callers[2].send(claim("w2", 0))
            given = await answers(callers)
            assert (seqs_of(given[0]), [answer.status for answer in given[1:]]) == ([1, 2], [400, 400])
            callers[0].send(ack("w0", [1]))
            callers[1].send(ask("ack", b'{"node":"w1","seqs":[1],"seqs":[2]}'))
            callers[2].send(ack("w2", []))
            given = await answers(callers)
            assert [answer.status for answer in given] == [200, 400, 400]
            assert (await state(rig))["in_flight"] == 1

    run(scenario)


def test_an_ack_that_is_no_utf8_is_refused_by_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 1)
            callers = await workers(rig, 2)
            callers[0].send(claim("w0"))
            assert seqs_of(await callers[0].answer()) == [1]
            callers[0].send(ack("w0", [1]))
            callers[1].send(ask("ack", b'{"node":"\xda","seqs":[1]}'))
            assert [answer.status for answer in await answers(callers)] == [200, 400]
            assert (await state(rig))["in_flight"] == 0

    run(scenario)


def test_an_ack_with_results_takes_the_ordinary_way(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 2)
            caller = await worker(rig, "w")
            caller.send(claim("w", 2))
            await caller.answer()
            caller.send(ack("w", [1], produce=[{"topic": "results", "records": [{"data": "done"}]}]))
            assert body_of(await caller.answer())["written"][0]["topic"] == "results"
            assert await rig.stored("results") == ["done"]

    run(scenario)


def test_a_claim_that_may_wait_is_served_at_once_or_waits(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 1)
            callers = await workers(rig, 2)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}", 1, wait_ms=30_000))
            first, second = (asyncio.ensure_future(caller.answer()) for caller in callers)
            done, _ = await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
            assert [seqs_of(each.result()) for each in done] == [[1]]
            await rig.ask("POST", f"/v0/topics/{QUEUE}", {"records": [{"data": 1}]})
            assert sorted(seqs_of(each) for each in await asyncio.gather(first, second)) == [[1], [2]]
            counts = together(rig)
            await rig.ask("POST", f"/v0/topics/{QUEUE}", {"records": [{"data": 2}]})
            callers[0].send(claim("w0", 1, wait_ms=30_000))
            assert (seqs_of(await callers[0].answer()), counts) == ([3], [1])

    run(scenario)


def test_a_window_divides_evenly_and_no_claim_gets_past_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 6, claim_jitter_ms=50)
            callers = await workers(rig, 3)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}", 9))
            assert sorted(seqs_of(answer) for answer in await answers(callers)) == [[1, 4], [2, 5], [3, 6]]

    run(scenario)


def test_a_queue_that_is_gone_is_told_to_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 1)
            callers = await workers(rig, 2)
            await rig.ask("DELETE", f"/v0/topics/{QUEUE}")
            for verb in (lambda: claim("w"), lambda: ack("w", [1])):
                for caller in callers:
                    caller.send(verb())
                assert [answer.error for answer in await answers(callers)] == ["topic_not_found"] * 2
            await rig.ask("PUT", f"/v0/topics/{QUEUE}", {"type": "log"})
            for caller in callers:
                caller.send(claim("w"))
            assert [answer.error for answer in await answers(callers)] == ["not_a_queue"] * 2

    run(scenario)


def test_a_quota_counts_each_of_a_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path, api_keys="secret", max_inflight_per_key=2) as rig:
            key = "Authorization: Bearer secret"
            await rig.ask("PUT", f"/v0/topics/{QUEUE}", {"type": "queue", "leases_durable": True}, key)
            records = {"records": [{"data": number} for number in range(5)]}
            await rig.ask("POST", f"/v0/topics/{QUEUE}", records, key)
            callers = [await rig.call(known=False) for _ in range(3)]
            for caller in callers:
                caller.send(ask("claim", {"node": "w"}, key))
                assert (await caller.answer()).status == 200
            entered, leave = rig.hold_syncs()
            for caller in callers:
                caller.send(ask("claim", {"node": "w"}, key))
            await reached(entered)
            done, _ = await asyncio.wait(
                waits := [asyncio.ensure_future(caller.answer()) for caller in callers],
                return_when=asyncio.FIRST_COMPLETED,
            )
            assert [each.result().status for each in done] == [429]
            leave.set()
            assert sorted(answer.status for answer in await asyncio.gather(*waits)) == [200, 200, 429]

    run(scenario)


def test_what_cannot_go_on_together_gives_its_slots_back_first(tmp_path: Path) -> None:
    """Each goes on by itself then, and takes a slot of its own: with as many as the key has, there must be room."""

    async def scenario() -> None:
        async with serving(tmp_path, api_keys="secret", max_inflight_per_key=2) as rig:
            key = "Authorization: Bearer secret"
            await rig.ask("PUT", f"/v0/topics/{QUEUE}", {"type": "queue", "claim_jitter_ms": 1}, key)
            await rig.ask("POST", f"/v0/topics/{QUEUE}", {"records": [{"data": number} for number in range(4)]}, key)
            callers = [await rig.call(known=False) for _ in range(2)]
            for caller in callers:
                for request in (ask("claim", {"node": ""}, key), ask("ack", {"node": "", "seqs": [1]}, key)):
                    caller.send(request)
                    assert (await caller.answer()).status == 400, "and it is on a track"
            counts = together(rig)
            for number, caller in enumerate(callers):
                caller.send(ask("claim", {"node": f"w{number}"}, key))
            assert [answer.status for answer in await answers(callers)] == [200, 200], "both got in line"
            callers[0].send(ask("ack", {"node": "w0", "seqs": [1, 2]}, key))
            callers[1].send(ask("ack", {"node": "w1", "seqs": [0]}, key))
            assert [answer.status for answer in await answers(callers)] == [200, 400], "refused together, not alone"
            assert counts == [2, 2]
            for caller in callers:
                caller.send(ask("claim", {"node": "w"}, key))
            assert [answer.status for answer in await answers(callers)] == [200, 200], "and no slot was lost"

    run(scenario)


# ---- what goes wrong


def test_a_worker_that_goes_while_its_lease_is_stored_leaves_nothing_leased(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 2, leases_durable=True)
            gone, stays = await workers(rig, 2)
            entered, leave = rig.hold_syncs()
            gone.send(claim("w0"))
            stays.send(claim("w1"))
            await reached(entered)
            await gone.close()
            while not any(each._client_ended for each in rig.server._connections._open):  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            leave.set()
            (held,) = seqs_of(await stays.answer())
            while (await state(rig))["ready"] < 1:
                pass
            assert (await state(rig))["in_flight"] == 1
            stays.send(ack("w1", [held]))
            assert body_of(await stays.answer())["acked"] == 1

    run(scenario)


def test_a_worker_that_ends_its_side_with_its_claim_waits_for_nothing(tmp_path: Path) -> None:
    """The claim is still on its track when the client is gone."""

    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 0)
            (gone,) = await workers(rig, 1)
            gone.send(claim("w0", 1, wait_ms=30_000))
            gone.writer.write_eof()
            answered = asyncio.ensure_future(gone.answer())
            while not any(each._client_ended for each in rig.server._connections._open):  # type: ignore[attr-defined]
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            await rig.ask("POST", f"/v0/topics/{QUEUE}", {"records": [{"data": 0}]})
            assert seqs_of(await answered) == []
            assert (await state(rig))["ready"] == 1

    run(scenario)


@pytest.mark.parametrize("lost", [False, True])
def test_a_request_whose_client_went_while_it_was_on_its_track_is_told_so(lost: bool) -> None:
    gone: list[Request] = []

    class Connection:
        is_lost = lost

    def dispatch(request: Request, reply: Reply) -> None:
        request.on_gone = lambda: gone.append(request)

    request = Request("POST", "/v0/topics/jobs/claim", "", {}, b"", 0)
    dispatch_alone(dispatch, Connection(), request, lambda response: None)  # type: ignore[arg-type]
    assert gone == [request] * lost


def test_a_disk_that_fails_is_told_to_each(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 9)
            callers = await workers(rig, 3)
            rig.fs.fail("write_at", errno.EIO, path="*.wal", always=True)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}"))
            assert {answer.error for answer in await answers(callers)} == {"log_stopped"}
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}"))
            assert {answer.error for answer in await answers(callers)} == {"log_stopped"}
            rig.fs.clear()

    run(partial(fails_to_close, scenario))


def test_a_defect_is_told_to_those_it_meets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 9)
            callers = await workers(rig, 3)
            unlucky = sorted(rig.server._connections._open, key=lambda each: each._id)[-1]  # type: ignore[attr-defined]

            def fail(ok_json: bytes, body: bytes) -> bool:
                raise ValueError("on purpose")

            monkeypatch.setattr(unlucky, "answer_body", fail)
            for number, caller in enumerate(callers):
                caller.send(claim(f"w{number}"))
            assert sorted(answer.status for answer in await answers(callers)) == [200, 200, 500]

    run(scenario)


# ---- what is counted


def test_every_request_is_counted_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 100)
            callers = await workers(rig, 3)
            for _ in range(10):
                for number, caller in enumerate(callers):
                    caller.send(claim("w", 0 if number == 2 else 1))
                await answers(callers)
            traffic = rig.context.traffic.of("POST", "/v0/topics/{topic}/claim")
            assert traffic.requests == 33
            assert rig.context.traffic.errors == {(400, "invalid_request"): 13}

    run(scenario)


def test_a_client_that_takes_gzip_gets_large_answers_packed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as rig:
            await make(rig, 200)
            caller = await rig.call(known=False)
            for most in (1, 1, 150):
                caller.send(ask("claim", {"node": "w", "max": most}, "Accept-Encoding: gzip"))
                answer = await caller.answer()
                assert answer.status == 200
                assert ("content-encoding" in answer.headers) == (most == 150)

    run(scenario)
