"""Every statement as a frozen value: what was said, with parameters in place and nothing decided yet.

`grammar.py` makes them out of text, `printing.py` text out of them; one printed and read again is equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from topics.core.source import Operation, PayloadMode, RouteStart
from topics.groupmodel import Start
from topics.sql.pipelinestatements import CatalogStatement

Scalar = str | int | float | bool | None
Value = Scalar | tuple["Value", ...]
"""What stands behind an option: a literal, or several in parentheses."""


@dataclass(frozen=True, slots=True)
class Json:
    """The value of a record's column, as JSON text."""

    text: bytes


Cell = Json | str | None


@dataclass(frozen=True, slots=True)
class CreateTopic:
    topic: str
    options: tuple[tuple[str, Value], ...] = ()
    """As config fields: `PARTITIONS` and `ALIAS` among them."""
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTopic:
    topic: str
    options: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class AddSource:
    topic: str
    table: str
    operations: tuple[Operation, ...]
    where: str | None = None
    partition_by: str | None = None
    payload: PayloadMode = PayloadMode.KEY
    start: RouteStart | None = None
    """Where it begins; None goes on where one that is replaced is, and else begins now."""
    start_version: int = 0


@dataclass(frozen=True, slots=True)
class DropSource:
    topic: str
    table: str
    operations: tuple[Operation, ...] = ()
    """Empty is all of them."""


@dataclass(frozen=True, slots=True)
class DropTopic:
    topic: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ClearTopic:
    topic: str
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    topic: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    partition: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Consume:
    topic: str
    partition: int | None = None
    group: str | None = None
    consumer: str = ""
    start: Start | None = None
    limit: int | None = None
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class AckGroup:
    topic: str
    group: str
    upto: int
    partition: int = 0
    consumer: str = ""


@dataclass(frozen=True, slots=True)
class NackGroup:
    topic: str
    group: str
    upto: int
    since: int = 0
    """Only from this offset on."""
    partition: int = 0
    consumer: str = ""
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class ExtendGroup:
    topic: str
    group: str
    upto: int
    partition: int = 0
    consumer: str = ""
    visibility_ms: int | None = None
    """From now on; None is as long as the topic says."""


@dataclass(frozen=True, slots=True)
class PauseGroup:
    topic: str
    group: str
    paused: bool
    """False resumes it."""


@dataclass(frozen=True, slots=True)
class ResetGroup:
    topic: str
    group: str
    start: Start
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class DropGroup:
    topic: str
    group: str


class Shown(StrEnum):
    TOPICS = "TOPICS"
    GROUPS = "GROUPS"
    ROUTES = "ROUTES"
    TABLES = "TABLES"
    PIPELINES = "PIPELINES"


@dataclass(frozen=True, slots=True)
class Show:
    what: Shown
    topic: str | None = None
    """Only what is about this one."""
    like: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    topic: str


@dataclass(frozen=True, slots=True)
class Select:
    """A query, which DuckDB gets as it is, but for the names of its tables."""

    text: str
    parameters: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Explain:
    statement: Statement


Definition = CreateTopic | AlterTopic | AddSource | DropSource | DropTopic
GroupStatement = Consume | AckGroup | NackGroup | ExtendGroup | PauseGroup | ResetGroup | DropGroup
Statement = Definition | CatalogStatement | ClearTopic | Insert | GroupStatement | Show | Describe | Select | Explain
