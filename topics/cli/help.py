"""`topics help`: what `--help` shows, and all of it as `docs/CLI.md`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter


def help(
    *command: Annotated[str, Parameter(help="Which command; all of them when not named.")],
    markdown: Annotated[
        bool, Parameter(negative="", show_default=False, help="Print the whole reference as Markdown (docs/CLI.md).")
    ] = False,
) -> None:
    """Explain a command, or list them.

    For example:

        topics help topic create
    """
    # The whole command line describes itself, this command included.
    from topics.cli import build_app
    from topics.cli.reference import as_markdown
    from topics.cli.screen import Screen

    if markdown:
        Screen().lines([as_markdown().encode().removesuffix(b"\n")])
    else:
        app = build_app()
        app.console = Screen().out
        app([*command, "--help"], exit_on_error=False, print_error=False, result_action="return_value")
