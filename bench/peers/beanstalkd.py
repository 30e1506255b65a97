"""beanstalkd with its binlog: jobs are in files, which it syncs every 50 ms unless told otherwise."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.peers.process import HOST, LeftOut, Process, connected, free_port

FILL = 1000
"""Jobs that are put in one piece."""
RUN_SECONDS = 600
"""How long a worker may keep a job."""


def program() -> str:
    found = shutil.which("beanstalkd")
    if found is None:
        raise LeftOut("beanstalkd is not installed (Debian: apt install beanstalkd)")
    return found


def version() -> str:
    told = subprocess.run([program(), "-v"], capture_output=True, text=True, check=True, timeout=10).stdout
    return told.split()[-1]


class Beanstalkd:
    def __init__(self, directory: Path, *flags: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        command = [program(), "-l", HOST, "-p", str(self.port), "-b", str(directory), *flags]
        self.process = Process(command, directory.parent / f"{directory.name}.log")
        try:
            self.process.wait_until(self._is_ready)
        except BaseException:
            self.process.kill()
            raise

    def _is_ready(self) -> bool:
        with connected(self.port) as stream:
            stream.sendall(b"list-tubes\r\n")
            return stream.recv(4096).startswith(b"OK")

    def fill(self, datas: Sequence[bytes], count: int, priorities: int = 1) -> None:
        """Put so many jobs, whose data is one of these, with priorities from 0 on."""
        with connected(self.port) as stream, stream.makefile("rb") as replies:
            for first in range(0, count, FILL):
                chosen = [(number, datas[number % len(datas)]) for number in range(first, min(first + FILL, count))]
                puts = (
                    b"put %d 0 %d %d\r\n%b\r\n" % (number * 7919 % priorities, RUN_SECONDS, len(data), data)
                    for number, data in chosen
                )
                stream.sendall(b"".join(puts))
                for _ in chosen:
                    reply = replies.readline()
                    if not reply.startswith(b"INSERTED "):
                        raise RuntimeError(f"beanstalkd took no job: {reply!r}")

    def __enter__(self) -> Beanstalkd:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stop()
