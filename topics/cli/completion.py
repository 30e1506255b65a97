"""`topics completion`: the script that teaches a shell the commands and flags."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from topics.cli.screen import Screen


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /) -> None:
    """Print a completion script for a shell.

    Put it where your shell looks: for bash `~/.local/share/bash-completion/completions/topics`, for zsh `_topics` in a
    directory of `$fpath`, for fish `~/.config/fish/completions/topics.fish`. For example:

        topics completion bash > topics.bash
    """
    # The whole command line describes itself, this command included.
    from topics.cli import build_app

    Screen().lines([build_app().generate_completion(shell=shell).encode()])
