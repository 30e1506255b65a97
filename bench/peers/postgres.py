"""PostgreSQL with its own load client `pgbench`: one row an insert, each its own transaction; and a table of jobs.

It refuses to run as root, so root starts it as the user that its Debian package made.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from bench.bodies import bodies
from bench.clients.requests import payloads
from bench.peers.process import HOST, LeftOut, Process, client_core, free_port, pinned

_PACKAGED = Path("/usr/lib/postgresql")
USER = "postgres"
BENCH_SECONDS_MAX = 300.0
_JOBS = "CREATE TABLE jobs (id bigserial PRIMARY KEY, due timestamptz NOT NULL DEFAULT now(), data text NOT NULL)"
_DO_JOBS = """\
WITH taken AS (
    UPDATE jobs SET due = now() + interval '30 s' WHERE id IN (
        SELECT id FROM jobs WHERE due <= now() ORDER BY id LIMIT %d FOR UPDATE SKIP LOCKED
    ) RETURNING id, data
) SELECT array_agg(id) AS ids, array_agg(data) AS datas FROM taken \\gset
DELETE FROM jobs WHERE id = ANY(:ids::bigint[]);
"""
_TABLE = "CREATE TABLE log (seq bigserial PRIMARY KEY, ts timestamptz NOT NULL DEFAULT now(), data text NOT NULL)"


def program(name: str) -> str:
    """A program of PostgreSQL; Debian keeps those of a server off the path."""
    places = sorted(_PACKAGED.glob("*/bin"), key=lambda place: float(place.parent.name), reverse=True)
    for place in (None, *map(str, places)):
        if found := shutil.which(name, path=place):
            return found
    raise LeftOut(f"PostgreSQL's {name} is not installed (Debian: apt install postgresql)")


def version() -> str:
    told = subprocess.run([program("postgres"), "--version"], capture_output=True, text=True, check=True, timeout=10)
    return told.stdout.split()[2]


class Inserted(NamedTuple):
    rows_per_s: float
    seconds: float


class Postgres:
    name = "PostgreSQL INSERT, synchronous_commit on"

    def __init__(self, directory: Path, *settings: str) -> None:
        self._user = USER if os.geteuid() == 0 else None
        self._directory = directory
        directory.mkdir(parents=True)
        if self._user is not None:
            shutil.chown(directory, self._user, self._user)
        data = directory / "data"
        self._run("initdb", "--username", USER, "--auth", "trust", "--encoding", "UTF8", "--pgdata", str(data))
        self.port = free_port()
        words = ["-D", str(data), "-h", HOST, "-p", str(self.port), "-k", ""]
        words += [word for setting in settings for word in ("-c", setting)]
        log = directory.parent / f"{directory.name}.log"
        self.process = Process([program("postgres"), *words], log, self._user)
        try:
            self.process.wait_until(self._is_ready)
            self._run("psql", *self._to(), "--command", _TABLE, "postgres")
        except BaseException:
            self.process.kill()
            raise

    def _to(self) -> list[str]:
        return ["--host", HOST, "--port", str(self.port), "--username", USER]

    def _is_ready(self) -> bool:
        asked = [program("pg_isready"), "--host", HOST, "--port", str(self.port)]
        return subprocess.run(asked, capture_output=True, timeout=10).returncode == 0

    def _run(self, name: str, *words: str, seconds: float = 60.0) -> str:
        done = subprocess.run(
            [program(name), *words],
            capture_output=True,
            text=True,
            timeout=seconds,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else [],
            cwd="/",
            preexec_fn=pinned(client_core()),
        )
        if done.returncode:
            raise LeftOut(
                f"{name} of PostgreSQL ended with: {(done.stderr.strip() or 'nothing said').splitlines()[-1]}"
            )
        return done.stdout

    def insert(self, connections: int, seconds: float) -> Inserted:
        """The same data as everybody gets, by prepared statements."""
        data = payloads(next(bodies(1, records=1)))[0].decode().replace("'", "''")
        script = self._directory / "insert.sql"
        script.write_text(f"INSERT INTO log (data) VALUES ('{data}');\n")
        script.chmod(0o644)
        whole_s = max(1, round(seconds))
        return Inserted(self._bench(script, connections, "--time", str(whole_s)), whole_s)

    def fill_jobs(self, count: int) -> None:
        """So many jobs with the data that everybody gets."""
        data = payloads(next(bodies(1, records=1)))[0].decode().replace("'", "''")
        for command in (
            _JOBS,
            f"INSERT INTO jobs (data) SELECT '{data}' FROM generate_series(1, {count})",
            "VACUUM ANALYZE jobs",
        ):
            self._run("psql", *self._to(), "--command", command, "postgres")

    def do_jobs(self, workers: int, batch: int, count: int) -> Inserted:
        """Take and delete all of them, so many at a time, in two statements that commit by themselves."""
        script = self._directory / "jobs.sql"
        script.write_text(_DO_JOBS % batch)
        script.chmod(0o644)
        cycles = count // batch
        rate = self._bench(script, workers, "--transactions", str(cycles // workers))
        return Inserted(rate * batch, cycles / rate)

    def _bench(self, script: Path, connections: int, *until: str) -> float:
        """How often the script ran in a second."""
        counts = ["--client", str(connections), "--jobs", "1", *until]
        words = ["--no-vacuum", "--protocol", "prepared", *counts, "--file", str(script), *self._to(), "postgres"]
        said = self._run("pgbench", *words, seconds=BENCH_SECONDS_MAX)
        found = re.search(r"tps = ([\d.]+)", said)
        if found is None:
            raise RuntimeError(f"pgbench gave no rate: {said}")
        return float(found[1])

    def __enter__(self) -> Postgres:
        return self

    def __exit__(self, *_: object) -> None:
        # The fast way to stop: do not wait for clients.
        self.process.stop(signal.SIGINT)
