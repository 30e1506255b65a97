"""One `Settle`: acks, nacks and extends of leased messages, decided together, with one answer.

A lease that is not there any more is named in the answer and does not keep the others from being settled. Nacks that
rest for the same time for the same reason are one command, and so are extensions of the same length; what is more than
one command may name becomes several, between which the loop does other work. A time that is refused is found before
the first of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from topics.core.heapcommands import AckMessages, ExtendLeases, NackMessages
from topics.core.heapsettle import check_ms
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import LeaseLost, TopicsError
from topics.heapmodel import AckedMessages, ExtendedLeases, LeaseRef, NackedMessages
from topics.proto import messages as proto
from topics.server.grpc import values

LOST: Final = LeaseLost.grpc_code

Command = AckMessages | NackMessages | ExtendLeases


class Settling:
    def __init__(self, topic: str, settle: Any, most: int) -> None:
        self._commands = list(commands(topic, settle, most))
        self._begun = False
        self._waiting = 0
        self._error: TopicsError | None = None
        self._done = asyncio.Event()
        self._answer = proto.Settled(number=settle.number)

    async def begin(self, host: Host, news: Callable[[], None] = lambda: None) -> None:
        """Decide everything; `news` is called when that is durable."""
        for number, (command, places) in enumerate(self._commands):
            if number:
                await asyncio.sleep(0)
            self._waiting += 1
            try:
                ticket = await host.admit(command)
            except TopicsError as error:
                self._waiting -= 1
                self._error = self._error or error
            else:
                ticket.on_done(partial(self._settled, places, news))
        self._begun = True
        if self.is_done:
            self._done.set()
            news()

    def _settled(self, places: Sequence[int], news: Callable[[], None], ticket: Ticket) -> None:
        self._waiting -= 1
        self._note(ticket, places)
        if self.is_done:
            self._done.set()
            news()

    @property
    def is_done(self) -> bool:
        return self._begun and not self._waiting

    def answer(self) -> Any:
        """What came of it; raises when it could not be carried out."""
        if self._error is not None:
            raise self._error
        return self._answer

    async def answered(self) -> Any:
        """The answer, once there is one."""
        await self._done.wait()
        return self.answer()

    def _note(self, ticket: Ticket, places: Sequence[int]) -> None:
        if ticket.error is not None:
            self._error = self._error or ticket.error
            return
        reply = ticket.result()
        answer = self._answer
        match reply:
            case AckedMessages():
                answer.acked += reply.acked
            case NackedMessages():
                answer.nacked += reply.nacked
                answer.dead_lettered += reply.dead_lettered
            case ExtendedLeases():
                answer.extended += reply.extended
                first_ms = values.moment_ms(answer.lease_deadline) or reply.lease_deadline_ms
                answer.lease_deadline.CopyFrom(values.timestamp(min(first_ms, reply.lease_deadline_ms)))
            case _:
                raise AssertionError(f"{reply} settles nothing")
        for lost in reply.lost:
            place = places[lost.place]
            answer.refused.add(message_id=lost.message_id, code=LOST, message=lost.reason, place=place)


def commands(topic: str, settle: Any, most: int) -> Iterator[tuple[Command, Sequence[int]]]:
    """Each names `most` leases at most, and comes with the places that they have in the settle."""
    acks = [LeaseRef(lease.lease_token, lease.message_id) for lease in settle.acks]
    for first in range(0, len(acks), most):
        leases = acks[first : first + most]
        yield AckMessages(topic, leases, False), range(first, first + len(leases))
    nacks: dict[tuple[int | None, str, bool], list[int]] = {}
    for place, nack in enumerate(settle.nacks):
        backoff_ms = None
        if nack.HasField("backoff_override"):
            backoff_ms = _milliseconds("backoff_override", nack.backoff_override)
        nacks.setdefault((backoff_ms, nack.reason, nack.undelivered), []).append(place)
    for (backoff_ms, reason, undelivered), all_places in nacks.items():
        for places in _parts(all_places, most):
            leases = _leases(settle.nacks, places)
            yield NackMessages(topic, leases, backoff_ms, reason, undelivered, False), places
    extensions: dict[int, list[int]] = {}
    for place, each in enumerate(settle.extensions):
        extensions.setdefault(_milliseconds("extension", each.extension), []).append(place)
    for extension_ms, all_places in extensions.items():
        for places in _parts(all_places, most):
            yield ExtendLeases(topic, _leases(settle.extensions, places), extension_ms, False), places


def _parts(places: list[int], most: int) -> Iterator[list[int]]:
    return (places[first : first + most] for first in range(0, len(places), most))


def _milliseconds(field: str, duration: Any) -> int:
    found = values.milliseconds(field, duration)
    check_ms(found, field)
    return found


def _leases(many: Any, places: Sequence[int]) -> list[LeaseRef]:
    return [LeaseRef(many[place].lease_token, many[place].message_id) for place in places]
