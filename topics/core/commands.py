"""What a caller can ask for that changes state. Each is checked and decided by `core/machine.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from topics.core.dedupe import DedupeKey
from topics.core.match import Match
from topics.core.records import Records


@dataclass(frozen=True, slots=True)
class Configure:
    """Create a topic, or change its config. `merge` keeps what `fields` does not name."""

    topic: str
    fields: Mapping[str, object]
    merge: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    topic: str
    if_empty: bool = False


class Append(msgspec.Struct, frozen=True):
    """A struct and not a dataclass because it is made for each write, and making one takes a tenth of the time."""

    topic: str
    records: Records
    partition: int = 0
    dedupe_key: DedupeKey | None = None
    create: bool | None = None
    config: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    topic: str
    partition: int = 0
    before_seq: int | None = None
    match: Match | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """Put records aside for a topic: durable, invisible, and gone at their expiry unless published."""

    stage: str
    topic: str
    records: Records
    partition: int = 0


@dataclass(frozen=True, slots=True)
class Publish:
    """Make several stages visible in one commit, once for each (producer, epoch)."""

    stages: tuple[str, ...]
    producer_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Abort:
    stages: tuple[str, ...]


Command = Configure | Drop | Append | Delete | Stage | Publish | Abort
