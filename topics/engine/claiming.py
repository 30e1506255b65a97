"""Who gets which job, and when: claims that are served at once, wait, or gather for a while, and streams of jobs.

A queue with somebody waiting has a `Line`. It is served in one pass for all in line (`core/claim.py` divides evenly):

    at a flush  when there was news in this turn: somebody asked, jobs became visible or were given back, or a stream
                became lighter
    in time     when the window of the first claim is over, a lease runs out or a delay ends

So all claims of one turn are one pass and one fact. When there are fewer jobs than people in line, those who came first
are served. A claim whose time is over, or that does not wait, is answered with nothing. There is no timer a claim, a
lease or a job: `next_deadline_ms` says when `tick` is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import islice

import msgspec

from topics.core.claim import check_claimer, find_queue, hand_out
from topics.core.commands import Claim, Claimer, Nack, Release
from topics.core.leases import lease_id
from topics.core.log import Log
from topics.core.machine import Machine
from topics.core.queue import Queue
from topics.engine.line import FOREVER_MS, Line, Stream, Waiter, ticket_waiter
from topics.engine.moving import Add
from topics.engine.orphans import Orphans
from topics.engine.ticket import Ticket
from topics.errors import Throttled, TopicNotFound, TopicsError
from topics.limits import CLAIM_WAIT_MS_MAX, CLAIMERS_MAX
from topics.model import ClaimedJobs

DEADLINES_SLACK = 1024
"""Deadlines of claims that were answered that are not worth looking for."""
PACED_AFTER_MS = 1000
"""How long that lasts before streams are told, and then from one time to the next."""
RETRY_MS = 50
"""How long those in line wait when the disk is too far behind to lease anything."""


class Claiming:
    def __init__(
        self,
        machine: Machine,
        add: Add,
        check: Callable[[int], None],
        now_ms: Callable[[], int],
        wanted: Callable[[], None],
    ) -> None:
        """`check` raises when a log takes no facts; `wanted` asks for a flush, and for a look at the next deadline."""
        self._machine = machine
        self._add = add
        self._check = check
        self._now_ms = now_ms
        self._wanted = wanted
        self._lines: dict[int, Line] = {}
        self._news: dict[int, None] = {}
        """Lines to serve at the next flush."""
        self._deadlines: list[tuple[int, int, int, Waiter | None]] = []
        """Time, a number that makes each unique, log, and whose wait is over then; None for the line itself."""
        self._deadlines_max = DEADLINES_SLACK
        self._numbers = 0
        self._connections = 0
        self._waiting_over = False
        self._orphans = Orphans()

    # ---- claims

    def claim(self, topic: str, claimer: Claimer, partition: int = 0, wait_ms: int = 0) -> Ticket:
        """Jobs for one worker; the ticket's reply is `ClaimedJobs`. With `wait_ms`, waits that long for the first."""
        check_claimer(claimer, self._machine.bounds.node_bytes_max)
        now_ms = self._now_ms()
        found, log, _ = find_queue(self._machine, topic, partition, now_ms)
        self._check(log.log_id)
        wait_ms = 0 if self._waiting_over else max(0, min(wait_ms, CLAIM_WAIT_MS_MAX))
        window_ms = 0 if self._waiting_over else found.config.claim_jitter_ms
        line = self._line(log)
        waiter, ticket = ticket_waiter(claimer, now_ms + max(wait_ms, window_ms))
        if len(line.waiters) >= CLAIMERS_MAX:
            raise Throttled(
                f'{CLAIMERS_MAX} claims wait for jobs of "{topic}"; try again', limit="claimers", retry_after_ms=1000
            )
        line.join(waiter)
        if window_ms:
            if line.window_ends_ms <= now_ms:
                line.window_ends_ms = now_ms + window_ms
                self._wake_at(line, line.window_ends_ms)
        else:
            self.note(log)
        if waiter.until_ms > now_ms:
            self._plan(waiter.until_ms, line, waiter)
        else:
            line.hasty.append(waiter)
        self._wanted()
        return ticket

    def claim_together(
        self, topic: str, claimers: tuple[Claimer, ...], partition: int, may_wait: bool
    ) -> Ticket | None:
        """Jobs for several workers, who were checked, in one pass, now; the ticket's reply is a tuple of `ClaimedJobs`.

        None when they have to get in line: somebody is there, others may join, or one that would wait may get nothing.
        """
        now_ms = self._now_ms()
        found, log, queue = find_queue(self._machine, topic, partition, now_ms)
        config = found.config
        if log.log_id in self._lines or config.claim_jitter_ms:
            return None
        if may_wait and (queue.ready_count(log) < len(claimers) or queue.may_bury(config)):
            return None
        self._check(log.log_id)
        return self._add(hand_out(self._machine, found, log, queue, claimers, now_ms))

    def cancel(self, topic: str, partition: int, ticket: Ticket) -> bool:
        """Whoever asked is gone. Nothing is leased to it any more, and what was a moment ago is given back when the
        ticket is done; whether it was still in line, and the ticket never will be."""
        found = self._machine.topics.get(topic)
        line = self._lines.get(found.first_log_id + partition) if found is not None else None
        waiting = [waiter for waiter in line.waiters if waiter.answered == ticket.resolve] if line is not None else []
        if line is not None and waiting:
            line.leave(waiting[0])
            self._tidy(line)
            return True
        ticket.on_done(self._give_back)
        return False

    def _give_back(self, ticket: Ticket) -> None:
        if ticket.error is None and isinstance(ticket.reply, ClaimedJobs):
            self.give_back(ticket.reply)

    def give_back(self, jobs: ClaimedJobs) -> ClaimedJobs:
        """Nobody is there any more for these jobs, which others can claim at once; what there is to answer instead."""
        if jobs.seqs and self._exists(jobs):
            lease_ids = [lease_id(jobs.token + place) for place in range(len(jobs.seqs))]
            command = Nack(jobs.topic, jobs.node, jobs.seqs, lease_ids, jobs.partition, undelivered=True)
            self._add(self._machine.step(command, self._now_ms()))
        return msgspec.structs.replace(jobs, text=b"", seqs=[])

    def _exists(self, jobs: ClaimedJobs) -> bool:
        found = self._machine.topics.get(jobs.topic)
        return found is not None and self._machine.logs[found.first_log_id + jobs.partition].queue is not None

    # ---- streams

    def open(
        self,
        topic: str,
        node: str,
        max_held: int,
        lease_ms: int | None,
        deliver: Callable[[ClaimedJobs], None],
        ended: Callable[[TopicsError], None],
        partition: int = 0,
        paced: Callable[[int], None] = lambda retry_after_ms: None,
    ) -> Stream:
        """Push jobs to a worker from now on, at most `max_held` at a time."""
        self._connections += 1
        most = min(max_held, self._machine.bounds.claim_max)
        claimer = Claimer(node, most, lease_ms, self._connections)
        check_claimer(claimer, self._machine.bounds.node_bytes_max)
        _, log, _ = find_queue(self._machine, topic, partition, self._now_ms())
        line = self._line(log)
        stream = Stream(topic, partition, log.log_id, claimer, deliver, ended, paced)
        stream.close = lambda: self._close(stream)
        stream.pause = lambda: self._pause(stream)
        stream.resume = lambda: self._resume(stream)
        line.streams[claimer.connection] = stream
        self._rejoin(line, log, [claimer.connection])
        self.note(log)
        return stream

    def _close(self, stream: Stream) -> None:
        if not stream.is_open:
            return
        stream.is_open = False
        connection = stream.claimer.connection
        line = self._lines.get(stream.log_id)
        if line is not None:
            line.streams.pop(connection, None)
            if connection in line.places:
                line.leave(line.places[connection])
            self._tidy(line)
        log = self._machine.logs.get(stream.log_id)
        if log is None or log.queue is None or not log.queue.leases.holders.held_count(connection):
            return
        outcome = self._machine.step(Release(stream.topic, connection, stream.partition), self._now_ms())
        log.queue.leases.holders.lighter.discard(connection)
        self._add(outcome)

    def _pause(self, stream: Stream) -> None:
        stream.is_paused = True
        line = self._lines.get(stream.log_id)
        place = None if line is None else line.places.get(stream.claimer.connection)
        if line is not None and place is not None:
            line.leave(place)

    def _resume(self, stream: Stream) -> None:
        stream.is_paused = False
        line, log = self._lines.get(stream.log_id), self._machine.logs.get(stream.log_id)
        if stream.is_open and line is not None and log is not None:
            self._rejoin(line, log, [stream.claimer.connection])
            self.note(log)

    def _rejoin(self, line: Line, log: Log, connections: Iterable[int]) -> None:
        """Put streams that have room in line."""
        assert log.queue is not None
        for connection in connections:
            stream = line.streams.get(connection)
            if stream is None or stream.is_paused or connection in line.places:
                continue
            room = stream.claimer.max - log.queue.leases.holders.held_count(connection)
            if room > 0:
                claimer = msgspec.structs.replace(stream.claimer, max=room)
                waiter = Waiter(claimer, FOREVER_MS, _deliver_to(stream), stream.ended)
                line.places[connection] = waiter
                line.join(waiter)

    # ---- news and time

    def note(self, log: Log) -> None:
        """Something about a queue changed that those in line may be waiting for."""
        line = self._lines.get(log.log_id)
        if line is not None and log.log_id not in self._news:
            self._news[log.log_id] = None
            self._wanted()

    def serve(self) -> None:
        """Serve the lines that there was news for."""
        if not self._news:
            return
        news, self._news = self._news, {}
        now_ms = self._now_ms()
        for log_id in news:
            line = self._lines.get(log_id)
            if line is not None:
                self._serve(line, now_ms)
                hasty, line.hasty = line.hasty, []
                for waiter in hasty:
                    if waiter in line.waiters:
                        self._give_up(line, waiter)
                self._tidy(line)

    def tick(self) -> None:
        now_ms = self._now_ms()
        self._orphans.tick(now_ms)
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            when_ms, _, log_id, waiter = heappop(self._deadlines)
            line = self._lines.get(log_id)
            # What was planned before an earlier time came up stands for nothing: the line plans anew at each.
            if line is None or (waiter is None and when_ms != line.wakes_ms):
                continue
            if waiter is None:
                line.wakes_ms = FOREVER_MS
            self._serve(line, now_ms)
            for late in [late for late in line.waiters if late.until_ms <= now_ms] if waiter is None else [waiter]:
                if late in line.waiters:
                    self._give_up(line, late)
            self._tidy(line)

    def next_deadline_ms(self) -> int | None:
        orphans_ms = self._orphans.next_deadline_ms()
        if not self._deadlines:
            return orphans_ms
        return self._deadlines[0][0] if orphans_ms is None else min(orphans_ms, self._deadlines[0][0])

    def born(self, log_ids: Iterable[int]) -> None:
        """Topics were made."""
        for log_id in log_ids:
            topic = self._machine.topic(self._machine.logs[log_id].topic)
            self._orphans.made(topic.name, topic.config.type)

    def dropped(self, log_ids: Iterable[int]) -> None:
        """Topics are gone, and nobody will get anything from them."""
        for log_id in log_ids:
            line = self._lines.pop(log_id, None)
            if line is not None:
                error = TopicNotFound(f'topic "{line.topic}" was deleted', topic=line.topic)
                streams = list(line.streams.values())
                line.streams.clear()
                self._fail(line, [waiter for waiter in line.waiters if not waiter.claimer.connection], error)
                self._orphans.add(line.topic, streams, self._now_ms())
                self._wanted()

    def end_waiting(self) -> None:
        """Answer everybody who waits with what there is; from now on nobody waits."""
        self._waiting_over = True
        for line in list(self._lines.values()):
            for waiter in [waiter for waiter in line.waiters if not waiter.claimer.connection]:
                self._give_up(line, waiter)
            self._tidy(line)

    def waiting_count(self) -> int:
        """Claims that wait for a job."""
        return sum(len(line.waiters) - len(line.places) for line in self._lines.values())

    def stream_count(self) -> int:
        return sum(len(line.streams) for line in self._lines.values())

    # ---- one line

    def _line(self, log: Log) -> Line:
        line = self._lines.get(log.log_id)
        if line is None:
            line = self._lines[log.log_id] = Line(log.topic, log.partition, log.log_id)
        return line

    def _tidy(self, line: Line) -> None:
        if line.is_empty and self._lines.get(line.log_id) is line:
            del self._lines[line.log_id]

    def _serve(self, line: Line, now_ms: int) -> None:
        """Hand out what there is, unless others may still join."""
        _, log, queue = find_queue(self._machine, line.topic, line.partition, now_ms)
        lighter, queue.leases.holders.lighter = queue.leases.holders.lighter, set()
        self._rejoin(line, log, sorted(lighter))
        if line.window_ends_ms <= now_ms:
            while self._pass(line, log, queue, now_ms):
                pass
        else:
            self._wake_at(line, line.window_ends_ms)
        due_ms = queue.leases.next_due_ms()
        if due_ms is not None and not line.is_empty:
            self._wake_at(line, due_ms)

    def _pass(self, line: Line, log: Log, queue: Queue, now_ms: int) -> bool:
        """One pass for those in line; whether another one may find more."""
        chosen = list(islice(line.waiters, queue.ready_count(log)))
        if not chosen:
            return False
        try:
            self._check(log.log_id)
            claimers = tuple(waiter.claimer for waiter in chosen)
            outcome = self._machine.step(Claim(line.topic, claimers, line.partition), now_ms)
        except Throttled:
            self._wake_at(line, now_ms + RETRY_MS)
            self._pace(line, now_ms)
            return False
        except TopicsError as error:
            self._fail(line, chosen, error)
            return False
        line.behind_since_ms = FOREVER_MS
        ticket = self._add(outcome)
        assert isinstance(outcome.reply, tuple)
        for waiter, answer in zip(chosen, outcome.reply, strict=True):
            if answer.seqs:
                line.leave(waiter)
                self._answer_when_done(ticket, waiter, answer, log)
        return bool(outcome.facts or outcome.moves or any(answer.seqs for answer in outcome.reply))

    def _pace(self, line: Line, now_ms: int) -> None:
        """Nothing can be leased now. Streams that would get something are told so once it has lasted for a while."""
        if line.behind_since_ms == FOREVER_MS:
            line.behind_since_ms = now_ms
        elif now_ms >= line.behind_since_ms + PACED_AFTER_MS:
            line.behind_since_ms = now_ms
            for connection in list(line.places):
                line.streams[connection].paced(RETRY_MS)

    def _answer_when_done(self, ticket: Ticket, waiter: Waiter, answer: ClaimedJobs, log: Log) -> None:
        connection = waiter.claimer.connection

        def done(ticket: Ticket) -> None:
            if ticket.error is not None:
                waiter.failed(ticket.error)
                return
            waiter.answered(answer)
            line = self._lines.get(log.log_id)
            if connection and line is not None and log.queue is not None:
                # A stream is in line again only now: it may have had enough, and said so.
                self._rejoin(line, log, [connection])
                if connection in line.places:
                    self.note(log)

        ticket.on_done(done)

    def _give_up(self, line: Line, waiter: Waiter) -> None:
        line.leave(waiter)
        log = self._machine.logs.get(line.log_id)
        ready = log.queue.ready_count(log) if log is not None and log.queue is not None else 0
        waiter.answered(ClaimedJobs(topic=line.topic, partition=line.partition, node=waiter.claimer.node, ready=ready))

    def _fail(self, line: Line, waiters: Iterable[Waiter], error: TopicsError) -> None:
        for waiter in waiters:
            line.leave(waiter)
            stream = line.streams.pop(waiter.claimer.connection, None)
            if stream is not None:
                stream.end(error)
            else:
                waiter.failed(error)

    def _wake_at(self, line: Line, when_ms: int) -> None:
        if when_ms < line.wakes_ms:
            line.wakes_ms = when_ms
            self._plan(when_ms, line, None)

    def _plan(self, when_ms: int, line: Line, waiter: Waiter | None) -> None:
        self._numbers += 1
        heappush(self._deadlines, (when_ms, self._numbers, line.log_id, waiter))
        if len(self._deadlines) > self._deadlines_max:
            self._forget_served()

    def _forget_served(self) -> None:
        """Drop the deadlines of claims that were answered before, when they are many."""
        lines = self._lines
        self._deadlines = [
            planned
            for planned in self._deadlines
            if (line := lines.get(planned[2])) is not None and (planned[3] is None or planned[3] in line.waiters)
        ]
        heapify(self._deadlines)
        self._deadlines_max = 2 * len(self._deadlines) + DEADLINES_SLACK


def _deliver_to(stream: Stream) -> Callable[[ClaimedJobs], None]:
    def deliver(jobs: ClaimedJobs) -> None:
        if stream.is_open:
            stream.deliver(jobs)

    return deliver
