"""An OpenTelemetry collector on a free port: takes OTLP over HTTP and keeps what it is sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

WAIT_S = 60


@dataclass
class Sent:
    """A span as it came over the wire."""

    name: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    error: str
    """The description of its status when that is an error; empty when it is not."""
    trace_id: str
    span_id: str
    parent_id: str
    headers: dict[str, str]
    """Of the request that brought it."""
    path: str


class Collector:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.status = 200
        """What it answers."""
        self.sent: list[Sent] = []

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            resource = {each.key: _plain(each.value) for each in group.resource.attributes}
            for span in (span for scope in group.scope_spans for span in scope.spans):
                self.sent.append(
                    Sent(
                        span.name,
                        {each.key: _plain(each.value) for each in span.attributes},
                        resource,
                        span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else "",
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        headers,
                        path,
                    )
                )


def _plain(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if collector.status == 200:
                collector.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *said: object) -> None:
            """A test's output is for the test."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(server.server_address[1])
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        yield collector
    finally:
        server.shutdown()
        serving.join(WAIT_S)
        server.server_close()
