"""A result as Markdown, whatever it counts: numbers as a list, tables as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proof.results import Result
from reference.markdown import table

OF_ITS_OWN = ("name", "date", "command")
"""What every result has, and the page shows at another place."""


def as_markdown(result: Result) -> str:
    counts = {key: value for key, value in result.items() if key not in OF_ITS_OWN}
    plain = [(_words(key), shown(value)) for key, value in counts.items() if not isinstance(value, Mapping)]
    text = table(("count", "value"), plain)
    for key, value in counts.items():
        if isinstance(value, Mapping):
            text += _table(key, value)
    return text


def _table(title: str, rows: Mapping[str, Any]) -> str:
    if not all(isinstance(row, Mapping) for row in rows.values()):
        return table((_words(title), "value"), [(name, shown(value)) for name, value in rows.items()])
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    head = (_words(title), *map(_words, columns))
    return table(head, [(name, *(shown(row.get(column)) for column in columns)) for name, row in rows.items()])


def _words(key: str) -> str:
    return key.replace("_", " ")


def shown(value: object) -> str:
    match value:
        case None | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case list():
            return ", ".join(map(shown, value))
        case Mapping():
            return ", ".join(f"{_words(str(key))} {shown(each)}" for key, each in value.items())
        case _:
            return str(value)
