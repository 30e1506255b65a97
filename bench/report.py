"""The figures as a table for a person, as JSON for a program, and as `docs/BENCHMARKS.md`."""

from __future__ import annotations

import msgspec
from rich.table import Table

from bench.figure import Figure, Unit, show

_INTRODUCTION = """\
# Benchmarks

Written by `make bench`; do not edit. In-process, everything on one core: the event loop, the WAL's threads and the
checkpoints. A bar is what the engine promises itself. The peer is SQLite in WAL mode with the same bodies in the same
run, but for what a row notes; a record has about 100 bytes of data. A rate is the best of three rounds, ours and the
peer's alike; a pause is the median of three. Machines drift by a factor of two, so read ratios before figures.
"""
_COMMANDS = """\
```sh
make bench                          # all of it, some minutes; writes this file
.venv/bin/python -m bench --quick   # a minute, to see that it works
.venv/bin/python -m bench --only reads --json figures.json
```
"""


class Report(msgspec.Struct, frozen=True):
    machine: dict[str, str]
    figures: dict[str, list[Figure]]

    def missed(self) -> list[Figure]:
        """The figures below their bar."""
        every = [figure for figures in self.figures.values() for figure in figures]
        return [figure for figure in every if figure.bar_ratio is not None and figure.bar_ratio < 1]


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else show(ratio, Unit.TIMES)


def _cells(figure: Figure) -> list[str]:
    unit = figure.unit
    bar = show(figure.bar, unit)
    if bar:
        bar = f"{'≥' if figure.more_is_better else '≤'} {bar}"
    return [
        figure.name,
        show(figure.value, unit),
        bar,
        _ratio(figure.bar_ratio),
        show(figure.peer, unit),
        _ratio(figure.peer_ratio),
        figure.note,
    ]


_HEADS = ("what", "figure", "bar", "to bar", "peer", "to peer", "")


def as_table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, head in enumerate(_HEADS):
        table.add_column(head, justify="right" if 1 <= number <= 5 else "left", overflow="fold")
    for figures in report.figures.values():
        for figure in figures:
            missed = figure.bar_ratio is not None and figure.bar_ratio < 1
            table.add_row(*_cells(figure), style="red" if missed else "")
        table.add_section()
    return table


def as_json(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report))


def as_markdown(report: Report) -> str:
    lines = [_INTRODUCTION]
    for figures in report.figures.values():
        lines.append("| " + " | ".join(_HEADS) + " |")
        lines.append("|---|" + "--:|" * 5 + "---|")
        lines += ["| " + " | ".join(_cells(figure)) + " |" for figure in figures]
        lines.append("")
    lines.append("Measured on:\n")
    lines += [f"- {name}: {fact}" for name, fact in report.machine.items()]
    lines += ["", _COMMANDS]
    return "\n".join(lines)
