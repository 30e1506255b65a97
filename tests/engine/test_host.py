"""The engine on a loop: flushes, waits, the background, and the end. On the real disk, as threads matter here."""

from __future__ import annotations

import asyncio
import errno
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from tests.engine.rig import records, with_limits, with_wal
from topics.clock import SystemClock
from topics.core.commands import Append, Claimer, Command, Configure, Delete, Drop, Publish, Stage
from topics.core.match import parse_match
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.recovery import Options, recover
from topics.errors import LogStopped, Throttled
from topics.model import Deleted, Published, Written
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.storage.wal import Wal
from topics.testing import Call, FaultFs

OPTIONS = with_wal(with_limits(checkpoint_ms=3_600_000), shards=2)
LONG_S = 60.0
"""How long to wait for what must come: a failure, not a duration."""


def opener(path: Path, options: Options = OPTIONS, fs: FaultFs | None = None) -> Callable[[Post], Engine]:
    def open_engine(post: Post) -> Engine:
        return recover(fs or RealFs(), str(path), SystemClock(), lambda: secrets.randbits(64), options, post)

    return open_engine


@asynccontextmanager
async def opened(path: Path, options: Options = OPTIONS, fs: FaultFs | None = None) -> AsyncIterator[Host]:
    host = await Host.open(opener(path, options, fs))
    try:
        yield host
    finally:
        await host.close()


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run on a loop whose stray errors fail the test."""
    stray: list[dict[str, object]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: stray.append(context))
        await asyncio.wait_for(test(), LONG_S)

    asyncio.run(main())
    assert stray == []


def append(topic: str, *items: object) -> Append:
    return Append(topic, records(*items))


def data(host: Host, topic: str) -> list[object]:
    return [record.data for record in host.engine.read(topic, limit=1000).records]


class Gate:
    """Holds the calls of other threads that match, until it is opened."""

    def __init__(self, fs: FaultFs, name: str, path: str) -> None:
        self._open = threading.Event()
        self.reached = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(call: Call) -> None:
            if call.name == name and path in call.path and not self._open.is_set():
                loop.call_soon_threadsafe(self.reached.set)
                assert self._open.wait(LONG_S)

        fs.on_call = hold

    def open(self) -> None:
        self._open.set()


def test_commands_of_one_turn_are_one_group(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("odd", {"durability": "fsync"}))
            before = host.engine.turn._shards[1].last_group
            replies = await asyncio.gather(*(host.submit(append("odd", number)) for number in range(100)))
            assert host.engine.turn._shards[1].last_group == before + 1
            assert [cast(Written, reply).first_seq for reply in replies] == list(range(1, 101))

    run(test)


def test_an_idle_host_has_no_timer(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            assert host._timer is None
            await host.submit(append("odd", 1))
            assert host._timer is not None, "a checkpoint will be due"
            await host.checkpoint()
            host._tick()
            assert host._timer is None

    run(test)


def test_a_checkpoint_comes_by_itself(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path, with_limits(OPTIONS, dirty_bytes_max=1000)) as host:
            await host.submit(append("odd", "x" * 2000))
            while host.engine.checkpointer.dirty or host._tasks:
                await asyncio.sleep(0)
            assert [name for name in (tmp_path / "segments").iterdir() if name.suffix == ".data"]
            assert data(host, "odd") == ["x" * 2000]

    run(test)


# ---- waiting for records


def test_a_reader_is_woken_by_what_becomes_visible(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("odd", {"durability": "fsync"}))
            log = host.engine.machine.log(host.engine.machine.topic("odd"))
            for seq in range(20):
                waiting = asyncio.create_task(host.wait_visible(log, seq, LONG_S))
                for _ in range(seq % 3):
                    await asyncio.sleep(0)
                writing = asyncio.create_task(host.submit(append("odd", seq)))
                assert await waiting
                assert log.visible_seq == seq + 1
                await writing
            assert await host.wait_visible(log, 0, 0.0), "there already"
            assert not await host.wait_visible(log, 20, 0.0)
            assert len(host.engine.watch) == 0

    run(test)


def test_a_wait_ends_with_the_topic_and_with_the_engine(tmp_path: Path) -> None:
    async def test() -> None:
        host = await Host.open(opener(tmp_path))
        await host.submit(append("odd", 1))
        await host.submit(append("even", 1))
        machine = host.engine.machine
        logs = [machine.log(machine.topic(name)) for name in ("odd", "even")]
        dropped, closed = (asyncio.create_task(host.wait_visible(log, 1, LONG_S)) for log in logs)
        await asyncio.sleep(0)
        await host.submit(Drop("odd"))
        assert await dropped is False
        await host.close()
        assert await closed is False
        assert await host.wait_visible(logs[0], 1, LONG_S) is False

    run(test)


def test_waiting_can_be_ended_while_writes_go_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("odd", 1))
            log = host.engine.machine.log(host.engine.machine.topic("odd"))
            waiting = asyncio.create_task(host.wait_visible(log, 1, LONG_S))
            await asyncio.sleep(0)
            host.end_waiting()
            assert await waiting is False
            assert await host.wait_visible(log, 1, LONG_S) is False
            await host.submit(append("odd", 2))
            assert await host.wait_visible(log, 1, LONG_S) is True

    run(test)


def test_a_reader_that_gives_up_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("odd", 1))
            log = host.engine.machine.log(host.engine.machine.topic("odd"))
            waiting = asyncio.create_task(host.wait_visible(log, 1, LONG_S))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert len(host.engine.watch) == 0

    run(test)


# ---- back-pressure


def test_a_patient_writer_waits_and_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        options = with_wal(with_limits(OPTIONS, dirty_bytes_max=20_000), shards=2, queue_bytes_max=10_000)
        async with opened(tmp_path, options) as host:
            await host.submit(Configure("odd", {}))
            writes: list[Command] = [append("odd", number, "x" * 3000) for number in range(30)]
            with pytest.raises(Throttled):
                await asyncio.gather(*map(host.submit, writes))
            await asyncio.gather(*map(host.submit_patiently, writes))
            found = [number for number in data(host, "odd") if isinstance(number, int)]
            assert sorted(set(found)) == list(range(30))

    run(test)


def test_what_waiting_does_not_help_is_said_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        options = replace(OPTIONS, bounds=replace(OPTIONS.bounds, topics_max=1))
        async with opened(tmp_path, options) as host:
            await host.submit_patiently(append("odd", 1))
            with pytest.raises(Throttled, match="TOPICS_MAX_TOPICS"):
                await host.submit_patiently(append("even", 1))

    run(test)


# ---- checkpoints beside the loop


def test_writes_go_on_during_a_checkpoint(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        async with opened(tmp_path, fs=fs) as host:
            await host.submit(append("odd", "before"))
            gate = Gate(fs, "rename", "segments")
            checkpoint = asyncio.create_task(host.checkpoint())
            await gate.reached.wait()
            assert cast(Written, await host.submit(append("odd", "during"))).first_seq == 2
            assert data(host, "odd") == ["before", "during"]
            gate.open()
            await checkpoint
            assert data(host, "odd") == ["before", "during"]
        async with opened(tmp_path) as host:
            assert data(host, "odd") == ["before", "during"]

    run(test)


def test_a_capture_of_many_logs_gives_the_loop_turns(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("parts", {"partitions": 1000}))
            await asyncio.gather(*(host.submit(Append("parts", records(1), at)) for at in range(1000)))
            turns = 0
            checkpoint = asyncio.create_task(host.checkpoint())
            while not checkpoint.done() and not host._checkpointing.locked():
                await asyncio.sleep(0)
            while host.engine.checkpointer.dirty == set() and not checkpoint.done():
                turns += 1
                await asyncio.sleep(0)
            assert turns >= 10

    run(test)


def test_who_gives_up_waiting_for_a_checkpoint_does_not_break_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("odd", 1))
            for _ in range(5):
                asked = asyncio.create_task(host.checkpoint())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
            await host.submit(append("odd", 2))
            await host.checkpoint()
            assert data(host, "odd") == [1, 2] and not host._tasks
            assert not host.engine.checkpointer.dirty
        async with opened(tmp_path) as host:
            assert data(host, "odd") == [1, 2] and host.engine.report.facts == 0

    run(test)


def test_a_failed_checkpoint_in_the_background_is_kept_for_whoever_asks(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        async with opened(tmp_path, with_limits(OPTIONS, dirty_bytes_max=1000), fs) as host:
            fs.fail("write_at", errno.ENOSPC, path="*snapshots*")
            await host.submit(append("odd", "x" * 2000))
            while host.engine.checkpoint_error is None:
                await asyncio.sleep(0)
            assert "No space" in str(host.engine.checkpoint_error)
            await host.submit(append("odd", "y"))
            assert host.engine.checkpoint_error is not None, "the disk is not tried again at once"
        async with opened(tmp_path) as host:
            assert data(host, "odd") == ["x" * 2000, "y"]

    run(test)


def test_erase_answers_when_the_bytes_are_gone(tmp_path: Path) -> None:
    def holding() -> list[Path]:
        return [path for path in tmp_path.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]

    async def write(host: Host, done: asyncio.Event) -> None:
        while not done.is_set():
            await host.submit(append("odd", "more"))

    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Append("odd", records({"data": "secret", "tag": "x"}, "kept")))
            await host.checkpoint()
            await host.submit(Append("odd", records({"data": "secret", "tag": "x"}, "kept")))
            assert holding()
            done = asyncio.Event()
            writer = asyncio.create_task(write(host, done))
            deleted = await host.erase(Delete("odd", match=parse_match("x")))
            assert isinstance(deleted, Deleted) and deleted.erased and deleted.deleted == 2
            assert holding() == [], "although others were writing all the time"
            done.set()
            await writer
            assert data(host, "odd")[:2] == ["kept", "kept"]

    run(test)


# ---- the end


def test_a_close_answers_everything_that_is_on_its_way(tmp_path: Path) -> None:
    async def test() -> None:
        host = await Host.open(opener(tmp_path))
        await host.submit(Configure("odd", {"durability": "fsync"}))
        await host.submit(Configure("even", {}))
        await host.submit(Stage("s", "odd", records("staged")))
        on_their_way = [
            asyncio.create_task(host.submit(command))
            for command in (
                *(append("odd", number) for number in range(10)),
                *(append("even", number) for number in range(10)),
                append("third", 1),
                Publish(("s",), "p", 1),
            )
        ]
        await asyncio.sleep(0)
        await host.close()
        replies = await asyncio.gather(*on_their_way)
        assert isinstance(replies[-1], Published)
        async with opened(tmp_path) as host:
            assert host.engine.report.last_stop == "clean"
            assert data(host, "odd") == [*range(10), "staged"] and data(host, "even") == list(range(10))
            assert data(host, "third") == [1]

    run(test)


def test_a_close_on_a_failed_disk_fails_everything_that_is_on_its_way(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        host = await Host.open(opener(tmp_path, fs=fs))
        await host.submit(Configure("odd", {"durability": "fsync"}))
        fs.fail("sync", path="*wal/1-*", always=True)
        writes = [asyncio.create_task(host.submit(append("odd", number))) for number in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(LogStopped):
            await host.close()
        replies = await asyncio.gather(*writes, return_exceptions=True)
        assert all(isinstance(reply, LogStopped) for reply in replies)
        async with opened(tmp_path) as host:
            assert host.engine.report.last_stop == "process died"

    run(test)


def test_records_that_are_held_back_are_written_when_there_is_room(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        host = await Host.open(opener(tmp_path, with_wal(OPTIONS, shards=1, queue_bytes_max=3000), fs))
        await host.submit(Configure("odd", {}))
        gate = Gate(fs, "sync", "wal/0-")
        held = asyncio.create_task(host.submit(append("odd", 1)))
        await gate.reached.wait()
        first = asyncio.create_task(host.submit(append("odd", *([1] * 30))))
        while not host.engine.wal.queued_bytes(0):
            await asyncio.sleep(0)
        second = asyncio.create_task(host.submit(append("odd", *([1] * 40))))
        while not cast(Wal, host.engine.wal).metrics(0).submit_full:
            await asyncio.sleep(0)
        assert host.engine.turn.unflushed()
        gate.open()
        assert [cast(Written, reply).count for reply in await asyncio.gather(held, first, second)] == [1, 30, 40]
        await host.close()

    run(test)


def test_a_close_lets_a_batch_come_to_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        fs = FaultFs(RealFs())
        host = await Host.open(opener(tmp_path, fs=fs))
        await host.submit(Configure("odd", {"durability": "fsync"}))
        await host.submit(Stage("s", "odd", records("staged")))
        gate = Gate(fs, "sync", "wal/0-")
        publish = asyncio.create_task(host.submit(Publish(("s",), "p", 1)))
        await gate.reached.wait()
        close = asyncio.create_task(host.close())
        for _ in range(5000):
            # Turns enough for a close that did not wait to have got to the WAL.
            await asyncio.sleep(0)
        gate.open()
        await close
        assert isinstance(await publish, Published)
        async with opened(tmp_path) as host:
            assert data(host, "odd") == ["staged"] and host.engine.report.last_stop == "clean"

    run(test)


def test_a_close_during_a_checkpoint_waits_for_it(tmp_path: Path) -> None:
    async def test() -> None:
        host = await Host.open(opener(tmp_path))
        await host.submit(append("odd", 1))
        checkpoint = asyncio.create_task(host.checkpoint())
        await asyncio.sleep(0)
        await host.close()
        await checkpoint
        async with opened(tmp_path) as host:
            assert data(host, "odd") == [1] and host.engine.report.facts == 0

    run(test)


def test_a_claim_waits_on_the_loop_until_a_job_a_lease_or_the_time_is_due(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("q", {"type": "queue", "lease_ms": 100}))
            assert (await host.claim("q", Claimer("a"), wait_ms=1)).count == 0
            waiting = asyncio.create_task(host.claim("q", Claimer("a"), wait_ms=30_000))
            await asyncio.sleep(0)
            await host.submit(Append("q", records("job")))
            assert (await waiting).seqs == [1]
            again = await host.claim("q", Claimer("b"), wait_ms=30_000)
            assert again.seqs == [1], "the lease ran out, and the loop woke up for it"

    run(test)


def test_a_claim_that_is_cancelled_takes_no_job_with_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("q", {"type": "queue"}))
            waiting = asyncio.create_task(host.claim("q", Claimer("a"), wait_ms=30_000))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await host.submit(Append("q", records("job")))
            leased = asyncio.create_task(host.claim("q", Claimer("a")))
            await asyncio.sleep(0)
            leased.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leased
            assert (await host.claim("q", Claimer("b"), wait_ms=30_000)).seqs == [1]

    run(test)


def test_those_who_wait_for_jobs_are_let_go_when_the_server_drains(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("q", {"type": "queue"}))
            waiting = asyncio.create_task(host.claim("q", Claimer("a"), wait_ms=30_000))
            await asyncio.sleep(0)
            host.end_waiting()
            assert (await waiting).count == 0
            assert (await host.claim("q", Claimer("a"), wait_ms=30_000)).count == 0

    run(test)


def test_what_is_decided_in_one_turn_is_handed_over_at_its_end(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("jobs", 0))
            wal = cast(Wal, host.engine.wal)
            before = sum(wal.metrics(shard).batches for shard in range(wal.shards))
            host.begin_turn()
            tickets = [host.decide(append("jobs", number)) for number in range(3)]
            assert not any(ticket.done for ticket in tickets)
            host.end_turn()
            for ticket in tickets:
                await host.answer(ticket)
            assert sum(wal.metrics(shard).batches for shard in range(wal.shards)) == before + 1
            await host.submit(append("jobs", 3))
            assert data(host, "jobs") == [0, 0, 1, 2, 3]

    run(test)
