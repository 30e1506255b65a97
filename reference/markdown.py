"""Pieces of Markdown that both documents are put together from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import dedent

_DOCUMENT = re.compile(r"docs/(\w+)\.md")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without its empty columns, or nothing when it has no rows."""
    cells = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    columns = [column for column in zip(head, *cells, strict=True) if any(column[1:])]
    if not columns:
        return ""
    lines = ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]]) + "\n\n"


def code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```\n\n"


def prose(docstring: str) -> str:
    """A docstring as Markdown: what is indented in it is code, and documents are linked."""
    return "".join(
        code(dedent(paragraph)) if paragraph.startswith("    ") else _DOCUMENT.sub(r"[\1](\1.md)", paragraph) + "\n\n"
        for paragraph in _paragraphs(inspect.cleandoc(docstring))
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Parts between empty lines; indented ones that follow each other are one part."""
    waiting = ""
    for part in re.split(r"\n\n+", text):
        if waiting and part.startswith("    "):
            waiting += f"\n\n{part}"
            continue
        if waiting:
            yield waiting
        waiting = part
        if not part.startswith("    "):
            yield part
            waiting = ""
    if waiting:
        yield waiting


def first_sentence(docstring: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
