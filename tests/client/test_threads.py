from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from tests.client.rig import on_loop, settle, soon
from topics.client.threads import Threads


@on_loop
async def test_no_more_threads_than_calls_at_a_time_and_each_is_used_again() -> None:
    threads = Threads(3)
    together = threading.Barrier(3)
    names: set[str] = set()

    def work(number: int) -> int:
        names.add(threading.current_thread().name)
        if number < 3:
            together.wait(10)
        return number * 2

    assert await soon(asyncio.gather(*(threads.call(work, number) for number in range(3)))) == [0, 2, 4]
    assert [await soon(threads.call(work, 5)) for _ in range(10)] == [10] * 10
    assert names == {"topics job 1", "topics job 2", "topics job 3"}
    threads.close()


@on_loop
async def test_what_a_function_raises_is_raised_and_the_thread_lives_on() -> None:
    threads = Threads(1)

    def raising(error: BaseException) -> None:
        raise error

    with pytest.raises(ValueError, match="no good"):
        await soon(threads.call(raising, ValueError("no good")))
    for strange in (SystemExit(3), StopIteration(), KeyboardInterrupt()):
        with pytest.raises(RuntimeError, match=f"the function raised {type(strange).__name__}"):
            await soon(threads.call(raising, strange))
    assert await soon(threads.call(str, 1)) == "1"
    threads.close()


@on_loop
async def test_a_call_sees_the_context_it_is_made_in() -> None:
    threads = Threads(1)
    who = contextvars.ContextVar("who", default="nobody")
    who.set("somebody")
    assert await soon(threads.call(lambda _: who.get(), None)) == "somebody"
    threads.close()


@on_loop
async def test_a_call_that_is_given_up_before_it_began_is_not_made() -> None:
    threads = Threads(1)
    begun, go_on = threading.Event(), threading.Event()
    calls: list[object] = []

    def first(_: object) -> None:
        begun.set()
        assert go_on.wait(10)

    running = asyncio.create_task(threads.call(first, None))
    await soon(asyncio.to_thread(begun.wait, 10))
    given_up = asyncio.create_task(threads.call(calls.append, "given up"))
    await settle()
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    go_on.set()
    await soon(running)
    await soon(threads.call(calls.append, "after"))
    assert calls == ["after"]
    threads.close()


@on_loop
async def test_what_comes_of_a_call_that_was_given_up_is_nobodys() -> None:
    threads = Threads(1)
    wrong: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: object) -> None:
        begun.set()
        assert go_on.wait(10)

    given_up = asyncio.create_task(threads.call(slow, None))
    await soon(asyncio.to_thread(begun.wait, 10))
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    go_on.set()
    assert await soon(threads.call(str, "next")) == "next"
    assert wrong == []
    threads.close()
