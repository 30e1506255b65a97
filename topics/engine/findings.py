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
