"""First contacts of groups that are not durable yet: nobody is answered before it is safe where a group began."""

from __future__ import annotations

from collections.abc import Sequence

from topics.engine.groupline import Key
from topics.engine.ticket import Ticket


class Placing:
    def __init__(self) -> None:
        self._tickets: dict[Key, Ticket] = {}

    def follow(self, key: Key, ticket: Ticket) -> None:
        """A group was placed there, which is safe when the ticket is done."""
        if not ticket.done:
            self._tickets[key] = ticket
            ticket.on_done(lambda done: self._forget(key, done))

    def _forget(self, key: Key, ticket: Ticket) -> None:
        # The group may have been dropped and placed anew meanwhile.
        if self._tickets.get(key) is ticket:
            del self._tickets[key]

    def of(self, keys: Sequence[Key]) -> Sequence[Ticket]:
        return [self._tickets[key] for key in keys if key in self._tickets]

    def before(self, key: Key, ticket: Ticket) -> Ticket:
        """The same ticket, not done before it is safe where the group began."""
        placing = self._tickets.get(key)
        return ticket if placing is None else together((placing, ticket), ticket.reply)


def together(tickets: Sequence[Ticket], reply: object) -> Ticket:
    """A ticket that is done when all of these are; it fails with the first that does."""
    if all(ticket.done and ticket.error is None for ticket in tickets):
        return Ticket(reply, done=True)
    joined = Ticket()
    waiting = len(tickets)

    def done(part: Ticket) -> None:
        nonlocal waiting
        waiting -= 1
        if part.error is not None:
            joined.fail(part.error)
        elif not waiting:
            joined.written_ns = part.written_ns
            joined.resolve(reply)

    for ticket in tickets:
        ticket.on_done(done)
    return joined
