"""Fences: what stays known of a producer for good, so that nothing it wrote is taken twice.

A producer numbers its writes (id, epoch, sequence) or its batches (id, epoch). Its newest epoch and its newest write or
batch are kept until an operator forgets the producer: an older epoch stays refused, and a repeat of the newest write
gets the first answer, however long the producer was away.

Programs that make a new id for each of their lives would fill the table. Their ids begin with `~`: one-off ids, which
nobody uses again after a crash. They are remembered for a day, like the answers to older writes.
"""

from __future__ import annotations

import msgspec

from topics.core.names import shorten
from topics.errors import TooManyProducers
from topics.producermodel import ONE_OFF_MARK, ProducerState


def is_one_off(producer_id: str) -> bool:
    return producer_id.startswith(ONE_OFF_MARK)


class Fence(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An epoch of a producer, and where one write went: of one that was silent for a day, the newest of each."""

    epoch: int
    sequence: int
    first_seq: int
    count: int
    ts: int

    def write(self, sequence: int, now_ms: int) -> Fence | None:
        """One write, if it is remembered, as it is for good."""
        return self if sequence == self.sequence else None


def state_of(producer_id: str, epoch: int, sequence: int | None, last_used_ts: int) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        epoch=epoch,
        sequence=sequence,
        last_used_ts=last_used_ts,
        one_off=is_one_off(producer_id),
    )


def no_room(producer_id: str, who: str, most: int, command: str) -> TooManyProducers:
    """What a producer is told that is new where as many as may be are remembered for good."""
    return TooManyProducers(
        f'producer "{shorten(producer_id)}" is new and {who} remembers {most} producers, the maximum; forget producers '
        f'that are no longer used ({command}), or begin ids that are used only once with "{ONE_OFF_MARK}"',
        producer_id=producer_id,
        max=most,
    )
