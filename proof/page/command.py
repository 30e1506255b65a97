"""`python -m proof page`: take the results of runs into docs/proof, and write docs/PROOF.md out of what is there."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from proof.page.page import page as as_page
from proof.page.section import SECTIONS
from proof.results import RESULTS, Result, load
from proof.tree import ROOT

DATA = ROOT / "docs" / "proof"
PAGE = ROOT / "docs" / "PROOF.md"


def results_in(directory: Path) -> dict[str, Result]:
    """All results of the page's sections that are in a directory."""
    found = {section.name: load(section.name, directory) for section in SECTIONS}
    return {name: result for name, result in found.items() if result is not None}


def page(*, results: Annotated[Path, Parameter(help="Where results are kept.")] = RESULTS) -> int:
    """Write docs/PROOF.md. What was not run since stays as it was in docs/proof."""
    console = Console()
    DATA.mkdir(exist_ok=True)
    for name in results_in(results):
        copyfile(results / f"{name}.json", DATA / f"{name}.json")
    found = results_in(DATA)
    PAGE.write_text(as_page(found))
    missing = [section.name for section in SECTIONS if section.name not in found]
    console.print(f"written: {PAGE.relative_to(ROOT)}", highlight=False)
    if missing:
        console.print(f"not run: {', '.join(missing)}", highlight=False)
    return 0
