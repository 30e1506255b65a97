"""A queue on an engine driven by hand, on a disk that can fail and die."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.engine.rig import Rig
from topics.core.commands import Ack, Append, Claimer, Complete, Extend, Nack, Redrive
from topics.core.records import Records
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, ExtendedJobs, NackedJobs, QueueState, Redriven


class QueueRig(Rig):
    def queue(self, name: str = "q", **fields: object) -> None:
        self.configure(name, type="queue", **fields)

    def ask(self, node: str, most: int = 1, wait_ms: int = 0, lease_ms: int | None = None) -> Ticket:
        """A claim at the end of its turn, when those in line are served."""
        ticket = self.engine.claim("q", Claimer(node, most, lease_ms), wait_ms=wait_ms)
        self.engine.claiming.serve()
        return ticket

    def claim(self, node: str, most: int = 1, lease_ms: int | None = None) -> ClaimedJobs:
        reply = self.driver.wait(self.ask(node, most, lease_ms=lease_ms))
        assert isinstance(reply, ClaimedJobs)
        return reply

    def ack(self, node: str, *seqs: int) -> AckedJobs:
        reply = self.driver.do(Ack("q", node, seqs))
        assert isinstance(reply, AckedJobs)
        return reply

    def nack(self, node: str, *seqs: int, delay_ms: int = 0) -> NackedJobs:
        reply = self.driver.do(Nack("q", node, seqs, delay_ms=delay_ms))
        assert isinstance(reply, NackedJobs)
        return reply

    def extend(self, node: str, *seqs: int, lease_ms: int) -> ExtendedJobs:
        reply = self.driver.do(Extend("q", node, seqs, lease_ms))
        assert isinstance(reply, ExtendedJobs)
        return reply

    def complete(self, node: str, seqs: list[int], **results: Any) -> CompletedJobs:
        reply = self.driver.do(Complete("q", node, seqs, [result(topic, data) for topic, data in results.items()]))
        assert isinstance(reply, CompletedJobs)
        return reply

    def redrive(self, topic: str, **options: Any) -> Redriven:
        reply = self.driver.do(Redrive(topic, **options))
        assert isinstance(reply, Redriven)
        return reply

    def delay(self, data: object, delay_ms: int) -> None:
        self.driver.do(Append("q", Records.of([{"data": data}]), delay_ms=delay_ms))

    def counts(self, name: str = "q") -> tuple[int, int, int, int]:
        state = self.engine.state(name).queue
        assert isinstance(state, QueueState)
        return state.ready, state.in_flight, state.dead_lettered, state.delayed

    def tick(self, ms: int) -> None:
        """Let time pass as a host would: waking up when the engine asks for it."""
        until = self.clock.now_ms() + ms
        while (due := self.engine.next_deadline_ms()) is not None and due <= until:
            self.clock.advance(max(0, due - self.clock.now_ms()))
            self.engine.tick()
            self.work()
            if due == self.engine.next_deadline_ms():
                break
        self.clock.advance(until - self.clock.now_ms())
        self.engine.tick()
        self.work()


def result(topic: str, data: object) -> Append:
    return Append(topic, Records.of([{"data": data}]))


def seqs_of(ticket: Ticket) -> list[int] | None:
    """What a claim got; None while it waits."""
    if not ticket.done:
        return None
    reply = ticket.result()
    assert isinstance(reply, ClaimedJobs)
    return reply.seqs


def deliveries(jobs: ClaimedJobs) -> list[int]:
    return [msgspec.json.decode(text)["deliveries"] for text in jobs.jobs]


class Worker:
    """The other end of a stream of jobs."""

    def __init__(self, rig: QueueRig, node: str, most: int, topic: str = "q") -> None:
        self.got: list[int] = []
        self.error: TopicsError | None = None
        self.stream = rig.engine.claiming.open(topic, node, most, None, self._take, self._end)

    def _take(self, jobs: ClaimedJobs) -> None:
        self.got += jobs.seqs

    def _end(self, error: TopicsError) -> None:
        self.error = error
