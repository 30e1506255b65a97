"""The three streams that a command is started with: errors of theirs say so, and one that is closed gets a stand-in.

A file that is opened while one of them is closed has its number: a log of records would be what stderr is, and whatever
a library complains of would be written into it. So the numbers are taken before anything else is opened. Reading from
such a stdin and writing to such a stdout fail, as they do on what is closed, so that nothing is taken for done that was
not; on stderr there is just nobody to tell.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_STAND_INS = (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))
"""By number: what Python calls it and wants of it, and how it is opened instead."""


def stand_in_for_closed() -> None:
    """To be called once, when the process starts."""
    for number, (name, mode, flags) in enumerate(_STAND_INS):
        if getattr(sys, name) is None:
            # The system gives the lowest number that is free, and those below are taken.
            os.set_inheritable(os.open(os.devnull, flags), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))  # noqa: SIM115


@contextmanager
def naming(stream: str) -> Iterator[None]:
    """Say in an error of the system which stream it is about: a full disk may be that of the data, too."""
    try:
        yield
    except OSError as error:
        error.filename = stream
        raise


def let_go() -> None:
    """Hand over what was printed. What nobody takes is forgotten: the interpreter would try it again, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            getattr(stream.buffer, "raw", stream.buffer).close()
