"""Statements that administer or destroy: noted in the audit log before the text they stand in is run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from topics.core.names import shorten
from topics.errors import TopicsError
from topics.server.auditing import note
from topics.server.context import Context
from topics.server.message import Request
from topics.sqlengine.aside import aside

_PERHAPS: Final = re.compile(r"\b(?:CREATE|ALTER|DROP|DELETE|CLEAR|TRUNCATE|REGISTER|UNREGISTER)\b", re.IGNORECASE)
"""What such a statement begins with. A text without these words is not read twice."""
_NOTED: Final = frozenset({"admin", "delete"})


async def note_statements(context: Context, request: Request, text: str, parameters: Sequence[object]) -> None:
    """A line for each such statement. What is not understood is for the executor to refuse."""
    if context.audit is None or not _PERHAPS.search(text):
        return
    from topics.sql.grammar import parse
    from topics.sql.needs import needs

    try:
        statements = await aside(text, lambda: [(statement, needs(statement)) for statement in parse(text, parameters)])
    except TopicsError:
        return
    for statement, need in statements:
        if need.scopes & _NOTED:
            name = need.names[0][1] if need.names else ""
            action = f"SQL {type(statement).__name__}"
            await note(context, request, action, shorten(name), outcome="begun")
