"""Reads right behind a write, with routers and moves that have had no time of their own: nothing is missed.

The pump of the routers is switched off, so that only the reads themselves can have brought what they find.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, soon, take
from tests.contract.sdk import each_form, opened
from topics import Record
from topics.engine.host import Host

Read = Callable[[topics.Client], Awaitable[Any]]


async def _diff(client: topics.Client) -> Any:
    return [record.data for record in (await client.topic("copy").diff()).records]


async def _state(client: topics.Client) -> Any:
    return [1] * (await client.topic("copy").state()).count


async def _listed(client: topics.Client) -> Any:
    return [1] * next(state.count for state in [each async for each in client.topics()] if state.topic == "copy")


async def _selected(client: topics.Client) -> Any:
    return [row[0] for row in (await client.sql("SELECT data FROM copy"))[0].rows]


async def _counted(client: topics.Client) -> Any:
    return [1] * (await client.sql("SELECT count(*) FROM copy"))[0].rows[0][0]


async def _system_table(client: topics.Client) -> Any:
    return [1] * (await client.sql("SELECT records FROM system.topics WHERE name = 'copy'"))[0].rows[0][0]


async def _shown(client: topics.Client) -> Any:
    (result,) = await client.sql("SHOW TOPICS LIKE 'copy'")
    return [1] * result.dicts()[0]["records"]


async def _consumed_by_statement(client: topics.Client) -> Any:
    return [row["payload"] for row in (await client.sql("CONSUME FROM copy GROUP g"))[0].dicts()]


async def _read_by_statement(client: topics.Client) -> Any:
    return [row["payload"] for row in (await client.sql("CONSUME FROM copy"))[0].dicts()]


async def _taken(client: topics.Client) -> Any:
    batch = await client.topic("copy").group("g", consumer="c").take(start="earliest")
    return [] if batch is None else [record.data for record in batch.records]


async def _claimed(client: topics.Client) -> Any:
    return [job.data for job in await client.queue("copy", node="w").claim(10)]


async def _followed(client: topics.Client) -> Any:
    return [event.data for event in await take(client.topic("copy").follow(), 1) if isinstance(event, Record)]


READS: tuple[Read, ...] = (
    _diff, _state, _listed, _selected, _counted, _system_table, _shown, _consumed_by_statement, _read_by_statement,
    _taken, _claimed, _followed,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_pump(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "_forward", lambda self: None)


@each_form
@pytest.mark.parametrize("read", READS, ids=[read.__name__[1:] for read in READS])
@on_loop
async def test_read_of_a_destination_finds_what_was_just_written(tmp_path: Path, form: str, read: Read) -> None:
    async with opened(form, tmp_path) as client:
        await client.topic("copy").create(**({"type": "queue"} if read is _claimed else {}))
        await client.topic("between").create(durability="fsync")
        await client.route("between", "copy")
        await client.route("source", "between")
        await client.topic("source").write(1)
        assert await soon(read(client)) == [1]


@each_form
@on_loop
async def test_dead_letter_is_read_right_behind_the_claim_that_made_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        queue, dead = client.queue("jobs", node="w"), client.topic("dead")
        await queue.create(max_deliveries=1, dead_letter="dead")
        assert (await dead.diff()).records == [] and (await dead.state()).count == 0
        for number in range(5):
            await queue.put(number)
            (job,) = await queue.claim(1)
            assert job.data == number
            await queue.nack([job.seq])
            assert await queue.claim(1) == []
            assert [record.data for record in (await dead.diff()).records] == list(range(number + 1))


@each_form
@on_loop
async def test_dead_letter_of_a_heap_is_listed_right_behind_its_nack(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        heap = client.heap("tasks", consumer="c")
        await heap.create(max_retries=0)
        assert [letter async for letter in heap.dead_letters()] == []
        for number in range(5):
            await heap.enqueue(number)
            (message,) = await take(heap.pop(), 1)
            await message.nack(reason="poison")
            assert [int(letter.payload) async for letter in heap.dead_letters()] == list(range(number + 1))
            assert (await heap.info()).stats.dlq_messages == number + 1
