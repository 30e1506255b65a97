"""What retention may not take yet: records that a holder still needs.

A **holder** is whoever has to have a record before a cap or a TTL may evict it. There are two kinds:

    archives   with `protect_unarchived`: every archive that ever reported its progress; none yet means all is needed
    groups     with `protect_groups`: the groups named there; one that has not come yet needs all

A log keeps for each holder the first seq it still needs (`Holds`), and retention stops at the lowest of those. That is
bounded: what is kept only for holders is given up, oldest first, once the partition holds more than
`protect_max_bytes`. Then readers get the usual tombstone, and `overrun_count` says how many records were taken from
holders that needed them: the state of the topic, a metric and a line in the log of the server tell of it.

A new kind of holder adds its part to `needed_from`, keeps its number in `log.holds` up to date wherever its own facts
are applied or its image is restored, and nothing else. Its numbers are derived from its own state and are not stored
here. One rule: a number that goes *back* (a reset) changes what a replay would find expired, so `FloorsMoved` is stored
first when `log.floors_unstored`, as a delete does. Going forward needs nothing.

Deleting is not retention: whoever deletes or erases takes from holders as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from topics.core import live
from topics.core.facts import Archived, ArchiveDropped, ArchiveFact
from topics.model import TopicConfig

if TYPE_CHECKING:
    from topics.core.log import Log


@dataclass(frozen=True, slots=True)
class Archive:
    """How far an archive has come in one partition, and where it is."""

    upto_seq: int
    location: str
    at_ms: int


@dataclass(slots=True)
class Holds:
    """Who needs what of one log."""

    archives: dict[str, Archive] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    """By name, the first seq that the group has not acked."""
    overrun_count: int = 0
    """Records that retention took although a holder needed them, since the process started."""

    def apply(self, fact: ArchiveFact) -> None:
        match fact:
            case Archived():
                self.archives[fact.archive] = Archive(fact.upto_seq, fact.location, fact.at_ms)
            case ArchiveDropped():
                self.archives.pop(fact.archive, None)
            case _:
                assert_never(fact)


NOBODY = Holds()
"""Of a log that never had a holder."""


def protects(config: TopicConfig) -> bool:
    return config.protect_unarchived or bool(config.protect_groups)


def needed_from(log: Log, config: TopicConfig) -> int:
    """The first seq that some holder needs; behind the head when there is none."""
    holds = log.holds if log.has_holders else NOBODY
    needed = log.next_seq
    if config.protect_unarchived:
        needed = min(needed, min((archive.upto_seq for archive in holds.archives.values()), default=0) + 1)
    for group in config.protect_groups:
        needed = min(needed, holds.groups.get(group, 0))
    return needed


def over_bytes(log: Log, config: TopicConfig) -> int:
    """How much more a log holds than it may keep for holders; negative while there is room."""
    return log.bytes - config.protect_max_bytes


def all_held(log: Log, config: TopicConfig) -> bool:
    """Whether retention has nothing to look for: all that is there is needed, and there is room for it."""
    return needed_from(log, config) <= log.low and over_bytes(log, config) <= 0


def allowed(log: Log, config: TopicConfig, wanted: int) -> int:
    """How far retention may go, when it would evict everything below `wanted`. Costs what lies below that."""
    needed = needed_from(log, config)
    if wanted <= needed:
        return wanted
    over = over_bytes(log, config)
    if over <= 0:
        return max(needed, log.low)
    if live.live_between(log, log.low, wanted)[1] <= over:
        return wanted
    return max(needed, live.pass_live(log, 0, over)[0])
