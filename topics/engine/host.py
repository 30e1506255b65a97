"""The engine on an asyncio loop: one flush a turn, the WAL's reports on the loop, checkpoints beside it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import msgspec

from topics.core.commands import Claimer, Command, Delete
from topics.core.groupcommands import Consume
from topics.core.heapcommands import Popper
from topics.core.log import Log
from topics.engine.backup import Backup
from topics.engine.delivery import Delivery
from topics.engine.engine import Engine
from topics.engine.ticket import Ticket
from topics.errors import ShuttingDown, Throttled, Unavailable
from topics.groupmodel import GroupBatch
from topics.heapmodel import PoppedMessages
from topics.model import ClaimedJobs, Deleted

TIMER_SECONDS_MIN = 0.001
CAPTURE_SLICE = INSTALL_SLICE = 64
"""Logs captured, and logs whose new segments are put in place, before the loop gets a turn."""
THROTTLE_SECONDS_MAX = 30.0

Opener = Callable[[Callable[[Callable[[], None]], None]], Engine]


class Host:
    """Made by `open`, on the running loop."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self._loop = loop
        self._worker = ThreadPoolExecutor(1, "checkpoint")
        self._checkpointing = asyncio.Lock()
        self._flush_wanted = False
        engine.turn.wanted = self._want_flush
        self._delivery = Delivery(engine.turn, engine.watch, loop)
        engine.forwarding.wanted = self._want_forwarding
        engine.freshness.wanted = self._want_look
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        """The deadline that the timer is set for."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._backup: Backup | None = None
        self._arm()
        self._want_forwarding(0)
        # Reports that came before there was a host may have decided something: a batch is finished when it is synced.
        self._want_flush()

    @classmethod
    async def open(cls, opener: Opener) -> Host:
        """Recover on a thread, so that the loop can say how far it is, then take over."""
        loop = asyncio.get_running_loop()
        host: Host | None = None

        def post(report: Callable[[], None]) -> None:
            # A report that comes after the loop was closed has nobody to go to.
            if not loop.is_closed():
                loop.call_soon_threadsafe(take, report)

        def take(report: Callable[[], None]) -> None:
            if host is None:
                report()
            else:
                host._delivery.along(report)

        engine = await loop.run_in_executor(None, opener, post)
        host = cls(engine, loop)
        return host

    # ---- commands

    def decide(self, command: Command) -> Ticket:
        """Decide a command now; its ticket is done when the answer may go out. Raises when it is refused."""
        return self.engine.submit(command)

    async def submit(self, command: Command) -> object:
        """Decide a command and wait for its answer."""
        ticket = self.decide(command)
        return ticket.result() if ticket.done else await self.answer(ticket)

    async def submit_patiently(self, command: Command) -> object:
        """The same, waiting instead of failing when the disk is behind."""
        ticket = await self.admit(command)
        return ticket.result() if ticket.done else await self.answer(ticket)

    async def admit(self, command: Command) -> Ticket:
        """Decide a command as soon as the disk has room for it."""
        deadline = self._loop.time() + THROTTLE_SECONDS_MAX
        while True:
            try:
                return self.decide(command)
            except Throttled as error:
                retry_ms = error.detail.get("retry_after_ms")
                if retry_ms is None or self._loop.time() > deadline:
                    raise
                self._start_checkpoint_if_due()
                await asyncio.sleep(retry_ms / 1000)

    def answer(self, ticket: Ticket) -> asyncio.Future[object]:
        future: asyncio.Future[object] = self._loop.create_future()

        def done(ticket: Ticket) -> None:
            if future.done():
                return
            if ticket.error is not None:
                future.set_exception(ticket.error)
            else:
                future.set_result(ticket.result())

        ticket.on_done(done)
        return future

    async def claim(self, topic: str, claimer: Claimer, partition: int = 0, wait_ms: int = 0) -> ClaimedJobs:
        """Lease jobs to a worker, waiting up to `wait_ms` for the first. Who gives up waiting leaves none leased."""
        await self.freshened(topic)
        ticket = self.engine.claim(topic, claimer, partition, wait_ms)
        try:
            reply = ticket.result() if ticket.done else await self.answer(ticket)
        except asyncio.CancelledError:
            self.engine.claiming.cancel(topic, partition, ticket)
            raise
        assert isinstance(reply, ClaimedJobs)
        return reply

    async def pop(self, topic: str, popper: Popper, wait_ms: int = 0, partitions: Sequence[int] = ()) -> PoppedMessages:
        """Lease messages to a consumer, waiting up to `wait_ms` for the first. Who gives up leaves none leased."""
        await self.freshened(topic)
        ticket = self.engine.heaps.pop(topic, popper, wait_ms, partitions)
        try:
            reply = ticket.result() if ticket.done else await self.answer(ticket)
        except asyncio.CancelledError:
            self.engine.heaps.cancel(ticket)
            raise
        assert isinstance(reply, PoppedMessages)
        return reply

    async def consume(self, command: Consume, wait_ms: int = 0, anywhere: bool = False) -> GroupBatch:
        """Records of a group for a consumer, waiting up to `wait_ms` for some. Who gives up waiting keeps none.

        With `anywhere` of any partition.
        """
        await self.freshened(command.topic)
        take = self.engine.groups.consume_anywhere if anywhere else self.engine.groups.consume
        reply = await self._consumed(take(command, wait_ms))
        assert isinstance(reply, GroupBatch)
        return reply

    async def consume_any(self, commands: Sequence[Consume], wait_ms: int = 0) -> tuple[GroupBatch, ...]:
        """The same for several partitions at once: those that had something."""
        await self.freshened(*{command.topic for command in commands})
        reply = await self._consumed(self.engine.groups.consume_any(commands, wait_ms))
        assert isinstance(reply, tuple)
        return reply

    async def _consumed(self, ticket: Ticket) -> object:
        try:
            return ticket.result() if ticket.done else await self.answer(ticket)
        except asyncio.CancelledError:
            self.engine.groups.cancel(ticket)
            raise

    async def erase(self, command: Delete) -> Deleted:
        """Delete, and return when the bytes are gone from disk as well."""
        reply = await self.submit(command)
        assert isinstance(reply, Deleted)
        try:
            await asyncio.shield(self._spawn(self._erase(command.topic, command.partition)))
        except OSError as error:
            raise Unavailable(
                f"the records are deleted, and their bytes could not be erased: {error}; see to the disk and try again"
            ) from error
        return msgspec.structs.replace(reply, erased=True)

    async def _erase(self, topic: str, partition: int) -> None:
        async with self._checkpointing:
            rotated = self._loop.create_future()
            self.engine.rotate(_finisher(rotated))
            await rotated
            await self._checkpoint(self.engine.erasable(topic, partition))

    def _want_flush(self) -> None:
        if not self._flush_wanted:
            self._flush_wanted = True
            self._loop.call_soon(self._flush)

    def begin_turn(self) -> None:
        """All that is decided from here on is handed over by `end_turn`, which must come before the loop goes on."""
        self._flush_wanted = True

    def end_turn(self) -> None:
        self._flush()

    def _flush(self) -> None:
        self._flush_wanted = False
        self._delivery.along(self.engine.flush)
        self._start_checkpoint_if_due()
        self._arm()

    # ---- readers

    def _want_forwarding(self, after_s: float) -> None:
        if after_s:
            self._loop.call_later(after_s, self._forward)
        else:
            self._loop.call_soon(self._forward)

    def _forward(self) -> None:
        self.engine.forwarding.pump()
        self._arm()

    def _want_look(self) -> None:
        self._loop.call_soon(self.engine.freshness.look)

    def fresh(self, *topics: str) -> Ticket | None:
        """What a read of these topics waits for, so that it gets what routers and dead letters bring to them; None when
        it need not wait."""
        ticket = self.engine.freshness.of(topics)
        if ticket is not None:
            # It may have become the first thing that is due.
            self._arm()
        return ticket

    async def freshened(self, *topics: str) -> None:
        """The same for those who can wait."""
        ticket = self.fresh(*topics)
        if ticket is not None:
            await self.answer(ticket)

    def fed(self) -> tuple[str, ...]:
        """All topics to which something may be on its way, for a read of every topic."""
        return (*self.engine.forwarding.behind, *self.engine.moving.towards)

    def with_letters(self, topic: str) -> tuple[str, ...]:
        """A topic and where its dead letters go, for a read of both."""
        found = self.engine.machine.topics.get(topic)
        letters = None if found is None else found.config.dead_letter
        return (topic,) if letters is None else (topic, letters)

    async def wait_visible(
        self, log: Log, above_seq: int, timeout_s: float, until: asyncio.Future[None] | None = None
    ) -> bool:
        """Wait until readers see a record above `above_seq`; False when the time is over, or the log is gone.

        `until` ends the wait, too.
        """
        watch = self.engine.watch
        if log.visible_seq <= above_seq and timeout_s > 0 and self._may_wait(log):
            future: asyncio.Future[None] = self._loop.create_future()
            give_up = watch.wait(log, above_seq, partial(future.set_result, None))
            try:
                ends = (future,) if until is None else (future, until)
                await asyncio.wait(ends, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            finally:
                give_up()
        return log.visible_seq > above_seq

    def _may_wait(self, log: Log) -> bool:
        return not self.engine.watch.waiting_over and self.engine.machine.logs.get(log.log_id) is log

    def end_waiting(self) -> None:
        """Let everybody who waits for records or jobs go on with what there is; from now on nobody waits."""
        self.engine.watch.end_waiting()
        self.engine.claiming.end_waiting()
        self.engine.groups.end_waiting()
        self.engine.heaps.end_waiting()

    # ---- time

    def _arm(self) -> None:
        """Wake up when something is due; an idle engine has no timer."""
        deadline_ms = self.engine.next_deadline_ms()
        if deadline_ms is None or self.engine.closing:
            return
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        seconds = (deadline_ms - self.engine.now_ms()) / 1000
        self._timer = self._loop.call_later(max(seconds, TIMER_SECONDS_MIN), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.engine.tick()
        self._start_checkpoint_if_due()
        self._arm()

    def _start_checkpoint_if_due(self) -> None:
        if self.engine.checkpoint_due() and not self._tasks and not self.engine.closing:
            self._spawn(self._checkpoint_in_background())

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Something that goes on to its end whoever gives up waiting for it, and that `close` waits for."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _checkpoint_in_background(self) -> None:
        try:
            await self._checkpoint_alone()
        except Exception:
            # Kept in `engine.checkpoint_error` for state and metrics; the WAL keeps everything until one succeeds.
            return

    async def checkpoint(self) -> None:
        await asyncio.shield(self._spawn(self._checkpoint_alone()))

    async def _checkpoint_alone(self) -> None:
        async with self._checkpointing:
            await self._checkpoint(None)

    async def _checkpoint(self, erase: set[int] | None) -> None:
        with _without_collections():
            await self._run_checkpoint(erase)

    async def _run_checkpoint(self, erase: set[int] | None) -> None:
        engine = self.engine
        capture = engine.begin_checkpoint(erase)
        job = next(capture)
        for count, job in enumerate(capture):  # noqa: B007  the last one counts
            if count % CAPTURE_SLICE == CAPTURE_SLICE - 1:
                await asyncio.sleep(0)
        try:
            await self._loop.run_in_executor(self._worker, engine.write_job, job)
            for count, _ in enumerate(engine.checkpointer.install_logs(job)):
                if count % INSTALL_SLICE == INSTALL_SLICE - 1:
                    await asyncio.sleep(0)
        except Exception as error:
            engine.end_checkpoint(job, error)
            raise
        engine.end_checkpoint(job, None)
        await self._loop.run_in_executor(self._worker, engine.clean_job, job)
        trimmed: asyncio.Future[None] = self._loop.create_future()
        engine.cleaned(job, _finisher(trimmed))
        await trimmed

    # ---- backups

    async def open_backup(self) -> Backup:
        """A backup of this moment, ready to be read on another thread; `end_backup` it."""
        opened: list[Backup] = []
        await self._checkpointing.acquire()
        # From here on it goes on to its end, and lets the lock go.
        opening = self._spawn(self._open_backup(opened))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._spawn(self._abandon(opening, opened))
            raise
        return opened[0]

    async def end_backup(self, backup: Backup) -> None:
        """Let go of what a backup holds, whether it was read to its end or not."""
        await asyncio.shield(self._spawn(self._end_backup(backup)))

    async def _open_backup(self, opened: list[Backup]) -> None:
        try:
            if self.engine.closing:
                raise ShuttingDown("the engine is closing")
            backup = self._backup = Backup.begin(self.engine)
            try:
                if self.engine.checkpointer.dirty:
                    await self._checkpoint(None)
                await self._loop.run_in_executor(self._worker, backup.pin)
                cut: asyncio.Future[None] = self._loop.create_future()
                backup.cut(_finisher(cut))
                await cut
                await self._loop.run_in_executor(self._worker, backup.open)
            except BaseException:
                await self._end_backup(backup)
                raise
        finally:
            self._checkpointing.release()
        opened.append(backup)

    async def _abandon(self, opening: asyncio.Task[None], opened: list[Backup]) -> None:
        """Nobody waits for this backup any more, and nobody for its error."""
        await asyncio.wait({opening})
        opening.exception()
        for backup in opened:
            await self._end_backup(backup)

    async def _end_backup(self, backup: Backup) -> None:
        if not backup.released:
            left = await self._loop.run_in_executor(self._worker, backup.release)
            self.engine.store.keep_unneeded(left)
            self.engine.problems += backup.problems

    # ---- the end

    async def close(self) -> None:
        """Finish what was submitted, store everything, let go of the directory."""
        self.engine.stop()
        self.end_waiting()
        if self._timer is not None:
            self._timer.cancel()
        self.engine.flush()
        while unsettled := self.engine.unsettled():
            await asyncio.gather(*map(self.answer, unsettled), return_exceptions=True)
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._backup is not None:
            # Whoever reads it gets an error at the next read: waiting for a slow reader would take for ever.
            await self._end_backup(self._backup)
        try:
            if self.engine.checkpointer.dirty and self.engine.checkpoint_possible():
                await self.checkpoint()
        finally:
            self._worker.shutdown()
            await self._loop.run_in_executor(None, self.engine.close)


@contextmanager
def _without_collections() -> Iterator[None]:
    """A checkpoint makes many objects for many logs at once, none of them garbage before it ends.

    Looking for garbage among them would stop the loop for longer than all its slices take.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _finisher(future: asyncio.Future[None]) -> Callable[[Exception | None], None]:
    def done(error: Exception | None) -> None:
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(None)

    return done
