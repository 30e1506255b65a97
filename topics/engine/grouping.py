"""Who gets which records of a group, and when: consumes that are served at once or wait, and streams.

    at once     when nobody is before it
    at a flush  when there was news in this turn: records became visible, were given back, a group was reset or resumed
    in time     when a claim runs out or a delay ends

Those who wait are served in the order they came. A consume whose time is over is answered with nothing. There is no
timer a consume or a claim: `next_deadline_ms` says when `tick` is wanted. What a group holds is `core/group.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import msgspec

from topics.core.consume import check_consume
from topics.core.group import parse_claim_id
from topics.core.groupcommands import (
    AckGroup,
    AnyGroupCommand,
    Consume,
    DropGroup,
    GroupCommand,
    NackGroup,
    ResetGroup,
)
from topics.core.groups import find_group, find_log, observe
from topics.core.groupview import state_of
from topics.core.log import Log
from topics.core.machine import Machine
from topics.engine.committing import Committing
from topics.engine.groupline import FOREVER_MS, Batches, Key, Lines, Stream, Waiter
from topics.engine.moving import Add
from topics.engine.placing import Placing, together
from topics.engine.ticket import Ticket
from topics.errors import GroupNotFound, Throttled, TopicNotFound, TopicsError
from topics.groupmodel import EARLIEST, GroupBatch, GroupState, NackedGroup
from topics.limits import CLAIM_WAIT_MS_MAX, CLAIMERS_MAX

RETRY_MS = 50
"""How long those in line wait when the disk is too far behind to lease anything."""


class Grouping:
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
        self._lines = Lines()
        self._news: dict[Key, None] = {}
        """What to serve at the next flush."""
        self._placing = Placing()
        self._committing = Committing()
        self._turns = 0
        self._grouped: set[int] = set()
        """All logs with groups, and some that had one lately."""
        self._waiting_over = False

    def resume(self) -> None:
        """After a recovery: what has groups has them."""
        self._grouped = {log.log_id for log in self._machine.logs.values() if log.has_groups}

    # ---- looking

    def state(self, topic: str, group: str, partition: int = 0) -> GroupState:
        """A group in one partition; `GroupNotFound` when it never came there."""
        found, log, known = find_group(self._machine, GroupCommand(topic, group), partition, self._now_ms())
        return self._committing.told((log.log_id, group), state_of(log, known, found.config))

    def topics(self) -> list[str]:
        """Names of topics that have groups, in order."""
        logs = [self._machine.logs.get(log_id) for log_id in self._grouped]
        self._grouped = {log.log_id for log in logs if log is not None and len(log.groups)}
        return sorted({self._machine.logs[log_id].topic for log_id in self._grouped})

    def list(self, topic: str) -> list[GroupState]:
        """All groups of a topic, by name and partition."""
        states = []
        now_ms = self._now_ms()
        for partition in range(self._machine.topic(topic).config.partitions):
            found, log = find_log(self._machine, topic, partition, now_ms)
            for group in log.groups if log.has_groups else ():
                observe(log, group, now_ms)
                states.append(self._committing.told((log.log_id, group.name), state_of(log, group, found.config)))
        return sorted(states, key=lambda state: (state.group, state.partition))

    def waiting_count(self) -> int:
        """Consumes that wait for records."""
        return sum(waiter.stream is None for waiter in self._lines.all_waiters())

    def stream_count(self) -> int:
        return self._lines.stream_count()

    # ---- consumes

    def consume(self, command: Consume, wait_ms: int = 0) -> Ticket:
        """Records for one consumer; the ticket's reply is a `GroupBatch`. With `wait_ms`, waits so long for some."""
        key = self._key(command)
        wait_ms = self._wait_ms(wait_ms)
        if not wait_ms or not self._lines.count(key):
            batch, ticket = self._hand_out(command, key)
            if batch.last_seq or not wait_ms:
                return ticket
        answer = Ticket()
        until_ms = self._now_ms() + wait_ms
        self._wait(Waiter((command,), (key,), until_ms, lambda found: answer.resolve(found[0]), answer.fail, answer))
        return answer

    def consume_anywhere(self, command: Consume, wait_ms: int = 0) -> Ticket:
        """The same of any partition of the topic, each having its turn."""
        count = self._machine.topic(command.topic).config.partitions
        if count == 1:
            return self.consume(replace(command, partition=0), wait_ms)
        commands = [replace(command, partition=partition) for partition in range(count)]
        answer = Ticket()
        self._consume_several(commands, wait_ms, 1, answer, lambda batches: answer.resolve(batches[0]))
        return answer

    def consume_any(self, commands: Sequence[Consume], wait_ms: int = 0) -> Ticket:
        """The same for several partitions at once, or several groups: the ticket's reply is a tuple of those that had
        something, together no more records than the first one's limit."""
        answer = Ticket()
        self._consume_several(commands, wait_ms, len(commands), answer, answer.resolve)
        return answer

    def _consume_several(
        self,
        commands: Sequence[Consume],
        wait_ms: int,
        batches_max: int,
        answer: Ticket,
        answered: Callable[[Batches], None],
    ) -> None:
        for command in commands:
            check_consume(command)
        keys = tuple(self._key(command) for command in commands)
        self._place(commands, keys)
        waiter = Waiter(tuple(commands), keys, 0, answered, answer.fail, answer, batches_max=batches_max)
        if self._try(waiter, self._now_ms()):
            return
        if wait_ms := self._wait_ms(wait_ms):
            waiter.until_ms = self._now_ms() + wait_ms
            self._wait(waiter)
        else:
            together(self._placing.of(keys), None).on_done(lambda done: self._give_up_or_fail(waiter, done))

    def _place(self, commands: Sequence[Consume], keys: Sequence[Key]) -> None:
        """The first contact with several partitions is one with all of them, whichever has something to hand out."""
        for command, key in zip(commands, keys, strict=True):
            if not self._is_known(key):
                start = command.start or EARLIEST
                place = ResetGroup(command.topic, command.group, start, command.partition)
                self._placing.follow(key, self._add(self._machine.step(place, self._now_ms())))

    def _give_up_or_fail(self, waiter: Waiter, done: Ticket) -> None:
        if done.error is not None:
            waiter.failed(done.error)
        else:
            self._give_up(waiter)

    def _wait_ms(self, wait_ms: int) -> int:
        return 0 if self._waiting_over else max(0, min(wait_ms, CLAIM_WAIT_MS_MAX))

    def _key(self, command: Consume) -> Key:
        log = self._machine.log(self._machine.topic(command.topic), command.partition)
        self._check(log.log_id)
        return log.log_id, command.group

    def _hand_out(self, command: Consume, key: Key) -> tuple[GroupBatch, Ticket]:
        """Decide a consume now; its ticket is done when the claim, and where the group began, are safe."""
        is_new = not self._is_known(key)
        outcome = self._machine.step(command, self._now_ms())
        assert isinstance(outcome.reply, GroupBatch)
        batch = outcome.reply = self._committing.told(key, outcome.reply)
        if not (batch.last_seq or outcome.facts or outcome.moves or is_new):
            return batch, self._placing.before(key, Ticket(batch, done=True))
        ticket = self._add(outcome)
        if is_new:
            self._placing.follow(key, ticket)
            return batch, ticket
        return batch, self._placing.before(key, ticket)

    def _is_known(self, key: Key) -> bool:
        log = self._machine.logs.get(key[0])
        return log is not None and log.has_groups and log.groups.get(key[1]) is not None

    def _wait(self, waiter: Waiter) -> None:
        if max(map(self._lines.count, waiter.keys)) >= CLAIMERS_MAX:
            raise Throttled(
                f'{CLAIMERS_MAX} consumers wait for records of "{waiter.commands[0].topic}"; try again',
                limit="claimers",
                retry_after_ms=1000,
            )
        self._join(waiter)
        self._wanted()

    def cancel(self, ticket: Ticket) -> bool:
        """Whoever asked is gone. Nothing is handed to it any more, and what was a moment ago is given back when the
        ticket is done; whether it was still in line, and the ticket never will be."""
        for waiter in self._lines.all_waiters():
            if waiter.ticket is ticket:
                self._lines.leave(waiter)
                return True
        ticket.on_done(self._give_back)
        return False

    def _give_back(self, ticket: Ticket) -> None:
        if ticket.error is None:
            for batch in ticket.reply if isinstance(ticket.reply, tuple) else (ticket.reply,):
                assert isinstance(batch, GroupBatch)
                self._release(batch)

    def _release(self, batch: GroupBatch) -> None:
        """Let others have what was handed out, as far as it is still held."""
        topic = self._machine.topics.get(batch.topic)
        if topic is None or not batch.claim_id:
            return
        if self._is_known((topic.first_log_id + batch.partition, batch.group)):
            command = NackGroup(batch.topic, batch.group, partition=batch.partition, claim_id=batch.claim_id)
            self._add(self._machine.step(command, self._now_ms()))

    # ---- acks

    def settle(self, command: AckGroup | NackGroup) -> Ticket:
        """Records that are done, or given back. What an ack did is told to nobody else before it is safe."""
        outcome = self._machine.step(command, self._now_ms())
        assert outcome.log is not None
        key = outcome.log.log_id, command.group
        if isinstance(outcome.reply, NackedGroup):
            outcome.reply = self._committing.told(key, outcome.reply)
            return self._add(outcome)
        ticket = self._add(outcome)
        self._committing.follow(key, outcome.before_seq, ticket)
        if outcome.group_created:
            self._placing.follow(key, ticket)
        return ticket

    # ---- streams

    def open(
        self,
        command: Consume,
        claims_max: int,
        deliver: Callable[[GroupBatch], None],
        ended: Callable[[TopicsError], None],
    ) -> Stream:
        """Push batches to a consumer from now on, at most `claims_max` that it has not acked at a time."""
        key = self._key(command)
        stream = Stream(command, key[0], claims_max, deliver, ended)
        stream.close = lambda: self._close(stream)
        stream.pause = lambda: self._pause(stream)
        stream.resume = lambda: self._resume(stream)
        self._lines.add_stream(key, stream)
        self._note(key)
        return stream

    def _close(self, stream: Stream) -> None:
        if not stream.is_open:
            return
        stream.is_open = False
        self._lines.remove_stream((stream.log_id, stream.command.group), stream)
        for batch in stream.claims:
            self._release(batch)

    def _pause(self, stream: Stream) -> None:
        stream.is_paused = True
        if stream.place is not None:
            self._lines.leave(stream.place)

    def _resume(self, stream: Stream) -> None:
        stream.is_paused = False
        if stream.is_open:
            self._note((stream.log_id, stream.command.group))

    def _rejoin(self, key: Key, now_ms: int) -> None:
        """Put streams that have room in line."""
        for stream in self._lines.streams(key):
            if stream.is_paused or stream.is_served or stream.place is not None:
                continue
            stream.claims = [batch for batch in stream.claims if self._holds(key, batch, now_ms)]
            if len(stream.claims) < stream.claims_max:
                deliver = _deliver_to(stream, self._delivered)
                place = Waiter((stream.command,), (key,), FOREVER_MS, deliver, stream.ended, stream=stream)
                stream.place = place
                self._join(place)

    def _holds(self, key: Key, batch: GroupBatch, now_ms: int) -> bool:
        """Whether a claim is still alive, or a part of it."""
        log = self._machine.logs.get(key[0])
        group = log.groups.get(key[1]) if log is not None else None
        if group is None:
            return False
        token = parse_claim_id(batch.claim_id)
        ranges = group.ranges.between(batch.first_seq, batch.last_seq)
        claims = [(each.token, each.due_ms) for each in ranges] + [(loss.token, loss.due_ms) for loss in group.losses]
        return any(each == token and due_ms > now_ms for each, due_ms in claims)

    def _delivered(self, stream: Stream, batch: GroupBatch) -> None:
        stream.is_served = False
        if not stream.is_open:
            self._release(batch)
            return
        stream.claims.append(msgspec.structs.replace(batch, body=b""))
        stream.deliver(batch)
        # In line again only now: it may have had enough, and said so.
        self._note((stream.log_id, stream.command.group))

    # ---- news and time

    def note(self, log: Log) -> None:
        """Something about a log or its groups changed that those in line may be waiting for."""
        self._grouped.add(log.log_id)
        for group in self._lines.groups_of(log.log_id):
            self._note((log.log_id, group))

    def _note(self, key: Key) -> None:
        if key not in self._news:
            self._news[key] = None
            self._wanted()

    def changed(self, command: AnyGroupCommand, log_ids: Iterable[int], ticket: Ticket) -> None:
        """A group was dropped, reset, paused or resumed, which is safe when the ticket is done."""
        for log_id in log_ids:
            key = log_id, command.group
            if isinstance(command, DropGroup):
                error = GroupNotFound(
                    f'group "{command.group}" of topic "{command.topic}" was dropped',
                    topic=command.topic,
                    group=command.group,
                )
                self._end(key, error)
                continue
            if isinstance(command, ResetGroup):
                self._placing.follow(key, ticket)
            if self._lines.is_followed(key):
                self._note(key)

    def serve(self) -> None:
        """Serve those that there was news for."""
        if not self._news:
            return
        news, self._news = self._news, {}
        now_ms = self._now_ms()
        for key in news:
            self._serve(key, now_ms)

    def tick(self) -> None:
        now_ms = self._now_ms()
        while (due := self._lines.take_due(now_ms)) is not None:
            key, waiter = due
            if key is not None:
                self._serve(key, now_ms)
            elif waiter is not None and not self._try(waiter, now_ms):
                self._give_up(waiter)

    def next_deadline_ms(self) -> int | None:
        return self._lines.next_deadline_ms()

    def dropped(self, log_ids: Iterable[int]) -> None:
        """Topics are gone, and nobody will get anything from them."""
        for log_id in log_ids:
            for group in self._lines.groups_of(log_id):
                names = [each.commands[0].topic for each in self._lines.waiters((log_id, group))]
                names += [each.command.topic for each in self._lines.streams((log_id, group))]
                self._end((log_id, group), TopicNotFound(f'topic "{names[0]}" was deleted', topic=names[0]))

    def end_waiting(self) -> None:
        """Answer everybody who waits with what there is; from now on nobody waits."""
        self._waiting_over = True
        for waiter in self._lines.all_waiters():
            if waiter.stream is None:
                self._give_up(waiter)

    # ---- one line

    def _serve(self, key: Key, now_ms: int) -> None:
        log = self._machine.logs.get(key[0])
        if log is None:
            return
        self._rejoin(key, now_ms)
        while (waiter := self._lines.first(key)) is not None and self._try(waiter, now_ms):
            pass
        self._wake_in_time(key, now_ms)

    def _wake_in_time(self, key: Key, now_ms: int) -> None:
        """Look again when a claim of the group runs out, if somebody is there for it."""
        log = self._machine.logs[key[0]]
        group = log.groups.get(key[1]) if log.has_groups and self._lines.is_followed(key) else None
        due_ms = group.next_due_ms(now_ms) if group is not None else None
        if due_ms is not None:
            self._lines.wake_at(key, due_ms)

    def _try(self, waiter: Waiter, now_ms: int) -> bool:
        """Give a waiter what there is; whether it is not in line any more."""
        found: list[tuple[GroupBatch, Ticket]] = []
        room = waiter.commands[0].limit
        self._turns += 1
        for at in range(len(waiter.commands)):
            place = (at + self._turns) % len(waiter.commands)
            command, key = waiter.commands[place], waiter.keys[place]
            try:
                self._check(key[0])
                batch, ticket = self._hand_out(replace(command, limit=room), key)
            except Throttled:
                self._lines.wake_at(key, now_ms + RETRY_MS)
                break
            except TopicsError as error:
                if not found:
                    self._fail(waiter, error)
                    return True
                break
            if batch.last_seq:
                found.append((batch, ticket))
                room -= batch.count
            if room <= 0 or len(found) == waiter.batches_max:
                break
        if not found:
            return False
        self._lines.leave(waiter)
        if waiter.stream is not None:
            waiter.stream.is_served = True
        found.sort(key=lambda each: each[0].partition)
        batches = tuple(batch for batch, _ in found)
        tickets = [*self._placing.of(waiter.keys), *(ticket for _, ticket in found)]
        together(tickets, batches).on_done(lambda done: _answer(waiter, done))
        return True

    def _join(self, waiter: Waiter) -> None:
        self._lines.join(waiter)
        for key in waiter.keys:
            self._wake_in_time(key, self._now_ms())

    def _give_up(self, waiter: Waiter) -> None:
        self._lines.leave(waiter)
        command, (log_id, name) = waiter.commands[0], waiter.keys[0]
        log = self._machine.logs.get(log_id)
        if log is None:
            # Where its group begins was not safe yet when the topic went.
            waiter.failed(TopicNotFound(f'topic "{command.topic}" was deleted', topic=command.topic))
            return
        group = log.groups.get(name)
        nothing = GroupBatch(
            topic=command.topic,
            partition=command.partition,
            group=name,
            consumer=command.consumer,
            committed_seq=self._committing.safe_seq((log_id, name), group.committed) if group is not None else 0,
            head_seq=log.visible_seq,
            paused=group.paused if group is not None else False,
        )
        waiter.answered((nothing,))

    def _fail(self, waiter: Waiter, error: TopicsError) -> None:
        self._lines.leave(waiter)
        if waiter.stream is not None:
            waiter.stream.is_open = False
            self._lines.remove_stream(waiter.keys[0], waiter.stream)
        waiter.failed(error)

    def _end(self, key: Key, error: TopicsError) -> None:
        """Nobody will get anything from this group."""
        for waiter in self._lines.waiters(key):
            if waiter.stream is None:
                self._fail(waiter, error)
        for stream in self._lines.streams(key):
            stream.is_open = False
            self._lines.remove_stream(key, stream)
            stream.ended(error)


def _answer(waiter: Waiter, done: Ticket) -> None:
    if done.error is not None:
        waiter.failed(done.error)
    else:
        assert isinstance(done.reply, tuple)
        waiter.answered(done.reply)


def _deliver_to(stream: Stream, delivered: Callable[[Stream, GroupBatch], None]) -> Callable[[Batches], None]:
    return lambda batches: delivered(stream, batches[0])
