"""What a command prints on: tables for a person at a terminal, JSON lines for a program behind a pipe.

Results go to stdout, everything that is said about them (progress, notes, questions, errors) to stderr, so that a pipe
gets results and nothing else. Colours follow the terminal and NO_COLOR. Text from records and names is shown with its
control characters spelled out: a record must not be able to steer the terminal of whoever reads it. Brackets and colons
in it are brackets and colons, not styles and pictures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.progress import Progress, ProgressColumn
from rich.text import Text

from topics.cli.streams import naming

JsonFlag = Annotated[
    bool | None,
    Parameter(
        name="--json", negative="--no-json", help="JSON lines; without it, a terminal decides.", show_default=False
    ),
]


class PipeConsole(Console):
    """A console that leaves it to the command what a closed pipe means, and says of what is not taken that it is so."""

    def print(self, *objects: Any, **how: Any) -> None:
        with naming("stdout"):
            super().print(*objects, **how)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """Stdout and stderr of one command."""

    def __init__(self, json: bool | None = None) -> None:
        self.as_json = not sys.stdout.isatty() if json is None else json
        self.out = PipeConsole(highlight=False, markup=False, emoji=False)
        self.errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def show(self, fields: Mapping[str, object] | msgspec.Struct, table: Callable[[], RenderableType]) -> None:
        """One result: an object, or what `table` makes for a person."""
        if self.as_json:
            self.lines([msgspec.json.encode(fields)])
        else:
            made = table()
            # A sentence stays one line, so that what it says to type can be copied.
            self.out.print(made, soft_wrap=isinstance(made, Text))

    def lines(self, texts: Iterable[bytes]) -> None:
        """Lines of JSON, handed on at once: whoever reads them may wait for each."""
        whole = b"".join(b"%b\n" % text for text in texts)
        with naming("stdout"):
            sys.stdout.flush()
            sys.stdout.buffer.write(whole)
            sys.stdout.buffer.flush()

    def note(self, text: str, style: str = "dim") -> None:
        """One line on stderr, never broken into several."""
        self.errors.print(Text(printable(text), style=style), soft_wrap=True)

    @property
    def can_ask(self) -> bool:
        """Whether a person sits there who can answer."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @contextmanager
    def progress(self, *columns: ProgressColumn | str, start: bool = True) -> Iterator[Progress]:
        """Bars on stderr, for a person who watches; nothing otherwise. Without `start`, whoever has it starts it."""
        progress = Progress(*columns, console=self.errors, disable=not sys.stderr.isatty(), transient=True)
        if start:
            progress.start()
        try:
            yield progress
        finally:
            progress.stop()


def printable(text: str) -> str:
    """The text with control characters spelled out as in Python."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def counted(count: int, noun: str) -> str:
    """`1 record`, `2,000 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def sized(size_bytes: int) -> str:
    """`512 B`, `1.5 KiB`, `3.2 GiB`."""
    size = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
