"""A disk that fails, as seen by those who ask: what was refused, what stands still, and what is still read."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.server.httprig import run
from tests.server.lanerig import LaneRig, body_of, fails_to_close, serving
from topics.core.accountcommands import NoteKeysUsed


def failing(directory: Path, scenario: Callable[[LaneRig], Awaitable[None]], wal_shards: int = 1) -> None:
    """A server with a record, whose log can be written to no more once the scenario says so."""

    async def whole() -> None:
        async with serving(directory, wal_shards=wal_shards) as rig:
            await rig.ask("POST", "/v0/topics/t", {"records": [{"data": 1}, {"data": 2}]})
            await scenario(rig)
            rig.fs.clear()

    run(partial(fails_to_close, whole))


@asynccontextmanager
async def stopped(rig: LaneRig) -> AsyncIterator[None]:
    rig.fs.fail("write_at", errno.EIO, path="*.wal", always=True)
    yield


def test_a_topic_says_that_its_log_has_stopped_and_is_still_read(tmp_path: Path) -> None:
    async def scenario(rig: LaneRig) -> None:
        assert "stopped" not in body_of(await rig.ask("GET", "/v0/topics/t"))
        async with stopped(rig):
            assert (await rig.ask("POST", "/v0/topics/t", {"records": [{"data": 3}]})).error == "log_stopped"
            state = body_of(await rig.ask("GET", "/v0/topics/t"))
            assert "Input/output error" in state["stopped"]
            assert await rig.stored("t") == [1, 2]

    failing(tmp_path, scenario)


def test_a_consume_whose_ack_cannot_be_stored_is_refused_although_there_are_records(tmp_path: Path) -> None:
    async def scenario(rig: LaneRig) -> None:
        await rig.ask("PUT", "/v0/topics/two", {"partitions": 2})
        for partition in (0, 1):
            body = {"records": [{"data": 1}, {"data": 2}], "partition": partition}
            assert (await rig.ask("POST", "/v0/topics/two", body)).status == 200
        path = "/v0/topics/two/groups/g/consume"
        for partition in (0, 1):
            asked = {"limit": 1, "partition": partition}
            assert body_of(await rig.ask("POST", path, asked))["last_seq"] == 1
        shard = rig.engine.wal.shard_of(rig.engine.machine.topic("two").first_log_id)
        rig.fs.fail("write_at", errno.EIO, path=f"*/{shard}-*.wal", always=True)
        refused = await rig.ask("POST", path, {"limit": 1, "partition": 1, "ack_partition": 0, "ack_upto_seq": 1})
        assert (refused.status, refused.error) == (503, "log_stopped")
        other = await rig.ask("POST", path, {"limit": 1, "partition": 1, "consumer": "c"})
        assert other.status == 200, "the other partition goes on"

    failing(tmp_path, scenario, wal_shards=2)


def test_keys_that_were_used_are_noted_the_next_time(tmp_path: Path) -> None:
    async def scenario(rig: LaneRig) -> None:
        async with stopped(rig):
            await rig.ask("POST", "/v0/topics/t", {"records": [{"data": 3}]})
            used = {"dh_k1", "key-1"}
            rig.context.quota.used = set(used)
            rig.server._upkeep.note_used_keys()
            assert rig.context.quota.used == used
            decided: list[object] = []
            rig.context.host.decide = decided.append
            rig.server._upkeep.note_used_keys()
            assert decided == [NoteKeysUsed(("k1",))] and rig.context.quota.used == set()

    failing(tmp_path, scenario)
