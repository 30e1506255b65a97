"""Backups of a real server under load: restored elsewhere they serve what was there; a death leaves nothing half."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

from tests.cli.rig import spawn
from tests.e2e.served import Caller, Served, served

RECORDS = 20
PAD = "x" * 2000


class Writers:
    """Each topic counts up; what was answered is noted. They end when the server does."""

    def __init__(self, server: Served, count: int) -> None:
        self.answered = [0] * count
        self.written = threading.Event()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(server, number)) for number in range(count)]

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        self.written.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _write(self, server: Served, number: int) -> None:
        caller = server.connect()
        last = 0
        try:
            while not self._over.is_set():
                records = [{"data": {"n": last + 1 + each, "pad": PAD}} for each in range(RECORDS)]
                body = {"records": records, "disable_backpressure": True}
                status, answer = caller.ask("POST", f"/v0/topics/load-{number}", body)
                assert status in (200, 201), answer
                last = self.answered[number] = answer["last_seq"]
                if last > 20 * RECORDS:
                    self.written.set()
        except (OSError, http.client.HTTPException):
            pass  # The server was killed.
        finally:
            caller.close()


def numbers(caller: Caller, topic: str) -> list[int]:
    found: list[int] = []
    cursor = 0
    while True:
        status, page = caller.ask("POST", f"/v0/topics/{topic}/diff", {"from_seq": cursor, "limit": 1000})
        assert status == 200, page
        found += [record["data"]["n"] for record in page["records"]]
        cursor = page["next_from_seq"]
        if cursor >= page["head_seq"]:
            return found


def test_under_load_and_served_elsewhere(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--checkpoint-ms", "50") as server, Writers(server, 3) as writers:
        before = list(writers.answered)
        done = spawn("backup", tmp_path / "a.tar.gz", "--url", server.url)
        assert done.returncode == 0, done.stderr
    done = spawn("restore", tmp_path / "a.tar.gz", tmp_path / "copy")
    assert done.returncode == 0, done.stderr
    assert spawn("fsck", tmp_path / "copy").returncode == 0
    with served(tmp_path / "copy") as copy, copy.connect() as caller:
        for number, answered in enumerate(before):
            found = numbers(caller, f"load-{number}")
            assert found == list(range(1, len(found) + 1)) and answered <= len(found) <= writers.answered[number]


def test_a_server_that_is_killed_leaves_no_archive_and_starts_again(tmp_path: Path) -> None:
    with served(tmp_path / "data", "--checkpoint-ms", "50") as server, Writers(server, 2) as writers:
        connection = http.client.HTTPConnection(*server.connect().address, timeout=60)
        connection.request("GET", "/v0/backup")
        response = connection.getresponse()
        assert response.status == 200
        response.read(1000)
        failed: list[str] = []

        def backup() -> None:
            # Turned away while the other one is read, or cut off: either way there is no file.
            failed.append(spawn("backup", tmp_path / "a.tar", "--url", server.url).stderr)

        other = threading.Thread(target=backup)
        other.start()
        server.kill()
        other.join()
        connection.close()
    assert failed[0].startswith("topics: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    with served(tmp_path / "data") as server, server.connect() as caller:
        for number, answered in enumerate(writers.answered):
            assert len(numbers(caller, f"load-{number}")) >= answered
        assert spawn("backup", tmp_path / "a.tar", "--url", server.url).returncode == 0
