"""What a check of a data directory found, and what a repair did about it: plain values, for people and programs."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from topics.errors import Damaged, NotUnderstood
from topics.model import Reason


class Kind(StrEnum):
    WAL = "wal"
    SEGMENT = "segment"
    MARKS = "marks"
    INDEX = "index"
    SNAPSHOT = "snapshot"
    TOPIC = "topic"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is not as it was written."""

    kind: Kind
    file: str
    offset: int
    message: str
    todo: str
    """What a repair does about it."""
    topic: str | None = None
    partition: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None
    """The seqs at risk, as far as the damage itself tells."""


class Lost(msgspec.Struct, frozen=True):
    """Seqs that a repair gives up: readers get a tombstone for exactly this range."""

    topic: str
    partition: int
    gap_from: int
    gap_to: int
    reason: Reason = Reason.DAMAGE


class Doubt(StrEnum):
    """What of a log or topic may be as it was at an earlier moment."""

    RECORDS = "records"
    """Records of a range that were deleted, done or expired may be back."""
    PROGRESS = "progress"
    """Leases, deliveries, moves, positions of groups and routers: records may be handed out or copied again."""
    ANSWERS = "answers"
    """Writes and publishes that were answered may be taken once more when they are repeated."""
    TOPIC = "topic"
    """The config, the routers into it, or that the topic is there at all: it may have been dropped."""


class MayBeBack(msgspec.Struct, frozen=True):
    """What a repair cannot know: users may meet something again that was over."""

    topic: str
    partition: int
    doubt: Doubt
    first_seq: int
    last_seq: int


class Kept(msgspec.Struct, frozen=True):
    """What a log still holds."""

    topic: str
    partition: int
    records: int
    earliest_seq: int
    head_seq: int


class FsckReport(msgspec.Struct):
    directory: str
    last_stop: str = "unknown"
    files: int = 0
    bytes: int = 0
    findings: list[Finding] = msgspec.field(default_factory=list)
    lost: list[Lost] = msgspec.field(default_factory=list)
    may_be_back: list[MayBeBack] = msgspec.field(default_factory=list)
    """What may be there again although it was deleted, done, expired or answered; nothing else is."""
    kept: list[Kept] = msgspec.field(default_factory=list)
    notes: list[str] = msgspec.field(default_factory=list)
    """What is worth knowing and no damage: a torn tail, files that the next start removes."""
    set_aside: list[str] = msgspec.field(default_factory=list)
    """Copies of the damaged files, made before the repair."""
    repaired: bool = False
    report_file: str | None = None

    @property
    def clean(self) -> bool:
        return not self.findings


class Findings:
    """Gathers what a check comes across."""

    def __init__(self) -> None:
        self.items: list[Finding] = []
        self.notes: list[str] = []

    def add(self, kind: Kind, damage: Damaged, todo: str) -> None:
        """Raises what is whole and not understood: to mend it would lose what it says."""
        if isinstance(damage, NotUnderstood):
            raise damage
        detail = damage.detail
        self.items.append(
            Finding(
                kind,
                str(detail.get("file", "")),
                int(detail.get("offset") or 0),
                damage.message,
                todo,
                detail.get("topic"),
                detail.get("partition"),
                detail.get("first_seq"),
                detail.get("last_seq"),
            )
        )
