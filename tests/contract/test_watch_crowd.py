"""A crowd of watchers: each gets everything, and when they have left nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.contract import audience
from tests.contract.sockets import socket_count
from tests.server.api import Api, serving
from tests.server.sserig import listening, watching
from topics.engine.watcher import Subscription, Watcher
from topics.server.http import HttpProtocol
from topics.server.sse import EventStream

LONG_S = 300.0
"""How long to wait for what must come: a failure, not a duration."""


def alive() -> dict[str, int]:
    """What a watcher is made of, as far as it is still there."""
    gc.collect()
    kinds = (EventStream, Watcher, Subscription, HttpProtocol)
    found = gc.get_objects()
    return {kind.__name__: sum(isinstance(each, kind) for each in found) for kind in kinds}


async def quiet(api: Api) -> None:
    """Until the server knows that everybody has left."""
    while (await api.get("/v0/metrics", Accept="application/json")).body["topics_sse_connections"]:
        await asyncio.sleep(0)


@pytest.mark.parametrize(("count", "records"), [(300, 20), pytest.param(5000, 100, marks=pytest.mark.soak)])
@on_loop
async def test_many_watchers_of_one_topic(tmp_path: Path, count: int, records: int) -> None:
    async with serving(tmp_path, max_watch_sessions=0) as api:
        await api.put("/v0/topics/news")
        await quiet(api)
        sockets, tasks, objects = socket_count(), len(asyncio.all_tasks()), alive()
        arguments = (str(audience.__file__), str(api.address.port), str(count), str(records))
        process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), LONG_S) == b"open\n"
        assert len(asyncio.all_tasks()) <= tasks, "no task a watcher"
        for number in range(records):
            await api.write("news", number)
        assert await asyncio.wait_for(process.stdout.readline(), LONG_S) == b"heard %d\n" % count
        await process.wait()
        await quiet(api)
        del process
        assert socket_count() <= sockets
        assert len(asyncio.all_tasks()) <= tasks
        left = alive()
        assert {name: left[name] for name in left if left[name] > objects[name]} == {}


@on_loop
async def test_a_thousand_topics_on_one_watcher(tmp_path: Path) -> None:
    count = 1000
    async with serving(tmp_path) as api:
        for first in range(0, count, 200):
            await asyncio.gather(*(api.write(f"t:{number}", number) for number in range(first, first + 200)))
        async with listening(api, await watching(api, {"t:*": {}})) as stream:
            seen: set[str] = set()
            while len(seen) < count:
                frame = await stream.next()
                if frame.event == "caught-up":
                    seen.add(frame.fields["topic"])
            await api.write("t:500", "news")
            frame = await stream.next()
            assert (frame.fields["topic"], frame.seqs) == ("t:500", [2])
