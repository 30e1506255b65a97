"""Statements that administer or destroy, in the audit log: a line for each before their text is run, and one behind it
that says what became of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from topics.core.names import shorten
from topics.errors import Internal, TopicsError
from topics.server.audit import BEGUN, DONE
from topics.server.auditing import conclude, note
from topics.server.configchanges import ConfigChanges, Kind
from topics.server.context import Context
from topics.server.message import Request
from topics.sqlengine.aside import aside

_PERHAPS: Final = re.compile(
    r"\b(?:CREATE|ALTER|DROP|DELETE|CLEAR|TRUNCATE|REGISTER|UNREGISTER|PAUSE|RESUME)\b", re.IGNORECASE
)
"""What such a statement begins with. A text without these words is not read twice."""
_NOTED: Final = frozenset({"admin", "delete"})
_DROPS: Final = ("Drop", "Unregister", "Clear")
NOT_BEGUN: Final = "not_begun"
"""What became of a statement behind one that failed."""

Done = Callable[[int], None]
"""Told the number of each statement that is done."""


@dataclass(slots=True)
class _Line:
    number: int
    action: str
    name: str
    kind: Kind
    outcome: str = NOT_BEGUN
    changes: ConfigChanges | None = None
    told: dict[str, object] | None = None


async def noted_statements(
    context: Context,
    request: Request,
    text: str,
    parameters: Sequence[object],
    work: Callable[[Done], Awaitable[Any]],
) -> Any:
    """Run a text between the lines of its statements."""
    lines = await _lines(context, text, parameters)
    if not lines:
        return await work(lambda number: None)
    for line in lines:
        await note(context, request, line.action, line.name, outcome=BEGUN)
    machine = context.ready().engine.machine
    for line in lines:
        line.changes = None if line.action.split()[1].startswith(_DROPS) else _changes(machine, line)

    def done(number: int) -> None:
        for at, line in enumerate(lines):
            if line.number != number:
                continue
            line.outcome = DONE
            line.told = None if line.changes is None else line.changes.found()
            for later in lines[at + 1 :]:
                if later.changes is not None:
                    later.changes = _changes(machine, later)

    try:
        result = await work(done)
    except Exception as error:
        code = error.detail.get("cause", error.code) if isinstance(error, TopicsError) else Internal.code
        failed = next((line for line in lines if line.outcome == NOT_BEGUN), None)
        if failed is not None:
            failed.outcome = str(code)
        _conclude(context, request, lines)
        raise
    _conclude(context, request, lines)
    return result


def _conclude(context: Context, request: Request, lines: Sequence[_Line]) -> None:
    for line in lines:
        conclude(context, request, line.action, line.name, line.outcome, line.told)


async def _lines(context: Context, text: str, parameters: Sequence[object]) -> list[_Line]:
    """One for each statement to note. What is not understood is for the executor to refuse."""
    if context.audit is None or not _PERHAPS.search(text):
        return []
    from topics.sql.grammar import parse_script
    from topics.sql.needs import needs

    def read() -> list[_Line]:
        found = []
        for statement, origin in parse_script(text, parameters):
            need = needs(statement)
            if need.scopes & _NOTED:
                kind, name = need.names[0] if need.names else ("topic", "")
                action = f"SQL {type(statement).__name__}"
                found.append(_Line(origin.number, action, shorten(name), Kind[kind.upper()]))
        return found

    try:
        return await aside(text, read)
    except TopicsError:
        return []


def _changes(machine: Any, line: _Line) -> ConfigChanges:
    return ConfigChanges(machine, line.kind, line.name)
