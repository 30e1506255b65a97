"""The page of the browser guide in a real browser: with the guide's own server, backend and agent, as they stand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket

import pytest
from playwright.sync_api import expect

from tests.cli.rig import clean_environment
from tests.e2e.browser import LONG_MS, MISSING, PROGRAM, browser
from tests.e2e.served import ROOT, Caller
from tests.tour import Tour, blocks

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)

GUIDE = (ROOT / "docs" / "guides" / "browser.md").read_text()
BACKEND = "localhost:8000"


def free_address() -> str:
    with socket() as found:
        found.bind(("localhost", 0))
        return f"localhost:{found.getsockname()[1]}"


@contextmanager
def backend(directory: Path) -> Iterator[str]:
    """The guide's backend, and its address when it listens."""
    command = [sys.executable, "backend.py"]
    with subprocess.Popen(
        command, cwd=directory, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def run_agent(directory: Path, text: str) -> None:
    subprocess.run([sys.executable, "agent.py", text], cwd=directory, env=clean_environment(), check=True)


def test_an_answer_appears_and_each_token_once(tmp_path: Path) -> None:
    found = blocks(GUIDE.replace(BACKEND, free_address()))
    (serving,) = (block for block in found if block.serves)
    with Tour(tmp_path) as tour:
        tour.take(serving)
        for block in found:
            if block.mark == "file":
                tour.take(block)
        caller = Caller(tour.url, "agent-secret")
        written = caller.ask("POST", "/v0/topics/answer:7", {"records": [{"data": {"token": "Well: "}}]})
        caller.close()
        assert written[0] == 201
        with backend(tmp_path) as address, browser(tmp_path / "profile") as chromium:
            page = chromium.new_page()
            page.goto(address)
            expect(page.locator("#state")).to_have_text("live", timeout=LONG_MS)
            expect(page.locator("#answer")).to_have_text("Well:")
            # Everybody who was connected is cut off, and the server that comes back does not know the session.
            tour.take(serving)
            run_agent(tmp_path, "the answer is forty-two.")
            expect(page.locator("#state")).to_have_text("done", timeout=LONG_MS)
            expect(page.locator("#answer")).to_have_text("Well: the answer is forty-two.")
