"""A real browser: Debian's Chromium, driven by Playwright, with nothing of earlier runs in it and nobody to call."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import BrowserContext, sync_playwright

PROGRAM = shutil.which("chromium")
MISSING = "no chromium, so the page is not tried in a browser (Debian: apt install chromium)"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEW = {"width": 900, "height": 560}
LONG_MS = 60_000
"""How long to wait for what must come: a failure, not a duration."""


@contextmanager
def browser(profile: Path) -> Iterator[BrowserContext]:
    """A browser whose profile is a new directory."""
    assert PROGRAM is not None
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch_persistent_context(
            profile, executable_path=PROGRAM, headless=True, args=FLAGS, viewport=VIEW, locale="en-GB"
        )
        opened.set_default_timeout(LONG_MS)
        try:
            yield opened
        finally:
            opened.close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """The test tells what matters."""


@contextmanager
def pages(directory: Path) -> Iterator[str]:
    """The origin at which a directory's files are served, as `python3 -m http.server` does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(directory))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
