"""`topics completion`: the script that teaches a shell the commands, the flags, and to ask a server for its names."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from topics.cli.screen import Screen

REGISTRATION = "complete -F _topics topics"
"""The line of a script for bash that says which function completes."""
WITH_COLONS = """\
# Bash takes a colon for the end of a word, and names have colons: the words of a name are put together before they are
# looked at, and what stands before the last colon is taken off what is offered.
_topics_with_colons() {
  local -a words=() offered=()
  local i at=0 joined=0 word
  for ((i=0; i<=COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [[ $i -gt 1 && ( "$word" == ":" || $joined -eq 1 ) ]]; then
      words[at]+="$word"
    else
      [[ $i -gt 0 ]] && ((at++))
      words[at]="$word"
    fi
    [[ "$word" == ":" ]] && joined=1 || joined=0
  done
  local typed="${words[at]}" before=""
  [[ "$COMP_WORDBREAKS" == *:* && "$typed" == *:* ]] && before="${typed%"${typed##*:}"}"
  local -a COMP_WORDS=("${words[@]}")
  local COMP_CWORD=$at
  _topics
  for word in "${COMPREPLY[@]}"; do
    offered+=("${word#"$before"}")
  done
  COMPREPLY=("${offered[@]}")
}

complete -F _topics_with_colons topics"""


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="Which shell.")], /) -> None:
    """Print a completion script for a shell.

    It knows commands and flags, and asks the server for the names of topics, queues and routers. Put it where your
    shell looks: for bash `~/.local/share/bash-completion/completions/topics`, for zsh `_topics` in a directory of
    `$fpath`, for fish `~/.config/fish/completions/topics.fish`. For example:

        topics completion bash > topics.bash
    """
    # The whole command line describes itself, this command included.
    from topics.cli import build_app

    script = build_app().generate_completion(shell=shell)
    if shell == "bash":
        assert REGISTRATION in script
        script = script.replace(REGISTRATION, WITH_COLONS)
    Screen().lines([script.encode()])
