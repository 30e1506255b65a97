"""What is said when a command cannot do what it was told: one line with what is wrong and what to do next."""

from __future__ import annotations

from contextlib import suppress

from cyclopts import CycloptsError, UnknownCommandError
from rich.console import Console
from rich.text import Text

from topics.cli.eventloop import Terminated
from topics.cli.exitcode import Exit, exit_of
from topics.cli.screen import printable
from topics.errors import (
    ConnectionFailed,
    Damaged,
    Forbidden,
    InvalidSetting,
    InvalidSql,
    NotAHeap,
    NotAQueue,
    NotReady,
    NotUnderstood,
    PipelineNotFound,
    RouterCycle,
    RouterNotFound,
    ShuttingDown,
    StageNotFound,
    Throttled,
    TimedOut,
    TopicFull,
    TopicNotFound,
    TopicsError,
    Unauthorized,
)

_NEXT: tuple[tuple[type[TopicsError], str], ...] = (
    (TopicNotFound, "`topics topic ls` lists those there are"),
    (RouterNotFound, "`topics router ls` lists those there are"),
    (PipelineNotFound, "`topics pipeline ls` lists those there are"),
    (RouterCycle, "that is --allow-cycle here"),
    (NotAQueue, "`topics topic create NAME --type queue` makes one"),
    (NotAHeap, "`topics heap create NAME` makes one"),
    (StageNotFound, "it may have expired; stage the records again"),
    (InvalidSetting, "`topics settings` shows them all"),
    (Unauthorized, "name a key with --key or TOPICS_API_KEY"),
    (Forbidden, "use a key that has the scope and the prefix"),
    (TopicFull, "`topics delete` makes room, `topics topic config` raises the cap"),
    (NotUnderstood, ""),
    (Damaged, "`topics fsck` says what is left, `--repair` keeps everything readable"),
    (ConnectionFailed, "`topics serve` starts one, --url or TOPICS_URL names another"),
    (TimedOut, "`topics doctor --url` says how it is"),
    (NotReady, "try again when it is ready"),
    (ShuttingDown, "try again when it is back"),
    (Throttled, "try again a little later"),
)
_WITHOUT_TOPIC = {
    "heap": "`topics heap create NAME` makes one, `topics heap ls` lists those there are",
    "dlq": "`topics heap ls` lists those there are",
    "queue": "`topics topic create NAME --type queue` makes one, `topics queue ls` lists those there are",
}
"""What helps where a topic is missing, by commands that want one of a kind."""


def complain(error: TopicsError, command: str = "") -> None:
    """Say an error on stderr."""
    advice = next((text for kind, text in _NEXT if isinstance(error, kind)), "")
    if isinstance(error, TopicNotFound):
        advice = _WITHOUT_TOPIC.get(command, advice)
    message = error.message
    # Some messages know better than a table what is to be done.
    if advice and "`topics " not in message:
        message = f"{message}; {advice}"
    if isinstance(error, InvalidSql):
        # The lines below the first one show the place.
        message, *shown = message.split("\n")
        say(message, error.code)
        Console(stderr=True, highlight=False).print(Text("\n".join(map(printable, shown))), soft_wrap=True)
    else:
        say(message, error.code)


def say(message: str, code: str) -> None:
    """`topics: code: message`, one line for each thing that is wrong. Where nobody can be told, the exit code tells."""
    console = Console(stderr=True, highlight=False)
    with suppress(OSError):
        for line in message.splitlines():
            text = Text.assemble(("topics: ", "bold red"), (f"{code}: ", "red"), printable(line))
            console.print(text, soft_wrap=True)


def ending(error: Exception | KeyboardInterrupt, command: str = "") -> Exit:
    """How a command ends that this stopped, after it has been said. Raises what is a bug of ours."""
    match error:
        case CycloptsError():
            say(f"{_usage(error)}; see `{' '.join(('topics', *(error.command_chain or ())))} --help`", "usage")
            return Exit.USAGE
        case TopicsError():
            complain(error, command)
            return exit_of(error)
        case KeyboardInterrupt():
            say("stopped by Ctrl-C", "interrupted")
            return Exit.INTERRUPTED
        case Terminated():
            say("stopped by SIGTERM", "terminated")
            return Exit.TERMINATED
        case BrokenPipeError():
            return Exit.PIPE_CLOSED
        case OSError():
            where = "" if error.filename is None else f"{error.filename}: "
            say(f"{where}{error.strerror or error}; see to it and try again", "io_error")
            return Exit.FAILED
        case _:
            raise error


def _usage(error: CycloptsError) -> str:
    option = (error.unused_tokens or [""])[0].partition("=")[0]
    if isinstance(error, UnknownCommandError) and option.startswith("-"):
        return f"{option} comes behind a command"
    text = " ".join(str(error).split())
    return text if text.endswith("...") else text.removesuffix(".")
