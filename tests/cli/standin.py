"""A server that says what ours says only in a bad moment, or never; and a person who answers a question."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from topics.cli.screen import Screen

TIME = "Mon, 16 Nov 2026 05:00:00 GMT"


@contextmanager
def standing_in(answers: Mapping[str, tuple[int, object]], date: str | None = TIME) -> Iterator[str]:
    """The address of a server that answers each path with a status and JSON, and tells a time or none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, fields = answers[self.path.partition("?")[0]]
            body = json.dumps(fields).encode()
            self.send_response_only(status)
            if date is not None:
                self.send_header("Date", date)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def somebody_says(answer: str) -> Iterator[None]:
    """A question is asked as at a terminal, and this is what stdin has then."""
    reader, writer = os.pipe()
    os.write(writer, answer.encode())
    os.close(writer)
    with pytest.MonkeyPatch.context() as patch, os.fdopen(reader) as stdin:
        patch.setattr(sys, "stdin", stdin)
        patch.setattr(Screen, "can_ask", True)
        yield
