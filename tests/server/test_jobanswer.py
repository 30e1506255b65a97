"""What the answers say is tested over a socket in `test_joblane.py`; here is what only several together can show."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from tests.engine.queuerig import QueueRig
from tests.server.httprig import run
from tests.server.lanerig import LaneRig, answers
from tests.server.lanerig import serving as lane
from tests.server.probing import serving
from tests.server.test_joblane import ack, claim, make, seqs_of, workers
from topics.engine.ticket import Ticket
from topics.model import AckedJobs, ClaimedJobs
from topics.server import joblane
from topics.server.jobanswer import acked_texts, claimed_texts


def acked(count: int, *skipped: int) -> AckedJobs:
    return AckedJobs(topic="q", partition=0, acked=count, skipped=list(skipped), ready=5, in_flight=6)


def test_acks_that_differ_have_answers_that_differ() -> None:
    rig = QueueRig()
    rig.queue()
    given = [acked(2), acked(2), acked(2, 7, 8), acked(2), acked(0, 9), acked(1), acked(1)]
    with serving(rig) as probe:
        texts = acked_texts(probe.context, probe.context.ready(), given, Ticket(), 0)
    told = [msgspec.json.decode(text) for text in texts]
    assert [(each["acked"], each["skipped"]) for each in told] == [(each.acked, each.skipped) for each in given]
    assert {(each["topic"], each["ready"], each["in_flight"]) for each in told} == {("q", 5, 6)}


def test_each_claim_has_its_own_jobs() -> None:
    rig = QueueRig()
    rig.queue(partitions=2)
    given = [
        ClaimedJobs(topic="q", partition=1, node="w", text=b",".join(jobs), seqs=[1] * len(jobs), ready=3)
        for jobs in ([b'{"$seq":1}', b'{"$seq":2}'], [], [b'{"$seq":3}'])
    ]
    with serving(rig) as probe:
        texts = claimed_texts(probe.context, probe.context.ready(), given, 0)
    told = [msgspec.json.decode(text) for text in texts]
    assert [[job["$seq"] for job in each["claimed"]] for each in told] == [[1, 2], [], [3]]
    assert [each["count"] for each in told] == [2, 0, 1] and {each["partition"] for each in told} == {1}


# ---- defects, and claims that are not remembered


def fail(*_: object, **__: object) -> None:
    raise ValueError("on purpose")


async def told(rig: LaneRig, caplog: pytest.LogCaptureFixture) -> None:
    """Each has its own answer, with the number under which the log has the error, and the next one is served."""
    callers = await workers(rig, 3)
    for number, caller in enumerate(callers):
        caller.send(claim(f"w{number}"))
    given = await answers(callers)
    assert {(answer.status, answer.error) for answer in given} == {(500, "internal")}
    ids = {answer.headers["x-request-id"] for answer in given}
    assert len(ids) == 3
    failures = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert {vars(record)["fields"]["request_id"] for record in failures} == ids


def test_a_defect_of_all_is_told_to_all_and_the_slots_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with lane(tmp_path) as rig:
            await make(rig, 3)
            with monkeypatch.context() as broken:
                broken.setattr(rig.engine.claiming, "claim_together", fail)
                await told(rig, caplog)
            caplog.clear()
            (caller,) = await workers(rig, 1)
            caller.send(claim("w"))
            assert seqs_of(await caller.answer()) == [1]

    run(scenario)


def test_a_defect_of_the_answers_is_told_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with lane(tmp_path) as rig:
            await make(rig, 3)
            with monkeypatch.context() as broken:
                broken.setattr(joblane, "claimed_texts", fail)
                await told(rig, caplog)

    run(scenario)


def test_more_kinds_of_claims_than_are_remembered_are_all_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joblane, "CLAIMS_KNOWN_MAX", 2)

    async def scenario() -> None:
        async with lane(tmp_path) as rig:
            await make(rig, 20)
            callers = await workers(rig, 2)
            for most in (1, 2, 3, 1):
                taken = []
                for number, caller in enumerate(callers):
                    caller.send(claim(f"w{number}", most))
                for answer in await answers(callers):
                    taken.append(seqs_of(answer))
                assert [len(seqs) for seqs in taken] == [most, most]
                for number, (caller, seqs) in enumerate(zip(callers, taken, strict=True)):
                    caller.send(ack(f"w{number}", seqs))
                await answers(callers)

    run(scenario)
