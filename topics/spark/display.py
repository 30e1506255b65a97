"""How topics stand, for people: a table in a terminal, and bars in a notebook.

A notebook shows whatever has a `_repr_html_`. The bars are plain HTML and SVG: nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from topics.spark.server import PartitionState

_BAR_PX: Final = 240
_ROW_PX: Final = 18
_KEPT: Final = "#4c78a8"
_BEHIND: Final = "#f58518"
_NAME_PX: Final = 180
_NUMBERS_PX: Final = 190
_LEGEND: Final = (
    f'<g transform="translate({_NAME_PX} 0)"><rect y="3" width="12" height="12" fill="{_KEPT}"/>'
    f'<text x="18" y="13">archived, or not to be</text><rect x="150" y="3" width="12" height="12" fill="{_BEHIND}"/>'
    '<text x="168" y="13">in no archive yet</text></g>'
)


@dataclass(frozen=True)
class LagRow:
    """One partition: what the server has, and what the slowest of its archives has yet to take."""

    topic: str
    partition: int
    head_seq: int
    earliest_seq: int
    count: int
    archived_seq: int | None
    """None when nothing archives the topic."""

    @property
    def behind(self) -> int | None:
        return None if self.archived_seq is None else max(0, self.head_seq - self.archived_seq)


@dataclass(frozen=True)
class Lag:
    rows: tuple[LagRow, ...]

    @classmethod
    def of(cls, states: Sequence[PartitionState]) -> Lag:
        return cls(tuple(_row(state) for state in states))

    def __str__(self) -> str:
        heads = ("topic", "partition", "records", "head", "archived", "behind")
        lines = [heads, *(_texts(row) for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """A row a partition: a bar for what the server has, and within it what is in no archive yet."""
        widest = max((row.count for row in self.rows), default=0)
        rows = "".join(_html(row, widest) for row in self.rows)
        heads = "".join(f"<th style='text-align:left'>{head}</th>" for head in ("topic", "records", "", "behind"))
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    def svg(self) -> str:
        """The bars as a picture of its own, with a line above that says what the colours are."""
        widest = max((row.count for row in self.rows), default=0)
        bars = "".join(
            f'<g transform="translate(0 {_ROW_PX * at})"><text x="4" y="13">{escape(_name(row))}</text>'
            f'<g transform="translate({_NAME_PX} 3)">{_bar(row, widest)}</g>'
            f'<text x="{_NAME_PX + _BAR_PX + 10}" y="13">{_said(row)}</text></g>'
            for at, row in enumerate(self.rows, 1)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_NAME_PX + _BAR_PX + _NUMBERS_PX}" '
            f'height="{_ROW_PX * (len(self.rows) + 1) + 4}" font-family="sans-serif" font-size="12">'
            f'<rect width="100%" height="100%" fill="white"/>{_LEGEND}{bars}</svg>'
        )


def _row(state: PartitionState) -> LagRow:
    archived = min((archive.upto_seq for archive in state.archives), default=None)
    return LagRow(state.topic, state.partition, state.head_seq, state.earliest_seq, state.count, archived)


def _name(row: LagRow) -> str:
    return f"{row.topic}#{row.partition}" if row.partition else row.topic


def _texts(row: LagRow) -> tuple[str, ...]:
    archived = "-" if row.archived_seq is None else f"{row.archived_seq:,}"
    behind = "-" if row.behind is None else f"{row.behind:,}"
    return row.topic, str(row.partition), f"{row.count:,}", f"{row.head_seq:,}", archived, behind


def _said(row: LagRow) -> str:
    return f"{row.count:,}" if row.behind is None else f"{row.count:,}, {row.behind:,} behind"


def _html(row: LagRow, widest: int) -> str:
    picture = f'<svg width="{_BAR_PX}" height="12">{_bar(row, widest)}</svg>'
    behind = "" if row.behind is None else f"{row.behind:,}"
    return f"<tr><td>{escape(_name(row))}</td><td>{row.count:,}</td><td>{picture}</td><td>{behind}</td></tr>"


def _bar(row: LagRow, widest: int) -> str:
    width = round(_BAR_PX * row.count / widest) if widest else 0
    late = min(width, round(_BAR_PX * (row.behind or 0) / widest)) if widest else 0
    return (
        f'<rect width="{width}" height="12" fill="{_KEPT}"/>'
        f'<rect x="{width - late}" width="{late}" height="12" fill="{_BEHIND}"/>'
    )
