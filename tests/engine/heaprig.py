"""A heap on an engine driven by hand, on a disk that can fail and die."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.engine.rig import Rig
from topics.core.heapcommands import AckMessages, MakeHeap, NackMessages, Popper
from topics.engine.heapline import PopStream
from topics.engine.ticket import Ticket
from topics.errors import TopicsError
from topics.heapmodel import Enqueued, EnqueuedBatch, LeaseRef, NewMessage, PoppedMessage, PoppedMessages


class HeapRig(Rig):
    def heap(self, name: str = "h", **fields: object) -> None:
        self.driver.do(MakeHeap(name, fields))

    def put(self, *priorities: int, topic: str = "h", **fields: Any) -> list[Enqueued]:
        found = []
        for priority in priorities:
            message = NewMessage(payload=b"%d" % priority, priority=priority, **fields)
            answer = self.driver.wait(self.engine.heaps.enqueue(topic, message))
            assert isinstance(answer, Enqueued)
            found.append(answer)
        return found

    def batch(self, *messages: tuple[str, NewMessage], transaction: str = "") -> EnqueuedBatch:
        answer = self.driver.wait(self.engine.heaps.enqueue_batch(messages, transaction))
        assert isinstance(answer, EnqueuedBatch)
        return answer

    def ask(self, consumer: str, most: int = 1, wait_ms: int = 0, partitions: Sequence[int] = ()) -> Ticket:
        """A pop at the end of its turn, when those in line are served."""
        ticket = self.engine.heaps.pop("h", Popper(consumer, most), wait_ms, partitions)
        self.engine.heaps.serve()
        return ticket

    def pop(self, consumer: str = "c", most: int = 1) -> list[PoppedMessage]:
        return popped(self.driver.wait(self.ask(consumer, most)))

    def ack(self, *messages: PoppedMessage) -> None:
        self.driver.do(AckMessages("h", refs(messages)))

    def nack(self, *messages: PoppedMessage, backoff_ms: int | None = None) -> None:
        self.driver.do(NackMessages("h", refs(messages), backoff_ms))

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.engine.tick()
        self.work()

    def counts(self) -> tuple[int, int, int]:
        """Ready, in flight, delayed."""
        stats = self.engine.heaps.stats("h")
        return stats.ready_messages, stats.in_flight_messages, stats.delayed_messages


class Consumer:
    """Whoever reads a stream."""

    def __init__(self, rig: HeapRig, name: str = "c", **options: Any) -> None:
        self.got: list[PoppedMessage] = []
        self.error: TopicsError | None = None
        self.stream: PopStream = rig.engine.heaps.open("h", name, self._deliver, self._ended, **options)

    def _deliver(self, messages: PoppedMessages) -> None:
        self.got += messages.messages

    def _ended(self, error: TopicsError) -> None:
        assert self.error is None
        self.error = error

    @property
    def priorities(self) -> list[int]:
        return [message.priority for message in self.got]


def damage(rig: HeapRig) -> None:
    """What is in the heap is in a file, and cannot be read there."""
    rig.driver.checkpoint()
    (path,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    text = rig.disk.contents()[path]
    file = rig.disk.open(path, "write")
    file.write_at(text.index(b'"data":'), [b"?"])
    rig.kill()


def refs(messages: Sequence[PoppedMessage]) -> list[LeaseRef]:
    return [LeaseRef(message.lease_token, message.message_id) for message in messages]


def popped(reply: object) -> list[PoppedMessage]:
    assert isinstance(reply, PoppedMessages)
    return list(reply.messages)


def answer_of(ticket: Ticket) -> list[int] | None:
    """The priorities that a pop was answered with; None while it waits."""
    return [message.priority for message in popped(ticket.result())] if ticket.done else None
