"""The `topics` command.

One file per command, each a plain typed function that prints and returns an exit code (None is 0). To add one,
write `topics/cli/<name>.py` with a function of that name and list it in `COMMANDS`; its docstring is its help.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from cyclopts import App
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from topics.cli.fsck import fsck
from topics.cli.serve import serve
from topics.cli.settings import settings
from topics.cli.version import version
from topics.errors import DirectoryLocked, InvalidSetting, TopicsError

HELP = """A durable event engine: one log per topic, and several ways to take from it.

Producers append records; readers take them by cursor, by lease, by priority or as a group. One process owns one
directory, and every topic says for itself how durable its records are.

**Start here**

    topics serve                        start on ./data and http://127.0.0.1:4000
    topics settings                     what can be set, and what is in effect
    topics fsck                         check ./data, and repair it
    topics serve --data-dir /srv/topics --port 4000

`topics COMMAND --help` explains a command, with an example.
"""

COMMANDS: tuple[Callable[..., int | None], ...] = (serve, settings, fsck, version)

EXIT_FAILED = 1
EXIT_CANNOT_START = 2


def build_app() -> App:
    app = App(name="topics", help=HELP, help_format="markdown", version_flags=())
    for command in COMMANDS:
        app.command(command)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. What goes wrong is said on stderr."""
    try:
        code = build_app()(list(arguments), result_action="return_value")
    except TopicsError as error:
        Console(stderr=True).print(Panel(Text(error.message), title=error.code, border_style="red"))
        return EXIT_CANNOT_START if isinstance(error, InvalidSetting | DirectoryLocked) else EXIT_FAILED
    return code if isinstance(code, int) else 0


def main() -> None:
    sys.exit(run(sys.argv[1:]))
