"""How a command ends: one table of exit codes, for every command and every error. `docs/CLI.md` shows it."""

from __future__ import annotations

from enum import IntEnum

from topics.errors import (
    Conflict,
    Deposed,
    DirectoryLocked,
    Forbidden,
    InvalidRequest,
    LogStopped,
    NotFound,
    PayloadTooLarge,
    RequestTimeout,
    Throttled,
    TopicFull,
    TopicsError,
    Unauthorized,
    Unavailable,
)


class Exit(IntEnum):
    """The number a shell sees, and what it tells a script."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> Exit:
        member = int.__new__(cls, number)
        member._value_ = number
        member.meaning = meaning
        return member

    OK = 0, "Done."
    FAILED = 1, "It was tried and failed, or a check found something wrong."
    USAGE = 2, "The command line, a setting, or a place it names (a port in use, a locked directory) cannot be used."
    NOT_FOUND = 3, "The topic, file or directory does not exist."
    REFUSED = 4, "The key is missing, unknown or may not do this; or the topic's state forbids it."
    UNREACHABLE = 5, "Nobody answers, or not now (starting, stopping, overloaded): the same again later may work."
    INTERRUPTED = 130, "Ctrl-C. What was answered by then is done, the rest is not."
    PIPE_CLOSED = 141, "Whoever read the output went away, as `head` does when it has enough."
    TERMINATED = 143, "SIGTERM. As for Ctrl-C."


# The first class that an error is an instance of decides.
_BY_CLASS: tuple[tuple[type[TopicsError], Exit], ...] = (
    (InvalidRequest, Exit.USAGE),
    (PayloadTooLarge, Exit.USAGE),
    (DirectoryLocked, Exit.USAGE),
    (NotFound, Exit.NOT_FOUND),
    (Unauthorized, Exit.REFUSED),
    (Forbidden, Exit.REFUSED),
    (Conflict, Exit.REFUSED),
    (TopicFull, Exit.REFUSED),
    (LogStopped, Exit.FAILED),
    (Deposed, Exit.FAILED),
    (Unavailable, Exit.UNREACHABLE),
    (Throttled, Exit.UNREACHABLE),
    (RequestTimeout, Exit.UNREACHABLE),
)


def exit_of(error: TopicsError) -> Exit:
    """How a command ends that this error stopped."""
    return next((code for kind, code in _BY_CLASS if isinstance(error, kind)), Exit.FAILED)
