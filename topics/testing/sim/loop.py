"""An event loop in which nothing is left to chance: timers are events of the timeline, threads are steps of it.

It is what asyncio code needs to run and no more: callbacks in the order they were asked for, timers, futures, tasks,
and `run_in_executor`, whose work is done in one piece a while later. There are no sockets: a server that listens gives
the loop its protocol factory, and the network of the simulator makes the connections.

A loop is the life of one process. `end` is its death: what was planned does not happen any more, and nobody is told.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, cast

from topics.testing.faultfs import SimulatedCrash
from topics.testing.sim.timeline import Timeline

NS_PER_S = 1_000_000_000
CLEANUPS_MAX = 100
DRAIN_STEPS_MAX = 1_000_000
"""Callbacks in one moment, after which a process counts as spinning."""

Factory = Callable[[], asyncio.Protocol]


class _Address:
    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 4000)


class Listener:
    """What `create_server` gives: `factory` makes the protocol of each connection while it is open."""

    def __init__(self, factory: Factory) -> None:
        self.factory = factory
        self.sockets = (_Address(),)
        self.open = True

    def close(self) -> None:
        self.open = False


class SimLoop:
    def __init__(self, timeline: Timeline, thread_ms: Callable[[], float]) -> None:
        self._timeline = timeline
        self._self = cast(asyncio.AbstractEventLoop, self)
        """As asyncio has to see it: all that is asked of it is here, though not all that could be."""
        self._thread_ms = thread_ms
        """How long the next piece of work on a thread takes."""
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self.listener: Listener | None = None
        self.ended = False
        self.problems: list[str] = []
        """What went wrong inside and nobody handled."""

    # ---- running

    def drain(self) -> int:
        """Run what is ready until nothing is; how many callbacks that were. `SimulatedCrash` is passed on."""
        count = 0
        previous = events._get_running_loop()
        events._set_running_loop(self._self)
        try:
            while self._ready and not self.ended:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    count += 1
                    assert count < DRAIN_STEPS_MAX, "the process is spinning"
                    handle._run()
        finally:
            events._set_running_loop(previous)
        return count

    def end(self) -> None:
        """The process is gone. Coroutines that it left are ended here, where it disturbs nobody."""
        self.ended = True
        previous = events._get_running_loop()
        events._set_running_loop(self._self)
        try:
            while self._tasks:
                self._end_task(self._tasks.pop(0))
        finally:
            events._set_running_loop(previous)
        self._ready.clear()

    def _end_task(self, task: asyncio.Task[Any]) -> None:
        """Let it die at whatever it waits for, and again at what it then waits for to clean up."""
        if task.done():
            return
        task.__setattr__("_log_destroy_pending", False)
        coroutine = cast("Coroutine[Any, Any, Any]", task.get_coro())
        with suppress(BaseException):
            for _ in range(CLEANUPS_MAX):
                coroutine.throw(SimulatedCrash("the process is dead"))

    # ---- what asyncio asks of a loop

    def time(self) -> float:
        return self._timeline.now_ns / NS_PER_S

    def is_running(self) -> bool:
        return not self.ended

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self._self, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self._self, context)
        # Never early: a timer that comes a moment before its time is set again for ever.
        self._timeline.at(round(when * NS_PER_S) + 1000, lambda: self._fire(timer))
        return timer

    def _fire(self, timer: asyncio.TimerHandle) -> None:
        if not self.ended and not timer.cancelled():
            self._ready.append(timer)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is skipped when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self._self, name=name, context=context)
        self._tasks = [known for known in self._tasks if not known.done()] if len(self._tasks) > 64 else self._tasks
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()

        def work() -> None:
            try:
                result = func(*args)
            except SimulatedCrash:
                raise
            except BaseException as error:
                if not future.cancelled():
                    future.set_exception(error)
            else:
                if not future.cancelled():
                    future.set_result(result)

        self._timeline.after(self._thread_ms(), lambda: None if self.ended else self._ready.append(self._handle(work)))
        return future

    def _handle(self, work: Callable[[], None]) -> asyncio.Handle:
        return asyncio.Handle(work, (), self._self)

    async def create_server(self, factory: Factory, *where: object, **how: object) -> Listener:
        self.listener = Listener(factory)
        return self.listener

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = within = context.get("exception")
        while within is not None:
            if isinstance(within, SimulatedCrash):
                # Also within another: the parser of requests takes it for an error of ours.
                return
            within = within.__cause__ or within.__context__
        self.problems.append(f"{context.get('message')}: {error!r}")
