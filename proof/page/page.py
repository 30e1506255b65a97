"""docs/PROOF.md as text: what was run, when, how much of it, and plainly what was not."""

from __future__ import annotations

from collections.abc import Mapping

from proof.page.rendering import as_markdown
from proof.page.section import SECTIONS, Section, shortfalls
from proof.results import Result
from reference.markdown import table

_HEAD = """\
# Proof

What is promised is in [GUARANTEES](GUARANTEES.md); this page says what was run to show it, when, and how much of it. It
is written by `.venv/bin/python -m proof page` out of the results in `docs/proof/`; do not edit it. `make test` runs a
part of each of these in minutes; the long runs are `make soak`, which goes on where it was. A `tree` is a hash of code
and tests: a result is about that tree and no other.

"""


def page(results: Mapping[str, Result]) -> str:
    """Of the results by name; one that is missing was not run."""
    text = _HEAD + table(("what", "state", "date", "command"), [_line(each, results) for each in SECTIONS])
    for section in SECTIONS:
        text += _section(section, results.get(section.name))
    return text.rstrip() + "\n"


def _line(section: Section, results: Mapping[str, Result]) -> tuple[str, str, str, str]:
    result = results.get(section.name)
    place = section.title.lower().replace(" ", "-")
    title = f"[{section.title}](#{place})"
    if result is None:
        return title, "not run", "never", f"`{section.command}`"
    state = _failure(section.name, result) or ("in part" if shortfalls(section, result) else "run in full")
    return title, state, result["date"], f"`{result['command']}`"


def _failure(name: str, result: Result) -> str:
    """What a result says went wrong; empty when nothing did."""
    if name == "mutants":
        survivors = result["tried"] - result["killed"]
        untried = result["all"] - result["tried"]
        return ", ".join(
            [f"{survivors} survive"] * bool(survivors) + [f"{untried} of {result['all']} not tried"] * bool(untried)
        )
    if name == "soak":
        failed = [part for part, found in result["parts"].items() if not found["passed"]]
        return f"failed: {', '.join(failed)}" if failed else ""
    if name == "fuzz":
        broken = [decoder for decoder, found in result["decoders"].items() if found["crashes"]]
        return f"crashes: {', '.join(broken)}" if broken else ""
    failures = result.get("failures", 0)
    count = failures if isinstance(failures, int) else len(failures)
    return f"{count} failures" if count else ""


def _section(section: Section, result: Result | None) -> str:
    text = f"## {section.title}\n\n{section.about}\n\n"
    if result is None:
        return f"{text}**Not run.** `{section.command}` runs it.\n\n"
    missing = shortfalls(section, result)
    if missing:
        text += f"**In part:** {'; '.join(missing)}.\n\n"
    return text + as_markdown(result)
