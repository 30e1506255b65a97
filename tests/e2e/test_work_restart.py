"""A server that stops, and one that is killed, while workers have their streams open: no job is lost, and none is done
twice without a reason."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.client.rig import on_loop
from tests.e2e.served import TIMEOUT_S, Served
from tests.server.api import Answer, Api
from tests.server.queues import Jobs
from tests.server.sserig import Listening, listening

WORKERS = 4
HELD = 3
JOBS = 240
LEASE_MS = 1_000
RETRY_S = 0.02
"""How long a worker lets a server be that is not there."""
GONE = (ConnectionError, asyncio.IncompleteReadError)


class Fleet:
    """Workers that connect again whenever their stream ends, each job in a ledger."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.jobs = Jobs(api)
        self.done: Counter[int] = Counter()
        """How often each job was worked on."""
        self.acked: set[int] = set()
        """Those whose completion was answered; with a server that is killed, the answer may be lost."""
        self.said: list[int] = []
        """Codes of the errors that streams ended with."""
        self.connected = 0
        self.acking: set[asyncio.Task[None]] = set()
        self.changed = asyncio.Event()

    async def work(self, node: str) -> None:
        while True:
            try:
                async with listening(self.api, f"/v0/topics/jobs/work?node={node}&max={HELD}") as stream:
                    if stream.status != 200:
                        raise ConnectionError("it is not ready yet")
                    self._tell(1)
                    try:
                        await self._serve(node, stream)
                    finally:
                        self._tell(-1)
            except GONE:
                await asyncio.sleep(RETRY_S)

    async def _serve(self, node: str, stream: Listening) -> None:
        while True:
            frame = await stream.next()
            if frame.event == "error":
                self.said.append(frame.fields["code"])
                self.changed.set()
                return
            if frame.event == "job":
                seq = frame.fields["$seq"]
                self.done[seq] += 1
                # The stream is read on meanwhile, so that its end is seen.
                acking = asyncio.create_task(self._ack(node, seq, frame.fields["lease_id"]))
                self.acking.add(acking)
                acking.add_done_callback(self.acking.discard)

    async def _ack(self, node: str, seq: int, lease_id: str) -> None:
        """Say so until the server has heard it; what is skipped is somebody else's by now."""
        body = {"node": node, "seqs": [seq], "lease_ids": [lease_id]}
        while True:
            try:
                answer: Answer = await self.api.post("/v0/topics/jobs/ack", body)
            except (*GONE, IndexError):
                await asyncio.sleep(RETRY_S)
                continue
            if answer.status == 200:
                if answer.body["acked"]:
                    assert seq not in self.acked, "completed twice"
                    self.acked.add(seq)
                self.changed.set()
                return
            assert answer.status == 503, answer.body

    def _tell(self, change: int) -> None:
        self.connected += change
        self.changed.set()

    async def until(self, true: Callable[[], bool]) -> None:
        while not true():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), TIMEOUT_S)

    async def until_acked(self, count: int) -> None:
        await self.until(lambda: len(self.acked) >= count)


async def started(directory: Path, port: int = 0) -> Served:
    server = Served(directory, port=port)
    await asyncio.to_thread(server.wait_for, "ready")
    return server


@on_loop
async def test_a_restart_while_jobs_are_being_pushed(tmp_path: Path) -> None:
    server = await started(tmp_path)
    port = urlsplit(server.url).port or 0
    fleet = Fleet(Api(server.url))
    workers: list[asyncio.Task[None]] = []
    try:
        await fleet.jobs.create(durable=True, lease_ms=LEASE_MS)
        await fleet.jobs.put(*range(JOBS))
        workers = [asyncio.create_task(fleet.work(f"w{number}")) for number in range(WORKERS)]
        await fleet.until(lambda: fleet.connected == WORKERS)
        await fleet.until_acked(JOBS // 4)

        server.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.ended) == 0
        server = await started(tmp_path, port)
        await fleet.until(lambda: fleet.connected == WORKERS)
        assert fleet.said == [503] * WORKERS, "each stream was told why it ended"
        await fleet.until_acked(JOBS // 2)

        await asyncio.to_thread(server.kill)
        server = await started(tmp_path, port)
        while await fleet.jobs.counts() != (0, 0, 0, 0):
            await asyncio.wait_for(fleet.changed.wait(), TIMEOUT_S)
            fleet.changed.clear()
        assert fleet.done.keys() == set(range(1, JOBS + 1)), "every job was done"
        assert sum(fleet.done.values()) - JOBS <= 2 * WORKERS * HELD, "again only what was under way at a stop"
    finally:
        tasks = [*workers, *fleet.acking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        server.kill()
