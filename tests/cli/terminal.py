"""A command at a real pseudo-terminal: what it shows, keys that are pressed, a window that has a width."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.rig import clean_environment

CTRL_C = b"\x03"
CTRL_D = b"\x04"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")
TIMEOUT_S = 60


class Terminal:
    """Use it in `with`; the process is gone behind it."""

    def __init__(self, *arguments: str | Path, columns: int = 100, cwd: Path | None = None, **variables: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = clean_environment() | {"TERM": "xterm-256color", **variables}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "topics", *map(str, arguments)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)
        self.raw = b""

    @property
    def shown(self) -> str:
        """All of it as text, without colours and movements."""
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r\n", "\n")

    def wait_for(self, text: str) -> None:
        while text not in self.shown:
            chunk = self._read()
            assert chunk, f"it ended with {self.process.wait(TIMEOUT_S)} without {text!r}: {self.shown}"

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def end(self) -> int:
        """Its exit code, when everything it says has been read."""
        while self._read():
            pass
        return self.process.wait(TIMEOUT_S)

    def _read(self) -> bytes:
        try:
            chunk = os.read(self._master, 65536)
        except OSError as error:
            # This is how a terminal says that the other side is closed.
            assert error.errno == errno.EIO
            return b""
        self.raw += chunk
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(TIMEOUT_S)
        os.close(self._master)
