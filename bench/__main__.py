"""`python -m bench`: run the measures, show the figures, write the parts of `docs/BENCHMARKS.md` that ran in full."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from bench import report
from bench.document import Part, document, part_text, parts_of
from bench.machine import peers
from bench.measures import ENGINE, FLOODS, GROUPS, HEAPS, LIVE, MEASURES, PIPELINES, QUEUES, SERVER, SPARK, SQL
from bench.report import Report
from bench.runner import measure_all
from bench.sizes import FULL, QUICK

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "BENCHMARKS.md"
SCRATCH = ROOT / "build"

EXIT_MISSED = 1
EXIT_UNKNOWN = 2
PARTS = {
    Part.ENGINE: ENGINE,
    Part.SERVER: SERVER,
    Part.FLOODS: FLOODS,
    Part.LIVE: LIVE,
    Part.QUEUES: QUEUES,
    Part.GROUPS: GROUPS,
    Part.HEAPS: HEAPS,
    Part.SPARK: SPARK,
    Part.SQL: SQL,
    Part.PIPELINES: PIPELINES,
}
PIPED_COLUMNS = 200
"""Wide enough for the tables where no terminal says how wide it is."""


def chosen(only: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The measures whose names begin with one of these, all without any; and what no measure begins with."""
    unknown = [begin for begin in only if not any(name.startswith(begin) for name in MEASURES)]
    return [name for name in MEASURES if not only or name.startswith(only)], unknown


def write_document(found: Report, path: Path) -> list[Part]:
    """The parts of which every measure ran; the others stay as they are."""
    parts = parts_of(path.read_text()) if path.exists() else {}
    written = []
    for part, measures in PARTS.items():
        if measures.keys() <= found.figures.keys():
            own = found.of(list(measures))
            own.machine.update(peers(part))
            parts[part] = part_text(part, report.as_markdown(own))
            written.append(part)
    if written:
        path.write_text(document(parts))
    return written


def _tell(console: Console, found: Report) -> None:
    for table in report.as_tables(found):
        console.print(table)
        console.print()
    for name, why in found.left_out.items():
        console.print(f"left out: {name}, because {why}", highlight=False)
    for figure in found.missed():
        against = f" against {figure.peer_name}" if figure.peer_name else ""
        console.print(f"[red]missed[/red] {figure.name}{against}: {figure.bar_ratio:.2f} of its bar", highlight=False)


def bench(
    *,
    quick: Annotated[bool, Parameter(negative="", help="Small sizes: to see that it works.")] = False,
    only: Annotated[
        tuple[str, ...], Parameter(consume_multiple=True, help="How the measures' names begin; all without it.")
    ] = (),
    strict: Annotated[bool, Parameter(negative="", help="Exit with 1 when a full run misses a bar.")] = False,
    json: Annotated[Path | None, Parameter(help="Write the figures here as well, as JSON.")] = None,
    directory: Annotated[
        Path, Parameter(help="Where the data goes while measuring; on the disk to measure.")
    ] = SCRATCH,
) -> int:
    """Measure the engine on one core of this machine, and the server against Redis, NATS, PostgreSQL and beanstalkd.

    A full run of all measures of a part also writes that part of docs/BENCHMARKS.md.
    """
    console = Console(width=None if sys.stdout.isatty() else PIPED_COLUMNS)
    names, unknown = chosen(only)
    if unknown:
        console.print(f"no measure is called {unknown[0]}; there are {', '.join(MEASURES)}")
        return EXIT_UNKNOWN
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=directory.resolve()) as scratch:
        # A peer that runs as a user of its own has to get through to its directory.
        Path(scratch).chmod(0o711)
        found = measure_all(
            names, QUICK if quick else FULL, Path(scratch), lambda name: console.print(f"[bold]{name}[/bold]")
        )
    _tell(console, found)
    if json is not None:
        json.write_bytes(report.as_json(found))
    if quick:
        return 0
    for part in write_document(found, DOCUMENT):
        console.print(f"written: {DOCUMENT.relative_to(ROOT)}, {part.lower()}", highlight=False)
    return EXIT_MISSED if strict and found.missed() else 0


if __name__ == "__main__":
    app = App(name="bench", help_format="markdown", version_flags=())
    app.default(bench)
    sys.exit(app(result_action="return_value"))
