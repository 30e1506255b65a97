"""The asyncio client for plain code: the same objects, driven on an event loop in a thread of its own.

A face stands before an asyncio object and has its methods, made from them and not written again:

    blocking     a coroutine method becomes one that returns its result
    iterating    a method that gives an async iterator becomes one that gives an iterator
    handing      a coroutine method whose result is another asyncio object becomes one that returns the face of it
    making       the same for a plain method

Names, signatures and docstrings are those of the originals, for `help()` and for type checkers alike. All faces of
one client share a `Portal`: the loop, the thread it runs in, and the way into it.

A process that is forked has a copy of all that but for the thread: calls would wait for ever, and a second loop would
drive what is the first process's. So a portal serves the process that it has started in.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from os import getpid
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from topics.errors import InvalidRequest

A = TypeVar("A")
B = TypeVar("B")
F = TypeVar("F")
P = ParamSpec("P")
R = TypeVar("R")

_END = object()


class Portal:
    """An event loop in a thread. It starts at its first use, and again after `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._pid = getpid()
        """Of the process in which the loop runs."""

    @property
    def is_inherited(self) -> bool:
        """Whether it came with a fork, from the process that it serves."""
        return self._loop is not None and self._pid != getpid()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run on the loop, and wait for the result here."""
        try:
            loop = self._running_loop()
        except InvalidRequest:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C hits the thread that waits, so that the work has to be told. Finished work does not mind.
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop when it has nothing left to do, and end its thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or self.is_inherited:
            return
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self.is_inherited:
            raise InvalidRequest(
                f"this client is open in process {self._pid}, and does nothing in one that was forked from it: open "
                "another one here (an engine in a process is open in that process alone)",
                expected="a client of this process",
            )
        with self._starting:
            if self._loop is None:
                self._pid = getpid()
                self._loop = asyncio.new_event_loop()
                # A program that forgets to close may still end.
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="topics", daemon=True)
                self._thread.start()
            return self._loop


class LoopPortal(Portal):
    """The way into a loop that runs anyway, for threads that work for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_finish_tasks())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


async def _finish_tasks() -> None:
    """Cancel what still runs, in other threads' calls for example, and let it end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Face(Generic[A]):
    """Stands before an asyncio object, for code that knows no asyncio."""

    def __init__(self, behind: A, portal: Portal) -> None:
        self._behind = behind
        self._portal = portal

    def __repr__(self) -> str:
        return repr(self._behind)


def blocking(method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Face[A], P], R]:
    """A coroutine method as one that waits for its result."""

    @functools.wraps(method)
    def call(face: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return face._portal.run(method(face._behind, *args, **kwargs))

    return call


def handing(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, B]], face_of: Callable[[B, Portal], F]
) -> Callable[Concatenate[Face[A], P], F]:
    """A coroutine method that gives an asyncio object as one that gives the face of it."""

    @functools.wraps(method)
    def call(face: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> F:
        return face_of(face._portal.run(method(face._behind, *args, **kwargs)), face._portal)

    return call


def making(
    method: Callable[Concatenate[A, P], B], face_of: Callable[[B, Portal], F]
) -> Callable[Concatenate[Face[A], P], F]:
    """A plain method that makes an asyncio object, run on the loop it is for, as one that gives the face of it."""

    @functools.wraps(method)
    def call(face: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> F:
        async def make() -> B:
            return method(face._behind, *args, **kwargs)

        return face_of(face._portal.run(make()), face._portal)

    return call


def iterating(method: Callable[Concatenate[A, P], AsyncIterator[R]]) -> Callable[Concatenate[Face[A], P], Iterator[R]]:
    """A method that gives an async iterator as one that gives an iterator."""

    @functools.wraps(method)
    def iterate(face: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        events = method(face._behind, *args, **kwargs)
        # When this iterator is let go, so is the one behind it, which the loop then closes.
        while (event := face._portal.run(_step(events))) is not _END:
            yield event

    original = inspect.signature(method)
    annotation = str(original.return_annotation).replace("AsyncIterator", "Iterator")
    iterate.__dict__["__signature__"] = original.replace(return_annotation=annotation)
    return iterate


def iterating_faces(
    method: Callable[Concatenate[A, P], AsyncIterator[B]], face_of: Callable[[B, Portal], F]
) -> Callable[Concatenate[Face[A], P], Iterator[F]]:
    """The same for an async iterator of asyncio objects: the iterator gives the faces of them."""
    plain = iterating(method)

    @functools.wraps(plain)
    def iterate(face: Face[A], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[F]:
        for event in plain(face, *args, **kwargs):
            yield face_of(event, face._portal)

    return iterate


async def _step(events: AsyncIterator[R]) -> R:
    end: Any = _END
    return await anext(events, end)
