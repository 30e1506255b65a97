"""`python -m bench`: run the measures, show the figures, and after a full run write `docs/BENCHMARKS.md`."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console

from bench import report
from bench.measures import MEASURES
from bench.runner import measure_all
from bench.sizes import FULL, QUICK

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "BENCHMARKS.md"
SCRATCH = ROOT / "build"

EXIT_MISSED = 1
EXIT_UNKNOWN = 2
PIPED_COLUMNS = 160
"""Wide enough for the table where no terminal says how wide it is."""


def bench(
    *,
    quick: Annotated[bool, Parameter(negative="", help="Small sizes: to see that it works.")] = False,
    only: Annotated[tuple[str, ...], Parameter(consume_multiple=True, help="Names of measures; all without it.")] = (),
    json: Annotated[Path | None, Parameter(help="Write the figures here as well, as JSON.")] = None,
    directory: Annotated[
        Path, Parameter(help="Where the data goes while measuring; on the disk to measure.")
    ] = SCRATCH,
) -> int:
    """Measure the engine on one core of this machine. The exit code is 1 when a full run misses a bar.

    A full run of all measures also writes docs/BENCHMARKS.md.
    """
    console = Console(width=None if sys.stdout.isatty() else PIPED_COLUMNS)
    unknown = [name for name in only if name not in MEASURES]
    if unknown:
        console.print(f"no measure is called {unknown[0]}; there are {', '.join(MEASURES)}")
        return EXIT_UNKNOWN
    directory.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="bench-", dir=directory) as scratch:
        sizes = QUICK if quick else FULL
        found = measure_all(
            only or tuple(MEASURES), sizes, Path(scratch), lambda name: console.print(f"[bold]{name}[/bold]")
        )
    console.print(report.as_table(found))
    if json is not None:
        json.write_bytes(report.as_json(found))
    if quick:
        return 0
    if not only:
        DOCUMENT.write_text(report.as_markdown(found))
    return EXIT_MISSED if found.missed() else 0


if __name__ == "__main__":
    app = App(name="bench", help_format="markdown", version_flags=())
    app.default(bench)
    sys.exit(app(result_action="return_value"))
