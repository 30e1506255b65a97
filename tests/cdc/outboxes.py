"""What both kinds of outbox have to do, tried on a table of messages."""

from __future__ import annotations

import json
from typing import Any

from topics.cdc.outbox import Change, Outbox, Place


def told(change: Change) -> tuple[str, Any, Any, Any]:
    return change.operation, *(
        None if text is None else json.loads(text) for text in (change.key, change.before, change.after)
    )


def everything(outbox: Outbox, table: str, after: Place | None = None) -> list[Change]:
    return outbox.changes(table, after or Place(), outbox.settled(table), 1000)
