"""Why a query ends that beginning again as it is does not help.

A query dies in a process of its own, and what reaches the runner is text: these names in it tell what is to be done.
"""

from __future__ import annotations

import re
from typing import Final

from topics.errors import Conflict, RequestTimeout, Throttled, TopicsError, Unavailable


class PositionGone(Conflict):
    """What comes next is not there any more. Somebody has to say where to go on: the message says how."""


class NotCaptured(Conflict):
    """The table does not keep its changes. Somebody has to see to that first."""


class KeyBroken(Conflict):
    """The declared key does not identify the rows of a table."""


class TableChanged(Conflict):
    """The table has other columns now: the query is planned anew, at the same position."""


_OURS: Final = re.compile(r"^(?:\S*\s)?topics\.([\w.]+): (.+)$", re.M)
_TRACE: Final = "Traceback (most recent call last):"
_SOURCES: Final = "PYTHON_DATA_SOURCE"
"""How Spark calls what goes wrong in a source of ours while it plans: that may pass."""
REFUSED: Final = "refused"
"""Instead of an error's name: Spark refuses the query as it is written, its words, its names or its types."""
FINAL: Final = frozenset({REFUSED, *(each.__name__ for each in (PositionGone, NotCaptured, KeyBroken))})


_AWAY: Final[tuple[type[TopicsError], ...]] = (Throttled, RequestTimeout, Unavailable, *Unavailable.__subclasses__())
AWAY: Final = frozenset(each.__name__ for each in _AWAY)
"""The server, or a database, is away or busy: the pipeline is not to blame, however long that takes."""


def told(error: BaseException | str) -> tuple[str, str]:
    """The name of an error of ours within what Spark says, `REFUSED`, or "" for none; and what it says."""
    text = str(error)
    found = _OURS.findall(text)
    if found:
        name, message = found[-1]
        return name.rsplit(".", 1)[-1], message.strip()
    return REFUSED if _is_refusal(error) else "", first_line(text)


def _is_refusal(error: BaseException | str) -> bool:
    from pyspark.errors import AnalysisException, ParseException

    if not isinstance(error, AnalysisException | ParseException):
        return False
    return not (error.getCondition() or "").startswith(_SOURCES)


def first_line(text: str) -> str:
    """What Spark says, without where in Spark it happened; of an error of Python within it, the error."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return "nothing is known about it"
    begin, trace, _ = lines[0].partition(_TRACE)
    if not trace:
        return lines[0].strip()
    # Calls and the lines of code in them are indented, the error behind them is not.
    raised = next((line for line in lines[1:] if not line[0].isspace()), "")
    return f"{begin}{raised}".strip(" :") or lines[0]
