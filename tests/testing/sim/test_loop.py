"""The loop and the network of the simulator: order, time, death, and links that are cut, slow and in pieces."""

from __future__ import annotations

import asyncio
import random

import pytest

from topics.testing.clock import SimClock
from topics.testing.faultfs import SimulatedCrash
from topics.testing.sim.http import FrameReader, ResponseReader, request_bytes
from topics.testing.sim.loop import SimLoop
from topics.testing.sim.machine import Machine
from topics.testing.sim.network import Network, Weather
from topics.testing.sim.timeline import Timeline


class Process:
    """A loop on a timeline, run until nothing is planned."""

    def __init__(self) -> None:
        self.timeline = Timeline(SimClock())
        self.loop = SimLoop(self.timeline, lambda: 5.0)
        self.timeline.afterwards.append(self.loop.drain)
        self.seen: list[object] = []

    def run(self) -> list[object]:
        self.loop.drain()
        while self.timeline.step():
            pass
        return self.seen

    @property
    def now_ms(self) -> float:
        return self.timeline.now_ns / 1_000_000


def test_events_happen_in_order_of_time_and_then_as_they_were_planned() -> None:
    process = Process()
    for ms, name in ((5, "late"), (1, "first"), (1, "second")):
        process.timeline.after(ms, lambda name=name: process.seen.append((name, process.now_ms)))
    assert process.run() == [("first", 1.0), ("second", 1.0), ("late", 5.0)]


def test_the_wall_clock_goes_by_with_the_steady_one() -> None:
    clock = SimClock()
    timeline, began_ms = Timeline(clock), clock.now_ms()
    for _ in range(1000):
        timeline.after(0.7, lambda: None)
        timeline.step()
    assert clock.now_ms() - began_ms == timeline.now_ns // 1_000_000 == 700


def test_a_task_sleeps_works_on_a_thread_and_goes_on() -> None:
    process = Process()

    async def work() -> None:
        process.seen.append(await asyncio.to_thread(lambda: ("thread", round(process.now_ms))))
        rested = process.loop.create_future()
        process.loop.call_later(0.02, rested.set_result, None)
        await rested
        process.seen.append(("awake", process.now_ms >= 25))
        with pytest.raises(OSError):
            await asyncio.to_thread(_raise)

    def _raise() -> None:
        raise OSError("a disk")

    process.loop.create_task(work())
    assert process.run() == [("thread", 5), ("awake", True)]
    assert process.loop.problems == []


def test_a_process_that_dies_does_nothing_any_more_and_leaves_nothing() -> None:
    process = Process()

    async def stubborn() -> None:
        try:
            await process.loop.create_future()
        except BaseException:
            process.seen.append("dying")
            await process.loop.create_future()
        finally:
            process.seen.append("dead")

    process.loop.create_task(stubborn())
    process.loop.call_later(1, process.seen.append, "never")
    process.loop.drain()
    process.loop.end()
    assert process.run() == ["dying", "dead"]


def test_a_crash_on_a_thread_is_no_answer() -> None:
    process = Process()

    def crash() -> None:
        raise SimulatedCrash("here")

    future = process.loop.run_in_executor(None, crash)
    process.run()
    assert not future.done()


# ---- the network


class Line:
    """A server with nothing in it, and one connection to it. It dies with the block."""

    def __init__(self, weather: Weather) -> None:
        self.timeline = Timeline(SimClock())
        chance = random.Random(3)
        self.machine = Machine(self.timeline, chance)
        self.network = Network(self.timeline, self.machine, chance)
        self.network.weather = weather
        self.timeline.afterwards.append(self.machine.settle)
        self.machine.start()
        self.answer = ResponseReader()
        self.is_over = False
        while self.machine.listener is None:
            assert self.timeline.step()
        link = self.network.connect(self._receive)
        assert link is not None
        self.link = link

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *error: object) -> None:
        self.machine.die("killed")

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self.is_over = True
        else:
            self.answer.feed(data)

    def ask(self, times: int = 1) -> None:
        self.link.send(request_bytes("GET", "/v0/health") * times)
        while not self.answer.is_whole and not self.is_over:
            assert self.timeline.step()


def test_a_request_in_pieces_is_answered() -> None:
    with Line(Weather(delay_ms=20, pieces=1.0)) as line:
        line.ask()
        assert line.answer.status == 200 and not line.is_over


def test_an_answer_can_be_cut_at_any_byte() -> None:
    for count in (0, 1, 40, 150):
        with Line(Weather()) as line:
            line.link.cut_after = count
            line.ask()
            assert line.is_over and not line.answer.is_whole


def test_who_dies_cuts_its_connections_and_listens_no_more() -> None:
    with Line(Weather()) as line:
        line.machine.die("killed")
        assert line.is_over and line.machine.listener is None and line.network.connect(line._receive) is None
        line.machine.start()
        assert line.machine.running


def test_a_client_that_reads_slowly_holds_the_server_back() -> None:
    with Line(Weather()) as line:
        line.link.slow_ms = 10_000
        line.link.send(request_bytes("GET", "/v0/health"))
        while not line.link.transport.get_write_buffer_size():
            assert line.timeline.step()
        line.link.transport.set_write_buffer_limits(high=100)
        line.link.send(request_bytes("GET", "/v0/health"))
        while not line.link.transport._paused:
            assert line.timeline.step()
        assert line.link.transport.get_write_buffer_size() > 100
        while line.link.transport._paused:
            assert line.timeline.step()
        assert line.answer.is_whole


def test_events_are_cut_out_of_a_stream_however_it_comes() -> None:
    text = b'id: a\nevent: record\ndata: {"n":1}\n\n: beat\n\nid: b\nevent: tombstone\ndata: {"n":2}\n\n'
    reader = FrameReader()
    frames = [frame for at in range(len(text)) for frame in reader.feed(text[at : at + 1])]
    assert [(frame.event, frame.id, frame.fields) for frame in frames] == [
        ("record", "a", {"n": 1}),
        ("tombstone", "b", {"n": 2}),
    ]


def test_a_crash_is_no_problem_of_the_servers_also_within_another_error() -> None:
    with Line(Weather()) as line:
        loop = line.machine.loop
        assert loop is not None
        wrapped = ValueError("a callback failed")
        wrapped.__context__ = SimulatedCrash("before a call")
        for error in (SimulatedCrash("before a call"), wrapped, KeyError("a bug")):
            loop.call_exception_handler({"message": "failed", "exception": error})
        assert loop.problems == ["failed: KeyError('a bug')"]
        loop.problems.clear()


def test_what_is_no_answer_is_noticed() -> None:
    reader = ResponseReader()
    reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    assert not reader.broken and not reader.is_whole
    reader = ResponseReader()
    reader.feed(b"nonsense")
    assert reader.broken


def test_what_was_given_up_is_not_run_and_what_came_of_it_goes_nowhere() -> None:
    process = Process()
    loop = process.loop

    def fail() -> None:
        process.seen.append("failed")
        raise OSError("the disk")

    loop.call_soon(process.seen.append, "never").cancel()
    for work in (lambda: process.seen.append("worked"), fail):
        loop.run_in_executor(None, work).cancel()
    assert process.run() == ["worked", "failed"] and loop.problems == []
