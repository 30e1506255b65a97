"""More connections than the process may have files: those who write go on."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from tests.e2e.served import TIMEOUT_S, served

FILES_MAX = 96
FILES_SPARE = 16
"""What is free for the log at any time, at least."""
FEW_FILES = ("sh", "-c", f'ulimit -n {FILES_MAX}; exec "$@"', "sh")


def test_a_crowd_cannot_take_the_files_of_the_log(tmp_path: Path) -> None:
    flags = ("--wal-file-bytes", "4KiB", "--checkpoint-ms", "100")
    with ExitStack() as stack:
        server = stack.enter_context(served(tmp_path / "data", *flags, prefix=FEW_FILES))
        writer = stack.enter_context(server.connect())
        assert writer.ask("GET", "/v0/health")[0] == 200
        for _ in range(20):
            for _ in range(10):
                stack.enter_context(socket.create_connection(writer.address, TIMEOUT_S))
            # By now the server has taken those ten; its queue of newcomers is short.
            assert writer.ask("GET", "/v0/health")[0] == 200
        open_files = Path(f"/proc/{server.process.pid}/fd")
        if open_files.exists():
            assert len(list(open_files.iterdir())) < FILES_MAX - FILES_SPARE
        for _ in range(100):
            status, answer = writer.ask("POST", "/v0/topics/t", {"records": [{"data": "x" * 1000}]})
            assert status in (200, 201), answer
        assert server.stop() == 0
    assert any(line["event"].startswith("connections were dropped") for line in server.said)
    assert any("limit of open files is low" in line["event"] for line in server.said)
