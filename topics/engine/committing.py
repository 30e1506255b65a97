"""Acks of groups that are not safe yet: until they are, others are told where the group was before them."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from topics.engine.groupline import Key
from topics.engine.ticket import Ticket
from topics.groupmodel import GroupBatch, GroupState, NackedGroup

Telling = TypeVar("Telling", GroupBatch, GroupState, NackedGroup)


class Committing:
    def __init__(self) -> None:
        self._befores: dict[Key, dict[int, int]] = {}
        """Of each ack on its way, in their order: the committed seq before it."""
        self._count = 0

    def follow(self, key: Key, before_seq: int, ticket: Ticket) -> None:
        """An ack was decided, which is safe when the ticket is done."""
        if not ticket.done:
            self._count += 1
            number = self._count
            self._befores.setdefault(key, {})[number] = before_seq
            ticket.on_done(lambda done: self._forget(key, number))

    def _forget(self, key: Key, number: int) -> None:
        befores = self._befores[key]
        del befores[number]
        if not befores:
            del self._befores[key]

    def safe_seq(self, key: Key, committed_seq: int) -> int:
        """The committed seq as it may be told."""
        befores = self._befores.get(key)
        # A reset may have put the group further back than any of them.
        return committed_seq if befores is None else min(committed_seq, next(iter(befores.values())))

    def told(self, key: Key, telling: Telling) -> Telling:
        """The same with a committed seq that may be told."""
        safe_seq = self.safe_seq(key, telling.committed_seq)
        if safe_seq == telling.committed_seq:
            return telling
        return msgspec.structs.replace(telling, committed_seq=safe_seq)
