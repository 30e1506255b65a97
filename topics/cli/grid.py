"""One thing shown whole: a line for each of its fields, which a terminal of any width has room for."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text


def fields_grid(fields: Iterable[tuple[str, Text]]) -> Table:
    """Names on the left, values on the right."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in fields:
        grid.add_row(name, value)
    return grid
