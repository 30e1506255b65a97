"""The code blocks of a document, carried out from top to bottom as a reader would.

    ```sh       runs in a shell; a block with `topics serve` starts the server that later blocks talk to
    ```console  each line behind `$ ` runs in a shell, and what stands below is what a terminal shows then
    ```python   runs in a process of its own
    ```text     directly behind one of them is what it prints; `…` stands for anything within its line
    <!-- file: NAME -->           before a block of any language: it is saved under that name instead
    <!-- not run: REASON -->      before a block that cannot be run here

A document has one directory, one environment (an `export` lasts) and one server, on the address that it calls
`localhost:4000`, with gRPC on `localhost:4001`. Unless a block starts it first, that is a plain `topics serve`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.cli.rig import clean_environment
from tests.cli.terminal import ESCAPES

TIMEOUT_S = 120
ADDRESS = "localhost:4000"
GRPC_ADDRESS = "localhost:4001"
PLAIN = "topics serve\n"
COLUMNS = 100
LANGUAGES = {"sh", "console", "python"}
"""What is run."""

_BLOCK = re.compile(
    r"^(?:<!-- (?P<mark>file|not run): (?P<about>[^\n]+) -->\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"(?:\n+```text\n(?P<shown>.*?)^```$)?",
    re.M | re.S,
)
_SERVE = re.compile(r"^(?=topics serve\b)", re.M)
_TALKS = re.compile(rf"{ADDRESS}|\bconnect\(|\btopics [a-z]")
_EXPORT = re.compile(r"^export .*$", re.M)


@dataclass(frozen=True)
class Block:
    language: str
    code: str
    shown: str | None
    """What it prints, if the document says so."""
    mark: str | None
    about: str | None

    @property
    def runs(self) -> bool:
        return self.mark is None and self.language in LANGUAGES

    @property
    def serves(self) -> bool:
        return self.language == "sh" and bool(_SERVE.search(self.code))


def blocks(text: str) -> list[Block]:
    return [Block(**found.groupdict()) for found in _BLOCK.finditer(text)]


def agree(said: str, shown: str) -> bool:
    """Whether a document shows what was said; times and addresses differ from run to run."""
    lines = [".*" if line == "…" else re.escape(line).replace("…", "[^\n]*") for line in _lasting(shown).split("\n")]
    return re.fullmatch("\n".join(lines), _lasting(said), re.S) is not None


def _lasting(text: str) -> str:
    text = re.sub(r"\b1[0-9]{12}\b", "1780420000000", text.strip())
    text = re.sub(r"\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?", "2026-06-02 17:06:40", text)
    text = re.sub(r" +$", "", text, flags=re.M)
    return text.replace("127.0.0.1:4000", ADDRESS)


class Tour:
    """A place to run blocks in."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._exports: list[str] = []
        self._server: subprocess.Popen[str] | None = None
        self._address = self._grpc_address = ""
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = clean_environment() | {"PATH": search, "TERM": "xterm-256color", "PYTHONWARNINGS": "error"}
        del self._environment["COLUMNS"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stop()

    def take(self, block: Block) -> None:
        """Do what a block says, and raise AssertionError unless it does what the document says."""
        if block.mark == "file":
            assert block.about is not None
            self._serve_for(block)
            (self._directory / block.about).write_text(self._here(block.code))
        elif block.runs and block.serves:
            self._serve(block.code)
        elif block.runs:
            self._serve_for(block)
            self._run(block)

    @property
    def url(self) -> str:
        """Of the server, once there is one."""
        return f"http://{self._address}"

    def _run(self, block: Block) -> None:
        if block.language == "console":
            for part in re.split(r"^\$ ", block.code, flags=re.M)[1:]:
                command, _, shown = part.partition("\n")
                self._compare(command, self._at_terminal(["sh", "-c", self._here(command)]), shown)
            return
        begin = [sys.executable, "-c"] if block.language == "python" else ["sh", "-ec"]
        done = subprocess.run(**self._process([*begin, self._here(block.code)]), capture_output=True, timeout=TIMEOUT_S)
        assert (done.returncode, done.stderr) == (0, ""), f"{block.code}\nsaid {done.stdout}\nand {done.stderr}"
        if block.shown is not None:
            self._compare(block.code, done.stdout, block.shown)
        if block.language == "sh":
            self._exports += _EXPORT.findall(block.code)

    def _process(self, command: list[str]) -> dict[str, Any]:
        script = "\n".join([*self._exports, 'exec "$@"'])
        return {
            "args": ["sh", "-ec", script, "tour", *command],
            "cwd": self._directory,
            "env": self._environment | {"TOPICS_URL": f"http://{self._address}"},
            "stdin": subprocess.DEVNULL,
            "text": True,
        }

    def _compare(self, code: str, said: str, shown: str) -> None:
        if self._server is not None:
            said = said.replace(self._address, ADDRESS)
        assert agree(said, shown), f"{code}\nsays\n{said}\nand the document shows\n{shown}"

    def _at_terminal(self, command: list[str]) -> str:
        """What a terminal shows in the end, without colours: no progress, and errors last."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
        with subprocess.Popen(**self._process(command), stdout=slave, stderr=subprocess.PIPE) as process:
            os.close(slave)
            said = b"".join(iter(lambda: _read(master), b"")).decode()
            assert process.stderr is not None
            errors = process.stderr.read()
        os.close(master)
        return ESCAPES.sub("", said).replace("\r\n", "\n") + errors

    def _serve_for(self, block: Block) -> None:
        """A server, if the block talks to one and there is none."""
        if self._server is None and _TALKS.search(block.code):
            self._serve(PLAIN)

    def _serve(self, code: str) -> None:
        self._stop()
        process = subprocess.Popen(
            ["sh", "-ec", _SERVE.sub("exec ", code)],
            cwd=self._directory,
            env=self._environment
            | {
                "TOPICS_PORT": self._address.rpartition(":")[2] or "0",
                "TOPICS_GRPC_PORT": self._grpc_address.rpartition(":")[2] or "0",
                # A machine that is busy with other tests is no reason to refuse what a reader types.
                "TOPICS_THROTTLE_LAG_MS": "0",
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            said = json.loads(line) if line.startswith("{") else {"event": ""}
            if said["event"] == "listening":
                self._address = said["url"].removeprefix("http://")
                self._grpc_address = said["grpc"]
            if said["event"] == "ready":
                self._server = process
                return
        process.stderr.close()
        raise AssertionError(f"{code}\nended with {process.wait(TIMEOUT_S)} and said\n{''.join(lines)}")

    def _stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=TIMEOUT_S)
            assert self._server.returncode == 0
            self._server = None

    def _here(self, code: str) -> str:
        code = re.sub(rf"{GRPC_ADDRESS}|127\.0\.0\.1:4001", self._grpc_address, code)
        return re.sub(rf"{ADDRESS}|127\.0\.0\.1:4000", self._address, code)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        # This is how a terminal says that the other side is closed.
        assert error.errno == errno.EIO
        return b""
