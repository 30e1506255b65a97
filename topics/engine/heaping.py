"""Who gets which message, and when: pops that are served at once or wait, and streams with credits.

A heap with somebody waiting, or with leases out, has a `HeapLine`. Those in line are served in one pass (`core/pop.py`
divides evenly and deals best first):

    at a flush  when there was news in this turn: somebody asked, messages became visible, were given back or settled
    in time     when a lease runs out or a delay ends; then messages that failed too often are moved away, too

So all pops of one turn are one pass, and one fact a partition. There is no timer a pop, a lease or a message:
`next_deadline_ms` says when `tick` is wanted. Enqueueing is in `engine/enqueuing.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final

import msgspec

from topics.core.heap import Heap
from topics.core.heapcommands import NackMessages, Pop, Popper, ReleaseLeases
from topics.core.heapplace import Part, find_topic
from topics.core.leases import LEASED
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.pop import Room, bury, check_popper
from topics.core.registry import Topic
from topics.engine.enqueuing import Enqueuing, Submit
from topics.engine.heapline import HeapLine, HeapWaiter, Partitions, PopStream
from topics.engine.heaplooking import HeapLooking
from topics.engine.line import FOREVER_MS
from topics.engine.moving import Add
from topics.engine.ticket import Ticket
from topics.errors import Damaged, ShuttingDown, Throttled, TopicNotFound, TopicsError
from topics.heapmodel import (
    LeaseRef,
    NewMessage,
    PoppedMessages,
)
from topics.limits import CLAIM_WAIT_MS_MAX, CLAIMERS_MAX, DEAD_LETTER_RETRY_MS
from topics.model import TopicType

DEADLINES_SLACK: Final = 1024
"""Deadlines of pops that were answered that are not worth looking for."""
RETRY_MS: Final = 50
"""How long those in line wait when the disk is too far behind to lease anything."""


class Heaping(HeapLooking):
    def __init__(
        self,
        machine: Machine,
        add: Add,
        submit: Submit,
        check: Callable[[int], None],
        stopped: Callable[[int], TopicsError | None],
        now_ms: Callable[[], int],
        wanted: Callable[[], None],
    ) -> None:
        """`check` raises when a log takes no facts, `stopped` says why one never will; `wanted` asks for a flush, and
        for a look at the next deadline."""
        super().__init__(machine, stopped, now_ms)
        self._add = add
        self._check = check
        self._wanted = wanted
        self._enqueuing = Enqueuing(machine, add, submit, now_ms)
        self._lines: dict[str, HeapLine] = {}
        self._news: dict[str, None] = {}
        """Lines to serve at the next flush."""
        self._deadlines: list[tuple[int, int, str, HeapWaiter | None]] = []
        """Time, a number that makes each unique, heap, and whose wait is over then; None for the line itself."""
        self._deadlines_max = DEADLINES_SLACK
        self._served: HeapLine | None = None
        """The line that is being served: what that changes in its heap is no news."""
        self._waiting: dict[int, tuple[HeapLine, HeapWaiter]] = {}
        """Pops in line, by the identity of their tickets."""
        self._numbers = 0
        self._connections = 0
        self._is_over = False
        self._waiting_over = False

    # ---- in

    def enqueue(self, topic: str, message: NewMessage) -> Ticket:
        """One message; the ticket's reply is `Enqueued`."""
        return self._enqueuing.enqueue(topic, message)

    def enqueue_batch(self, messages: Sequence[tuple[str, NewMessage]], transaction_id: str = "") -> Ticket:
        """Messages of any heaps, all or none; the ticket's reply is `EnqueuedBatch`."""
        return self._enqueuing.enqueue_batch(messages, transaction_id)

    # ---- out

    def pop(self, topic: str, popper: Popper, wait_ms: int = 0, partitions: Sequence[int] = ()) -> Ticket:
        """Messages for one consumer; the ticket's reply is `PoppedMessages`. With `wait_ms`, waits for the first."""
        self._check_open()
        check_popper(popper)
        found = find_topic(self._machine, topic)
        chosen = self._chosen(found, partitions)
        now_ms = self._now_ms()
        line = self._line(found)
        if len(line.waiters) >= CLAIMERS_MAX:
            raise Throttled(
                f'{CLAIMERS_MAX} pops wait for messages of "{topic}"; try again', limit="poppers", retry_after_ms=1000
            )
        wait_ms = 0 if self._waiting_over else max(0, min(wait_ms, CLAIM_WAIT_MS_MAX))
        ticket = Ticket()
        waiter = HeapWaiter(popper, chosen, now_ms + wait_ms, ticket.resolve, ticket.fail)
        line.join(waiter)
        self._waiting[id(ticket)] = line, waiter
        ticket.on_done(self._forget)
        if wait_ms:
            self._plan(waiter.until_ms, line, waiter)
        else:
            line.hasty.append(waiter)
        self._note(line)
        return ticket

    def _forget(self, ticket: Ticket) -> None:
        self._waiting.pop(id(ticket), None)

    def cancel(self, ticket: Ticket) -> bool:
        """Whoever asked with `pop` is gone: nothing is leased to it any more, and what was goes back undelivered;
        whether it was still in line, and the ticket never will be done."""
        waiting = self._waiting.pop(id(ticket), None)
        if waiting is not None and waiting[0].leave(waiting[1]):
            self._tidy(waiting[0])
            return True
        ticket.on_done(self._give_back)
        return False

    def _give_back(self, ticket: Ticket) -> None:
        reply = ticket.reply
        if ticket.error is None and isinstance(reply, PoppedMessages) and reply.messages:
            found = self._machine.topics.get(reply.topic)
            if found is not None and found.config.type is TopicType.HEAP:
                refs = [LeaseRef(message.lease_token, message.message_id) for message in reply.messages]
                command = NackMessages(reply.topic, refs, undelivered=True, strict=False)
                self._add(self._machine.step(command, self._now_ms()))

    def open(
        self,
        topic: str,
        consumer: str,
        deliver: Callable[[PoppedMessages], None],
        ended: Callable[[TopicsError], None],
        visibility_ms: int | None = None,
        partitions: Sequence[int] = (),
    ) -> PopStream:
        """Push messages to a consumer from now on, as many as it grants credits for."""
        self._check_open()
        self._connections += 1
        popper = Popper(consumer, 1, visibility_ms, self._connections)
        check_popper(popper)
        found = find_topic(self._machine, topic)
        stream = PopStream(found.name, popper, self._chosen(found, partitions), deliver, ended)
        stream.granted = lambda: self._granted(stream)
        stream.close = lambda: self._close(stream)
        self._line(found).streams[popper.connection] = stream
        return stream

    def _granted(self, stream: PopStream) -> None:
        """One that is open is in a line, and the line is there."""
        line = self._lines[stream.topic]
        self._rejoin(line, stream)
        self._note(line)

    def _rejoin(self, line: HeapLine, stream: PopStream) -> None:
        connection = stream.popper.connection
        if stream.is_open and stream.credits and connection not in line.places:
            line.join(HeapWaiter(stream.popper, stream.partitions, FOREVER_MS, stream.deliver, stream.end, stream))

    def _close(self, stream: PopStream) -> None:
        """Also of one that has ended: what it holds is for others, however it ended."""
        stream.is_open = False
        connection = stream.popper.connection
        line = self._lines.get(stream.topic)
        if line is not None and line.streams.pop(connection, None) is not None:
            if connection in line.places:
                line.leave(line.places[connection])
            self._tidy(line)
        found = None if self._is_over else self._machine.topics.get(stream.topic)
        if found is not None and self._holds_any(found, connection):
            self._add(self._machine.step(ReleaseLeases(stream.topic, connection), self._now_ms()))

    def _holds_any(self, topic: Topic, connection: int) -> bool:
        queues = [self._machine.logs[log_id].queue for log_id in topic.log_ids()]
        return any(isinstance(queue, Heap) and queue.leases.holders.held_count(connection) for queue in queues)

    def _chosen(self, topic: Topic, partitions: Sequence[int]) -> Partitions:
        for partition in partitions:
            self._machine.check_partition(topic.name, topic.config, partition)
        return tuple(sorted(set(partitions)))

    def _check_open(self) -> None:
        if self._is_over:
            raise ShuttingDown("the engine is closing")

    # ---- news and time

    def note(self, log: Log) -> None:
        """Something about a heap changed that those in line may be waiting for, or that time will act on: in this
        partition, or in others as well."""
        heap = self._admit(log)
        line = self._lines.get(log.topic)
        if line is None:
            found = self._machine.topics.get(log.topic)
            if found is None or not heap.leases.counts[LEASED]:
                return
            line = self._line(found)
        if line is self._served:
            return
        line.stir()
        if line.waiters:
            self._note(line)
        else:
            self._wake_for(line, line.parts)

    def came(self, log: Log) -> None:
        """Messages came into a partition."""
        self._admit(log)
        line = self._lines.get(log.topic)
        if line is not None:
            line.stirred.add(log.partition)
            if line.waiters:
                self._note(line)

    def _admit(self, log: Log) -> Heap:
        """Put what came in order while it is in memory, so that nobody who pops has to wait for that."""
        heap = log.queue
        assert isinstance(heap, Heap)
        with suppress(Damaged):  # Whoever pops is told.
            heap.admit(log)
        return heap

    def _note(self, line: HeapLine) -> None:
        if line.topic not in self._news:
            self._news[line.topic] = None
            self._wanted()

    def serve(self) -> None:
        """Serve the lines that there was news for."""
        while self._news:
            news, self._news = self._news, {}
            now_ms = self._now_ms()
            for topic in news:
                line = self._lines.get(topic)
                if line is not None:
                    self._serve(line, now_ms)
                    hasty, line.hasty = line.hasty, []
                    for waiter in hasty:
                        self._give_up(line, waiter)
                    self._tidy(line)

    def tick(self) -> None:
        now_ms = self._now_ms()
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            when_ms, _, topic, waiter = heappop(self._deadlines)
            line = self._lines.get(topic)
            # A line is looked at once for its time, and plans the next one then: each that was planned before and
            # left behind would plan another, and they would become more and more.
            if line is None or (waiter is None and when_ms != line.wakes_ms):
                continue
            if waiter is None:
                line.wakes_ms = FOREVER_MS
                line.stir()
            elif waiter not in line.waiters:
                continue
            self._serve(line, now_ms)
            if waiter is not None:
                self._give_up(line, waiter)
            self._tidy(line)

    def next_deadline_ms(self) -> int | None:
        return self._deadlines[0][0] if self._deadlines else None

    def resume(self) -> None:
        """After a recovery: what is leased runs out in its time."""
        for topic in self._machine.topics:
            if topic.config.type is TopicType.HEAP:
                for log in [self._machine.logs[log_id] for log_id in topic.log_ids()]:
                    if log.queue is not None and log.queue.is_touched:
                        self.note(log)

    def dropped(self, log_ids: Iterable[int]) -> None:
        """Topics are gone, and nobody will get anything from them."""
        gone = set(log_ids)
        for line in [line for line in self._lines.values() if gone and line.first_log_id in gone]:
            del self._lines[line.topic]
            error = TopicNotFound(f'topic "{line.topic}" does not exist any more: it was deleted', topic=line.topic)
            for stream in line.streams.values():
                stream.end(error)
            for waiter in line.waiters:
                if waiter.stream is None:
                    waiter.failed(error)

    def end_waiting(self) -> None:
        """Answer everybody who waits with what there is; from now on nobody waits."""
        self._waiting_over = True
        for line in list(self._lines.values()):
            for waiter in [waiter for waiter in line.waiters if waiter.stream is None]:
                self._give_up(line, waiter)
            self._tidy(line)

    def close(self) -> None:
        """Answer everybody who waits with what there is, end the streams, and give back all that is leased."""
        self._is_over = True
        self.end_waiting()
        for line in list(self._lines.values()):
            for stream in list(line.streams.values()):
                stream.end(ShuttingDown("the engine is closing"))
            line.streams.clear()
            line.waiters.clear()
        self._lines.clear()
        now_ms = self._now_ms()
        for topic in [topic for topic in self._machine.topics if topic.config.type is TopicType.HEAP]:
            logs = [self._machine.logs[log_id] for log_id in topic.log_ids()]
            held = any(log.queue is not None and log.queue.leases.counts[LEASED] for log in logs)
            if held and not any(self._stopped(log.log_id) for log in logs):
                self._add(self._machine.step(ReleaseLeases(topic.name), now_ms))

    def waiting_count(self) -> int:
        """Pops that wait for a message."""
        return sum(len(line.waiters) - len(line.places) for line in self._lines.values())

    def stream_count(self) -> int:
        return sum(len(line.streams) for line in self._lines.values())

    # ---- one line

    def _line(self, topic: Topic) -> HeapLine:
        line = self._lines.get(topic.name)
        if line is None:
            logs = [self._machine.logs[log_id] for log_id in topic.log_ids()]
            parts = [Part(log, log.queue) for log in logs if isinstance(log.queue, Heap)]
            line = self._lines[topic.name] = HeapLine(topic.name, topic.first_log_id, parts)
        return line

    def _tidy(self, line: HeapLine) -> None:
        if line.is_idle and line.wakes_ms == FOREVER_MS and self._lines.get(line.topic) is line:
            del self._lines[line.topic]

    def _serve(self, line: HeapLine, now_ms: int) -> None:
        if self._is_over:
            return
        try:
            self._serve_from(line, self._machine.topic(line.topic), now_ms)
        except TopicsError as error:
            # A record that is needed to know what is ready cannot be read: those who wait are told.
            self._fail(line, list(line.waiters), error)

    def _serve_from(self, line: HeapLine, found: Topic, now_ms: int) -> None:
        """Hand out what there is, move away what failed too often, and see when to look again."""
        if now_ms >= line.wakes_ms:
            line.stir()
        stirred = [line.parts[number] for number in sorted(line.stirred)]
        running = [part for part in stirred if self._stopped(part.log.log_id) is None]
        parts = _lively(running, found, now_ms)
        self._served = line
        try:
            while parts and line.waiters and self._pass(line, found, parts, now_ms) and line.waiters:
                parts = _lively(running, found, now_ms)
            if any(part.heap.exhausted for part in parts):
                self._bury(line, found, now_ms)
        finally:
            self._served = None
        line.stirred = {part.log.partition for part in parts}
        self._wake_for(line, running)

    def _pass(self, line: HeapLine, topic: Topic, parts: list[Part], now_ms: int) -> bool:
        """One pass for those in line who wait for the same partitions as the first; whether another may find more."""
        served = False
        for partitions in dict.fromkeys(waiter.partitions for waiter in line.waiters):
            open_parts = [part for part in parts if not partitions or part.log.partition in partitions]
            ready = sum(part.heap.ready_count(part.log) for part in open_parts)
            own = (waiter for waiter in line.waiters if waiter.partitions == partitions)
            room = Room(self._machine, topic)
            # Who has as many as it may is not in the way of the others.
            able = (waiter for waiter in own if room.of(waiter.popper))
            chosen = list(islice(able, min(ready, room.count)))
            if chosen and not self._hand_out(line, chosen, partitions, open_parts, now_ms):
                continue
            served = served or bool(chosen)
        return served

    def _hand_out(
        self,
        line: HeapLine,
        chosen: list[HeapWaiter],
        partitions: Partitions,
        parts: list[Part],
        now_ms: int,
    ) -> bool:
        """Whether somebody got something."""
        numbers = [part.log.partition for part in parts]
        poppers = [
            waiter.popper
            if waiter.stream is None
            else msgspec.structs.replace(waiter.popper, max=waiter.stream.credits)
            for waiter in chosen
        ]
        try:
            for part in parts:
                self._check(part.log.log_id)
            outcome = self._machine.step(Pop(line.topic, poppers, numbers), now_ms)
        except Throttled:
            self._wake_at(line, now_ms + RETRY_MS)
            return False
        except TopicsError as error:
            self._fail(line, chosen, error)
            return False
        ticket = self._add(outcome)
        assert isinstance(outcome.reply, tuple)
        for waiter, answer in zip(chosen, outcome.reply, strict=True):
            if answer.messages:
                if waiter.stream is not None:
                    waiter.stream.credits -= len(answer.messages)
                if waiter.stream is not None and waiter.stream.credits:
                    line.go_last(waiter)
                else:
                    line.leave(waiter)
                self._answer_when_done(ticket, waiter, answer)
        return any(answer.messages for answer in outcome.reply)

    def _answer_when_done(self, ticket: Ticket, waiter: HeapWaiter, answer: PoppedMessages) -> None:
        def done(ticket: Ticket) -> None:
            if ticket.error is not None:
                waiter.failed(ticket.error)
            elif waiter.stream is None or waiter.stream.is_open:
                waiter.answered(answer)

        ticket.on_done(done)

    def _bury(self, line: HeapLine, topic: Topic, now_ms: int) -> None:
        try:
            for log_id in topic.log_ids():
                self._check(log_id)
        except TopicsError:
            self._wake_at(line, now_ms + RETRY_MS)
            return
        outcome = bury(self._machine, topic, now_ms)
        if topic.config.dead_letter is None:
            # Nothing died: what had failed too often is ready again, for those in line.
            self._note(line)
            return
        if outcome.facts or outcome.moves:
            self._add(outcome)
        self._wake_at(line, now_ms + (RETRY_MS if outcome.moves else DEAD_LETTER_RETRY_MS))

    def _wake_for(self, line: HeapLine, parts: Iterable[Part]) -> None:
        """Look again when the next lease runs out or, if somebody waits, the next delay ends."""
        for part in parts:
            leases = part.heap.leases
            due_ms = leases.next_due_ms()
            if due_ms is not None and (line.waiters or leases.counts[LEASED]):
                self._wake_at(line, due_ms)

    def _give_up(self, line: HeapLine, waiter: HeapWaiter) -> None:
        if line.leave(waiter):
            waiter.answered(PoppedMessages(topic=line.topic))

    def _fail(self, line: HeapLine, waiters: Iterable[HeapWaiter], error: TopicsError) -> None:
        for waiter in waiters:
            line.leave(waiter)
            line.streams.pop(waiter.popper.connection, None)
            waiter.failed(error)

    def _wake_at(self, line: HeapLine, when_ms: int) -> None:
        if when_ms < line.wakes_ms:
            line.wakes_ms = when_ms
            self._plan(when_ms, line, None)

    def _plan(self, when_ms: int, line: HeapLine, waiter: HeapWaiter | None) -> None:
        self._numbers += 1
        heappush(self._deadlines, (when_ms, self._numbers, line.topic, waiter))
        if len(self._deadlines) > self._deadlines_max:
            self._forget_served()
        self._wanted()

    def _forget_served(self) -> None:
        """Drop the deadlines of pops that were answered before, when they are many."""
        lines = self._lines
        self._deadlines = [
            planned
            for planned in self._deadlines
            if (line := lines.get(planned[2])) is not None and (planned[3] is None or planned[3] in line.waiters)
        ]
        heapify(self._deadlines)
        self._deadlines_max = 2 * len(self._deadlines) + DEADLINES_SLACK


def _lively(running: Iterable[Part], topic: Topic, now_ms: int) -> list[Part]:
    """The partitions that may have something to hand out, as they are by now."""
    found = [part for part in running if not part.heap.is_still(part.log, now_ms)]
    for part in found:
        part.heap.look(part.log, topic.config, now_ms)
    return found
