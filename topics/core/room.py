"""Whether there is room for more: in a topic that refuses when it is full, and in all topics together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from topics.errors import RecordTooLarge, Throttled, TopicFull
from topics.model import Discard, TopicConfig

if TYPE_CHECKING:
    from topics.core.log import Log

# Looking a member up in its enum takes several times as long as comparing it: named once for the path of every write.
_REJECT: Final = Discard.REJECT


class Load(Protocol):
    """What wants in."""

    count: int
    payload_bytes: int


def check_total(bytes_max: int, held_bytes: int, load: Load) -> None:
    """All topics together may hold `bytes_max`; 0 is no bound."""
    if bytes_max and held_bytes + load.payload_bytes > bytes_max:
        raise Throttled(
            f"all topics together may hold {bytes_max} bytes; delete records, or raise TOPICS_MAX_TOTAL_BYTES",
            limit="max_total_bytes",
            max=bytes_max,
        )


def check_caps(name: str, config: TopicConfig, log: Log | None, load: Load) -> None:
    """A topic that refuses when full has room for these."""
    if config.discard is not _REJECT:
        return
    size = load.payload_bytes
    caps = {"cap_records": config.cap_records, "cap_bytes": config.cap_bytes}
    if 0 < config.cap_records < load.count or 0 < config.cap_bytes < size:
        records, less = ("1 record", "") if load.count == 1 else (f"{load.count} records", "write less at once, or ")
        raise RecordTooLarge(
            f'a write of {records} and {size} bytes is larger than all that topic "{name}" may hold; '
            f"{less}raise its cap",
            **caps,
        )
    count = load.count + (log.count if log else 0)
    size += log.bytes if log else 0
    if 0 < config.cap_records < count or 0 < config.cap_bytes < size:
        raise TopicFull(
            f'topic "{name}" is full; delete records, or raise its cap',
            **caps,
            head_seq=log.head_seq if log else 0,
            earliest_seq=log.earliest_seq() if log else 1,
        )
