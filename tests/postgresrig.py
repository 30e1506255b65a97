"""A PostgreSQL server for tests: Debian's programs, a directory of its own, gone in the end.

It refuses to run as root, so root starts it as the user that its Debian package made.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PACKAGED = Path("/usr/lib/postgresql")
USER = "postgres"


def directory_of_programs() -> Path | None:
    """Where the newest server's programs are; None when there is none."""
    found = [place for place in _PACKAGED.glob("*/bin") if (place / "initdb").exists()]
    return max(found, key=lambda place: float(place.parent.name), default=None)


@contextmanager
def postgres() -> Iterator[str]:
    """A server without tables; its address."""
    programs = directory_of_programs()
    assert programs is not None
    user = USER if os.geteuid() == 0 else None
    place = Path(tempfile.mkdtemp(prefix="topics-postgres-"))
    if user is not None:
        shutil.chown(place, user, user)
    data = place / "data"
    port = _free_port()

    def run(program: str, *words: str) -> None:
        subprocess.run(
            [str(programs / program), *words],
            check=True,
            capture_output=True,
            timeout=120,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            cwd="/",
        )

    try:
        run("initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync", "--pgdata", str(data))
        options = f"-h 127.0.0.1 -p {port} -k '' -c fsync=off -c max_prepared_transactions=4"
        log = str(place / "log")
        run("pg_ctl", "--pgdata", str(data), "--options", options, "--log", log, "--wait", "start")
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "--pgdata", str(data), "--mode", "immediate", "--wait", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
