from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.cli.standin import TIME, standing_in
from topics.cli.probe import Probe
from topics.errors import TimedOut


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The address of a server that answers one request with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.timeout = 30
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        thread.join()


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b'{"ready":true}', {"ready": True}),
        (b"[]", {}),
        (b"<html>", {}),
        (b'{"a":"\xff"}', {}),
        (b'{"a":%b%b}' % (b"[" * 100_000, b"]" * 100_000), {}),
    ],
    ids=lambda each: str(each)[:20],
)
def test_whatever_a_server_of_another_kind_says_is_no_error(body: bytes, fields: dict[str, object]) -> None:
    with answering(body) as url:
        answer = Probe(url, None).get("/v0/health")
    assert (answer.status, answer.fields) == (200, fields)


def test_a_server_that_says_nothing_is_waited_for_only_so_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TimedOut, match=f"{url} does not answer within 0.05 s"):
            Probe(url, None, timeout_s=0.05).get("/v0/health")


@pytest.mark.parametrize(
    ("date", "now_ms"),
    [(TIME, 1_794_805_200_000), ("soon", None), ("Mon, 99 Nov 2026 05:00:00 GMT", None), (None, None)],
)
def test_the_time_that_a_server_tells(date: str | None, now_ms: int | None) -> None:
    with standing_in({"/v0/health": (200, {})}, date=date) as url:
        assert Probe(url, None).get("/v0/health").server_now_ms == now_ms
