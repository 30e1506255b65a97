"""Producers as an operator sees them: which are remembered, and which were forgotten."""

from __future__ import annotations

from typing import Final

import msgspec

ONE_OFF_MARK: Final = "~"
"""A producer id that begins with it is used by one process or one job, and never again."""


class ProducerState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A producer that the server remembers, so that nothing it writes is taken twice."""

    producer_id: str
    epoch: int
    """The newest one; older ones are refused."""
    sequence: int | None = None
    """The newest write of a producer of records; None for a producer of batches, which have epochs only."""
    last_used_ts: int
    one_off: bool = False
    """Whether it is forgotten after a day: ids that begin with `~` are used by one process or job only."""


class ProducerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Some producers, in order of their ids."""

    producers: tuple[ProducerState, ...]
    next_after: str = ""
    """Where the next page begins; empty on the last one."""


class ForgottenProducer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to forgetting a producer: whether it was remembered."""

    producer_id: str
    forgotten: bool
    topic: str | None = None
    """None for a producer of batches."""
