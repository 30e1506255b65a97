"""The figures as a table for a person, as JSON for a program, and as the parts of `docs/BENCHMARKS.md`."""

from __future__ import annotations

import msgspec
from rich.table import Table

from bench.figure import Figure, Unit, show

Row = tuple[str, ...]


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    machine: dict[str, str]
    figures: dict[str, list[Figure]]
    left_out: dict[str, str] = {}
    """Measures that could not run here, and why."""

    def missed(self) -> list[Figure]:
        """The figures below their bar."""
        return [figure for figures in self.figures.values() for figure in figures if figure.is_missed]

    def of(self, names: list[str]) -> Report:
        """The same with these measures only."""
        figures = {name: found for name, found in self.figures.items() if name in names}
        left_out = {name: why for name, why in self.left_out.items() if name in names}
        return Report(self.machine, figures, left_out)


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else show(ratio, Unit.TIMES)


def _bound(figure: Figure, text: str) -> str:
    return f"{'≥' if figure.more_is_better else '≤'} {text}" if text else ""


ENGINE_HEADS: Row = ("what", "figure", "bar", "to bar", "peer", "to peer", "")


def engine_row(figure: Figure) -> Row:
    unit = figure.unit
    return (
        figure.name,
        show(figure.value, unit),
        _bound(figure, show(figure.bar, unit)),
        _ratio(figure.bar_ratio),
        show(figure.peer, unit),
        _ratio(figure.peer_ratio),
        figure.note,
    )


SERVER_HEADS: Row = ("what", "topics", "rounds", "times the peer", "bar", "peer's", "rounds", "peer", "")


def _spread(spread: tuple[float, float] | None, unit: Unit) -> str:
    return "" if spread is None else f"{show(spread[0], unit)} – {show(spread[1], unit)}"


def server_row(figure: Figure) -> Row:
    unit = figure.unit
    bar = _ratio(figure.factor) if figure.bar is None else show(figure.bar, unit)
    missed = "missed" if figure.is_missed else ""
    return (
        figure.name,
        show(figure.value, unit),
        _spread(figure.spread, unit),
        _ratio(figure.value / figure.peer if figure.peer else None),
        _bound(figure, bar),
        show(figure.peer, unit),
        _spread(figure.peer_spread, unit),
        figure.peer_name,
        "; ".join(filter(None, (missed, figure.note))),
    )


def _is_server(figures: list[Figure]) -> bool:
    return any(figure.peer_name for figure in figures)


def as_tables(report: Report) -> list[Table]:
    """One for the measures of the engine, one for those of the server, as far as they ran."""
    made = []
    for heads, row, is_server in ((ENGINE_HEADS, engine_row, False), (SERVER_HEADS, server_row, True)):
        groups = [figures for figures in report.figures.values() if _is_server(figures) is is_server]
        if not groups:
            continue
        table = Table(box=None, pad_edge=False, header_style="bold")
        for number, head in enumerate(heads):
            is_number = (number > 0 and head not in ("peer", "")) or (head == "peer" and not is_server)
            table.add_column(head, justify="right" if is_number else "left", overflow="fold")
        for figures in groups:
            for figure in figures:
                table.add_row(*row(figure), style="red" if figure.is_missed else "")
            table.add_section()
        made.append(table)
    return made


def as_json(report: Report) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report))


def as_markdown(report: Report) -> str:
    """A table a measure, and the machine."""
    lines: list[str] = []
    for figures in report.figures.values():
        is_server = _is_server(figures)
        heads, row = (SERVER_HEADS, server_row) if is_server else (ENGINE_HEADS, engine_row)
        lines.append("| " + " | ".join(heads) + " |")
        lines.append("|---|" + "--:|" * (len(heads) - 2) + "---|")
        lines += ["| " + " | ".join(row(figure)) + " |" for figure in figures]
        lines.append("")
    lines += [f"Left out: {name}, because {why}.\n" for name, why in report.left_out.items()]
    lines.append("Measured on:\n")
    lines += [f"- {name}: {fact}" for name, fact in report.machine.items()]
    return "\n".join([*lines, ""])
