"""What a statement needs of whoever asks: scopes, and names it may touch. Every name in a statement is one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from topics.pipelinemodel import names_of, own_name, place_in
from topics.sql import query
from topics.sql.pipelinestatements import (
    CreatePipeline,
    DescribePipeline,
    DescribeTable,
    DropPipeline,
    PausePipeline,
    RegisterTable,
    UnregisterTable,
)
from topics.sql.statements import (
    AckGroup,
    AddSource,
    AlterTopic,
    ClearTopic,
    Consume,
    CreateTopic,
    Describe,
    DropGroup,
    DropSource,
    DropTopic,
    Explain,
    ExtendGroup,
    Insert,
    NackGroup,
    PauseGroup,
    ResetGroup,
    Select,
    Show,
    Statement,
)

READ = frozenset({"read"})
WRITE = frozenset({"write"})
CONSUME = READ | WRITE
ADMIN = frozenset({"admin"})
DELETE = frozenset({"delete"})

NAMED_OPTIONS = ("alias", "dead_letter")
"""Options that name another topic."""


@dataclass(frozen=True, slots=True)
class Need:
    scopes: frozenset[str]
    names: tuple[tuple[str, str], ...]
    """What each name is, and the name."""
    place: str = ""
    """The field that says where a runner reads or writes; empty when none does."""


def needs(statement: Statement) -> Need:
    match statement:
        case CreateTopic() | AlterTopic():
            said = dict(statement.options)
            others = [(field, str(said[field])) for field in NAMED_OPTIONS if said.get(field) is not None]
            return Need(ADMIN, (("topic", statement.topic), *others))
        case AddSource() | DropSource():
            return Need(ADMIN, (("topic", statement.topic), ("table", statement.table)))
        case RegisterTable():
            return Need(ADMIN, (("table", statement.table),), "location")
        case UnregisterTable():
            return Need(ADMIN, (("table", statement.table),))
        case DescribeTable():
            return Need(READ, (("table", statement.table),))
        case CreatePipeline():
            names = (("pipeline", statement.pipeline), *names_of(statement.config))
            return Need(ADMIN, names, place_in(statement.config))
        case DropPipeline() | PausePipeline():
            return Need(ADMIN, (("pipeline", own_name(statement.pipeline)),))
        case DescribePipeline():
            return Need(READ, (("pipeline", own_name(statement.pipeline)),))
        case DropTopic():
            return _on(statement.topic, ADMIN | DELETE)
        case ClearTopic():
            return _on(statement.topic, DELETE)
        case Insert():
            return _on(statement.topic, WRITE)
        case Consume():
            return _on(statement.topic, READ if statement.group is None else CONSUME)
        case AckGroup() | NackGroup() | ExtendGroup() | PauseGroup() | ResetGroup() | DropGroup():
            return _on(statement.topic, CONSUME)
        case Show():
            return _on(statement.topic, READ) if statement.topic is not None else Need(READ, ())
        case Describe():
            return _on(statement.topic, READ)
        case Select():
            found = query.tables(query.parse(statement.text))
            return Need(READ, tuple(("topic", table.name) for table in found if not table.system))
        case Explain():
            inside = needs(statement.statement)
            return Need(READ, inside.names)
        case _:
            assert_never(statement)


def _on(topic: str, scopes: frozenset[str]) -> Need:
    return Need(scopes, (("topic", topic),))
