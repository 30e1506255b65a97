from __future__ import annotations

import asyncio

import pytest

from tests.client.rig import on_loop, soon
from topics import GroupBatch, errors
from topics.client.batchkeeper import kept
from topics.client.caller import may_pass
from topics.groupmodel import ExtendedGroup

BATCH = GroupBatch(
    topic="orders",
    partition=0,
    group="billing",
    consumer="me",
    body=b"",
    count=2,
    first_seq=1,
    last_seq=2,
    claim_id="c1",
    deadline=3,
    visibility_ms=3,
    deliveries=1,
    committed_seq=0,
    head_seq=2,
    tombstone=None,
    paused=False,
)


class Answers:
    """Extends as it is told: a deadline, or an error."""

    def __init__(self, *answers: int | errors.TopicsError) -> None:
        self._answers = list(answers)
        self.over = asyncio.Event()
        self.count = 0

    async def extend(self, batch: GroupBatch, *, visibility_ms: int) -> ExtendedGroup:
        assert (batch, visibility_ms) == (BATCH, BATCH.visibility_ms)
        self.count += 1
        answer = self._answers.pop(0)
        if not self._answers:
            self.over.set()
        if isinstance(answer, errors.TopicsError):
            raise answer
        return ExtendedGroup(topic="orders", partition=0, group="billing", extended=2, deadline=answer)


async def claims_end() -> None:
    while any(task.get_name() == "topics claim" for task in asyncio.all_tasks()):
        await asyncio.sleep(0)


@on_loop
async def test_a_server_that_is_away_is_asked_again() -> None:
    away = errors.ConnectionFailed("gone", sent=True)
    answers = Answers(away, errors.TimedOut("slow", sent=True), 100, away, 200, 0)
    async with kept(BATCH, answers.extend, may_pass):
        await soon(answers.over.wait())
        await soon(claims_end())
    assert answers.count == 6, "and not any more when there is nothing left to keep"


@on_loop
async def test_what_can_never_be_kept_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    answers = Answers(100, errors.GroupNotFound('group "billing" does not exist'))
    async with kept(BATCH, answers.extend, may_pass):
        await soon(answers.over.wait())
        await soon(claims_end())
    assert answers.count == 2
    assert 'records 1 to 2 cannot be kept: group "billing" does not exist' in caplog.text


@on_loop
async def test_who_leaves_the_block_extends_nothing_any_more() -> None:
    answers = Answers(*range(1, 1000))
    async with kept(BATCH, answers.extend, may_pass):
        while not answers.count:
            await asyncio.sleep(0)
    await soon(claims_end())
    async with kept(None, answers.extend, may_pass):
        assert not any(task.get_name() == "topics claim" for task in asyncio.all_tasks())
