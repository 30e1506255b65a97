"""A stream of Spark from topic to topic, with tasks, drivers and the server killed at every step of a batch.

Each run of the program goes on from the checkpoint of the last one, with tasks of another size. What was copied is the
source, in order, once.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.e2e.served import ROOT, Served
from tests.e2e.sparkcopy import AFTER_PUBLISH, AFTER_STAGE, BATCH_ROWS, BEFORE_PUBLISH, BEFORE_STAGE

pytestmark = [
    pytest.mark.xdist_group("spark apart"),
    pytest.mark.skipif(shutil.which("java") is None, reason="no java (Debian: apt install openjdk-17-jre-headless)"),
    # Each killed driver means another start of a JVM.
    pytest.mark.timeout(900),
]
KILLS = [
    (0, BEFORE_STAGE, "worker"),
    (0, AFTER_STAGE, "worker"),
    (0, BEFORE_STAGE, "server"),
    (0, AFTER_STAGE, "server"),
    (1, BEFORE_PUBLISH, "worker"),
    (1, AFTER_PUBLISH, "worker"),
    (2, BEFORE_PUBLISH, "server"),
    (2, AFTER_PUBLISH, "server"),
    (3, AFTER_STAGE, "driver"),
    (4, BEFORE_PUBLISH, "driver"),
    (5, AFTER_PUBLISH, "driver"),
]
BATCHES = 7
RUNS_MAX = 10


class Immortal:
    """A server that is started again, at the same port, whenever it is killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._server = self._start(0)
        self.url = self._server.url
        self._over = False
        self._watch = Thread(target=self._revive)
        self._watch.start()

    def _start(self, port: int) -> Served:
        server = Served(self._directory / "data", port=port)
        server.wait_for("ready")
        (self._directory / "server.pid").write_text(str(server.process.pid))
        return server

    def _revive(self) -> None:
        while True:
            self._server.process.communicate()
            if self._over:
                return
            self._server = self._start(int(self.url.rpartition(":")[2]))

    def end(self) -> None:
        self._over = True
        self._server.process.kill()
        self._watch.join()


def test_the_copy_is_exact_whatever_is_killed(tmp_path: Path) -> None:
    (tmp_path / "kills.json").write_text(json.dumps(KILLS))
    server = Immortal(tmp_path)
    try:
        records = [{"data": number, "tag": f"t{number % 3}"} for number in range(BATCHES * BATCH_ROWS)]
        with server._server.connect() as caller:
            for at in range(0, len(records), BATCH_ROWS):
                status, _ = caller.ask("POST", "/v0/topics/from", {"records": records[at : at + BATCH_ROWS]})
                assert status < 300
        for run in range(RUNS_MAX):
            rows_per_task = [700, 300, 450, 1000][run % 4]
            program = [sys.executable, "-m", "tests.e2e.sparkcopy", server.url, str(tmp_path), str(rows_per_task)]
            # Not a pipe: what a killed driver leaves behind would hold it open.
            with (tmp_path / f"run-{run}").open("w") as said:
                ended = subprocess.run(program, cwd=ROOT, stdout=said, stderr=said).returncode
            if not ended:
                break
        else:
            raise AssertionError(f"it never came to its end:\n{(tmp_path / f'run-{run}').read_text()[-5000:]}")
        done = sorted(path.name for path in tmp_path.glob("killed-*"))
        assert len(done) == len(KILLS), f"only {done} came to pass"
        assert run == len([victim for _, _, victim in KILLS if victim == "driver"]), "each driver was another run"
        with server._server.connect() as caller:
            found: list[dict[str, object]] = []
            while True:
                wanted = {"from_seq": len(found), "limit": BATCH_ROWS, "include_tags": True}
                _, page = caller.ask("POST", "/v0/topics/to/diff", wanted)
                found += page["records"]
                if page["caught_up"]:
                    break
        assert [{"data": each["data"], "tag": each["$tag"]} for each in found] == records
        assert [each["$seq"] for each in found] == list(range(1, len(records) + 1))
    finally:
        server.end()
