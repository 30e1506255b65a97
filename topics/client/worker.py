"""A worker: takes jobs from a queue and has a function do them, several at a time.

    the function returns     the job is acked
    it raises                the job is given back, to be tried again after a while, longer with each delivery
    its lease is lost        the function is cancelled, if it is a coroutine: somebody else does the job
    the worker is stopped    no more jobs are taken; those under way are finished, or given back when time is over

Coroutine functions run on the loop, plain ones in threads, with the job's methods for plain code.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from topics.client.backoff import Backoff
from topics.client.blocking import LoopPortal
from topics.client.blockingjob import BlockingJob
from topics.client.held import Held
from topics.client.intake import Intake
from topics.client.job import Hands, Job
from topics.client.retry import Retry
from topics.client.threads import Threads
from topics.errors import TopicsError
from topics.limits import SECOND_MS

Stop = asyncio.Event | threading.Event
Handler = Callable[[Job], Awaitable[Any]] | Callable[[BlockingJob], Any]

LOG: Final = logging.getLogger("topics.worker")
STOP_LOOK_S: Final = 0.5
"""How often a thread that waits for a stop looks whether the worker has ended by itself."""
RELEASE_MS: Final = 5 * SECOND_MS
"""How long giving a job back may take when the worker ends; beyond, its lease runs out."""


class Worked(msgspec.Struct):
    """What a worker has done."""

    done: int = 0
    """Jobs whose function returned, and that were completed."""
    failed: int = 0
    """Times that a job was given back because its function raised."""
    lost: int = 0
    """Times that a job turned out to be somebody else's before it was done."""


class Worker:
    def __init__(
        self,
        intake: Intake,
        hands: Hands,
        handler: Handler,
        retry: Retry,
        may_pass: Callable[[TopicsError], bool],
        concurrency: int,
        shutdown_ms: int,
    ) -> None:
        self._intake = intake
        self._hands = hands
        self._handler = handler
        self._retry = retry
        self._may_pass = may_pass
        self._shutdown_ms = shutdown_ms
        self._threads = Threads(concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._worked = Worked()
        self._broken: BaseException | None = None
        self._over = False

    async def run(self, stop: Stop | None) -> Worked:
        """Until there are no more jobs, or `stop` is set; raises what makes going on pointless."""
        stopping = asyncio.create_task(self._stop_when(stop)) if isinstance(stop, asyncio.Event) else None
        if isinstance(stop, threading.Event):
            watch = (stop, asyncio.get_running_loop())
            threading.Thread(target=self._watch, args=watch, name="topics stop", daemon=True).start()
        try:
            while (held := await self._intake.next()) is not None:
                task = asyncio.create_task(self._do(Job(self._hands, held), held), name=repr(held))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=self._shutdown_ms / SECOND_MS)
        finally:
            self._over = True
            if stopping is not None:
                stopping.cancel()
            await self._end()
        if self._broken is not None:
            raise self._broken
        return self._worked

    async def _stop_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._intake.stop()

    def _watch(self, stop: threading.Event, loop: asyncio.AbstractEventLoop) -> None:
        """The same for an event of plain code, in a thread that ends with the worker."""
        while not self._over:
            if stop.wait(STOP_LOOK_S):
                with contextlib.suppress(RuntimeError):
                    # The loop may be closed by now, and then there is nothing to stop.
                    loop.call_soon_threadsafe(self._intake.stop)
                return

    async def _end(self) -> None:
        """Give back what is not done."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._intake.close(), return_exceptions=True)
        self._threads.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._broken = self._broken or task.exception()
            self._intake.stop()

    # ---- one job

    async def _do(self, job: Job, held: Held) -> None:
        doing = asyncio.ensure_future(self._call(job))

        def over() -> None:
            if held.lost:
                doing.cancel()

        held.on_over(over)
        self._hands.keep(held)
        try:
            await doing
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                await self._release(job)
                raise
            await self._failed(job)
        except Exception:
            await self._failed(job)
        else:
            await self._complete(job)
        finally:
            self._hands.let_go(held)

    async def _call(self, job: Job) -> None:
        function: Callable[[Any], Any] = self._handler
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            await function(job)
            return
        result = await self._threads.call(function, BlockingJob(job, LoopPortal(asyncio.get_running_loop())))
        if inspect.isawaitable(result):
            await result

    async def _complete(self, job: Job) -> None:
        if job.settled or await self._patiently(job, job.ack):
            self._worked.done += 1
        else:
            self._lose(job)

    async def _failed(self, job: Job) -> None:
        """The function raised, or was cancelled because its job is lost."""
        if job.lost:
            self._lose(job)
            return
        delay_ms = self._retry.delay_ms(job.deliveries)
        again = "it had settled its job before" if job.settled else f"it is tried again in {delay_ms} ms"
        LOG.exception("%r failed; %s", job, again)
        if job.settled or await self._patiently(job, lambda: job.nack(delay_ms)):
            self._worked.failed += 1
        else:
            self._lose(job)

    async def _release(self, job: Job) -> None:
        """The worker ends, which says nothing about the job."""
        if job.settled or job.lost:
            return
        try:
            async with asyncio.timeout(RELEASE_MS / SECOND_MS):
                await job.nack()
        except (TopicsError, TimeoutError) as error:
            LOG.warning("%r could not be given back, and is free when its lease runs out: %s", job, error)

    def _lose(self, job: Job) -> None:
        self._worked.lost += 1
        LOG.warning("%r was lost: its lease ran out, or it was deleted; somebody else may do it again", job)

    async def _patiently(self, job: Job, say: Callable[[], Awaitable[bool]]) -> bool:
        """Say something about a job, again and again while the server is away and nobody else has it."""
        backoff = Backoff()
        told = False
        while not job.lost:
            try:
                return await say()
            except TopicsError as error:
                if not self._may_pass(error):
                    raise
                if not told:
                    told = True
                    LOG.warning("%r is over, which cannot be told now, trying again: %s", job, error)
                await asyncio.sleep(backoff.next_s())
        return False
