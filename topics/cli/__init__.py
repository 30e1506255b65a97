"""The `topics` command.

One file per command, each a plain typed function that prints and returns an exit code (None is 0). To add one,
write `topics/cli/<name>.py` with a function of that name and list it in `SECTIONS`; its docstring is its help. A module
that has `COMMANDS` instead is a command with commands of its own. Only the command that is run is imported, so that
none waits for what another one needs.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from os import environ

from cyclopts import App, Group

from topics.cli.streams import let_go, naming, stand_in_for_closed

HELP = """A durable event engine: one log per topic, and several ways to take from it.

Producers append records; readers take them by cursor, by lease, by priority or as a group. One process owns one
directory, and every topic says for itself how durable its records are.

**Start here**

    topics serve                           # on ./data, at http://127.0.0.1:4000
    topics write orders '{"sku": "A1"}'    # append a record, in another terminal
    topics tail orders -f                  # see what comes
    topics doctor                          # is this machine fit for it?

Commands that read and write take `--url`, or `--dir` for a directory that no server has open. Results are tables on a
terminal and JSON lines in a pipe. `topics COMMAND --help` explains a command, with an example.
"""

HELP_FLAGS = {"--help", "-h"}
COMPLETING = "__complete"
"""What the script of a shell calls with a command line that is not finished, to be told names."""
SECTIONS = {
    "Records": ("write", "read", "tail", "delete", "topic", "group", "router", "producer", "sql"),
    "Jobs": ("work", "queue", "heap", "dlq"),
    "Server": ("serve", "stat", "doctor", "bench", "settings"),
    "Pipeline": ("table", "pipeline", "cdc", "lake", "export", "import", "redrive"),
    "Accounts": ("key", "user", "audit"),
    "Directory": ("backup", "restore", "fsck", "inspect"),
    "This command": ("completion", "help", "version"),
}
PYTHON_NAMES = {"import": "importing"}
"""Commands whose names are words of the language."""
FLAG_NAMES = {"--version": "version"}
"""Commands that people look for as flags, by what they type."""
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


def build_app(names: Sequence[str] = COMMANDS) -> App:
    """The command line; with fewer names, as much of it as they need."""
    app = App(name="topics", help=HELP, help_format="markdown", version_flags=(), suppress_keyboard_interrupt=False)
    # What an import makes is no garbage, and looking for some among it is a tenth of a start.
    gc.disable()
    try:
        for number, (title, members) in enumerate(SECTIONS.items()):
            section = Group(title, sort_key=number)
            for name in members:
                if name in names:
                    _add(app, name, section)
    finally:
        gc.enable()
    return app


def _add(app: App, name: str, section: Group) -> None:
    function = PYTHON_NAMES.get(name, name)
    module = import_module(f"topics.cli.{function}")
    commands = getattr(module, "COMMANDS", None)
    if commands is None:
        flags = [flag for flag, meant in FLAG_NAMES.items() if meant == name]
        app.command(getattr(module, function), name=[name, *flags], group=section)
        return
    inner = App(name=name, help=module.SUMMARY, group=section, version_flags=())
    for command in commands:
        inner.command(command)
    app.command(inner)


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. What goes wrong is said on stderr."""
    words = arguments[1:] if arguments[:1] == [COMPLETING] else arguments
    named = [name for name in (FLAG_NAMES.get(word, word) for word in words[:1]) if name in COMMANDS]
    try:
        app = build_app(named or COMMANDS)
        if not arguments or HELP_FLAGS & set(arguments):
            # Help is printed by the library, and a pipe that closes is for us to judge.
            from topics.cli.screen import PipeConsole

            app.console = PipeConsole()
        code = app(list(arguments), result_action="return_value", exit_on_error=False, print_error=False)
        with naming("stdout"):
            sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        # Loading what writes in colours takes time that a start without errors need not.
        from topics.cli.complaint import ending

        return ending(error, *named)
    return code if isinstance(code, int) else 0


def main() -> None:
    stand_in_for_closed()
    # NumPy would start a thread for each core to do linear algebra, of which there is none here.
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(sys.argv[1:])
    let_go()
    sys.exit(code)
