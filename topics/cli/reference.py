"""The reference of the command line as Markdown, made from the commands themselves: `docs/CLI.md`.

A command is its docstring, with the indented lines as an example, and its parameters as a table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal, get_args, get_origin

from cyclopts import App
from cyclopts.argument import Argument

from topics.cli import COMMANDS, HELP, PYTHON_NAMES, SECTIONS, build_app
from topics.cli.exitcode import Exit
from topics.client.connector import KEY_VARIABLE, URL_DEFAULT, URL_VARIABLE

_INTRODUCTION = f"""\
# The command line

Generated from `topics/cli/` by `make docs`; do not edit. `topics COMMAND --help` says the same in a terminal, and
`topics completion bash` (or zsh, fish) teaches it to your shell.

{{help}}

## What all commands share

- **Where.** Commands that read and write records work on a server (`--url`, else `{URL_VARIABLE}`, else
  `{URL_DEFAULT}`) or on a directory that no server has open (`--dir`). A key is `--key` or
  `{KEY_VARIABLE}`; it is never shown. `topics write`, `topics topic create` and `topics bench` make a directory that is
  not there; the others refuse it.
- **Output.** Results go to stdout: tables on a terminal, JSON lines in a pipe or with `--json`; `--no-json` gives
  tables in a pipe. Progress, questions, notes and errors go to stderr. `NO_COLOR=1` leaves colours out.
- **Records** as JSON lines look as on the wire: `{{{{"$seq":1,"$ts":1780420000000,"$tag":"order-1","data":…}}}}`. Where
  records were lost before they were read, a line `{{{{"gap_from":1,"gap_to":3,"reason":"cap"}}}}` stands for them.
- **Questions.** What removes something asks first on a terminal, and does not in a script or with `--yes`.
- **Errors** are one line: `topics: code: what is wrong; what to do next`. The exit code tells a script:

| code | name | meaning |
|---|---|---|
"""

IMAGES = {"tail": "what comes, in colours", "doctor": "what was measured, and what to change"}
"""Screen captures in docs/images, made by tests/cli/test_images.py, and what they show."""
SHARED = {"--url", "--dir", "--key", "--json"}
"""Flags that are explained once."""


def as_markdown() -> str:
    """The text of docs/CLI.md."""
    app = build_app()
    text = _INTRODUCTION.format(help=_prose(HELP))
    text += "".join(f"| {code.value} | {code.name.lower().replace('_', ' ')} | {code.meaning} |\n" for code in Exit)
    for section, names in SECTIONS.items():
        text += f"\n## {section}\n"
        for name in names:
            text += "".join(_command(app, path, command) for path, command in _of(name))
    return text


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command that does something, with what one types for it: `topic create`."""
    for name in COMMANDS:
        yield from _of(name)


def examples(command: Callable[..., Any]) -> list[str]:
    """The lines of a command's example."""
    return [line.strip() for line in inspect.cleandoc(command.__doc__ or "").splitlines() if line.startswith("    ")]


def _of(name: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    function = PYTHON_NAMES.get(name, name)
    module = import_module(f"topics.cli.{function}")
    if hasattr(module, "COMMANDS"):
        yield from ((f"{name} {command.__name__}", command) for command in module.COMMANDS)
    else:
        yield name, getattr(module, function)


def _command(app: App, path: str, command: Callable[..., Any]) -> str:
    one = app
    for name in path.split():
        one = one[name]
    text = f"\n### topics {path}\n\n{_prose(inspect.cleandoc(command.__doc__ or ''))}\n"
    if path in IMAGES:
        text += f"\n![topics {path}: {IMAGES[path]}](images/{path}.svg)\n"
    if path == "serve":
        return (
            text
            + "\nIts flags are the settings of [SETTINGS.md](SETTINGS.md), and `--config` for a TOML file of them.\n"
        )
    arguments = [argument for argument in one.assemble_argument_collection() if argument.show]
    rows = [_row(argument) for argument in arguments if not SHARED & set(argument.names)]
    return text + ("\n| parameter | what it is |\n|---|---|\n" + "".join(rows) if rows else "")


def _prose(text: str) -> str:
    """Paragraphs as they are, indented lines as code."""
    parts: list[str] = []
    for line in text.strip().splitlines():
        is_code = line.startswith("    ")
        in_code = bool(parts) and parts[-1].startswith("```sh")
        if is_code and in_code:
            parts[-1] = parts[-1].removesuffix("```") + f"{line.strip()}\n```"
        elif is_code:
            parts.append(f"```sh\n{line.strip()}\n```")
        elif line and parts and not in_code and parts[-1] and not parts[-1].endswith("\n"):
            parts[-1] += f"\n{line}"
        elif line:
            parts.append(line)
        elif parts and not in_code:
            parts[-1] += "\n"
    return "\n\n".join(part.rstrip("\n") for part in parts)


def _choices(hint: object) -> list[str]:
    """The words that a parameter may be, also when it may be left out."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for part in get_args(hint) for word in _choices(part)]


def _row(argument: Argument) -> str:
    names = ", ".join(f"`{name}`" for name in argument.names)
    choices = _choices(argument.hint)
    said = (argument.parameter.help or "").replace("|", "\\|")
    said += f" One of {', '.join(choices)}." if choices else ""
    if argument.parameter.show_default is not False and argument.field_info.default not in (
        None,
        False,
        inspect.Parameter.empty,
    ):
        said += f" Default: {argument.field_info.default}."
    return f"| {names} | {'Required. ' if argument.required else ''}{said} |\n"
