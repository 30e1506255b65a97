"""Settles that cannot be carried out: each is told why, once, and whoever waits for the end of it hears."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import pytest

from tests.engine.test_host import opened, run
from tests.server.lanerig import fails_to_close
from topics.core.heapcommands import MakeHeap, Popper
from topics.engine.host import Host
from topics.errors import LogStopped, TopicNotFound
from topics.heapmodel import NewMessage, PoppedMessage, PoppedMessages
from topics.proto import messages as proto
from topics.server.grpc.settling import Settling
from topics.storage.fs import RealFs
from topics.testing import FaultFs

MOST = 1000


def settle(*messages: PoppedMessage) -> proto.Settle:
    leases = [{"message_id": each.message_id, "lease_token": each.lease_token} for each in messages]
    return proto.Settle(number=7, acks=leases[:1], nacks=leases[1:])


async def popped(host: Host, count: int) -> list[PoppedMessage]:
    await host.submit(MakeHeap("jobs", {}))
    for _ in range(count):
        await host.answer(host.engine.heaps.enqueue("jobs", NewMessage(payload=b"x")))
    found = await host.answer(host.engine.heaps.pop("jobs", Popper("c", count), 0, ()))
    assert isinstance(found, PoppedMessages)
    return list(found.messages)


def test_what_is_refused_at_once_is_told_at_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as host:
            told: list[str] = []
            settling = Settling("gone", settle(*await popped(host, 2)), MOST)
            await settling.begin(host, lambda: told.append("news"))
            assert settling.is_done and told == ["news"]
            with pytest.raises(TopicNotFound, match="gone"):
                await settling.answered()

    run(scenario)


def test_what_the_disk_refuses_is_told_at_the_end(tmp_path: Path) -> None:
    fs = FaultFs(RealFs())

    async def scenario() -> None:
        async with opened(tmp_path, fs=fs) as host:
            messages = await popped(host, 2)
            fs.fail("write_at", errno.EIO, path="*.wal", always=True)
            settling = Settling("jobs", settle(*messages), MOST)
            await settling.begin(host)
            with pytest.raises(LogStopped):
                await settling.answered()
            fs.clear()

    run(partial(fails_to_close, scenario))
