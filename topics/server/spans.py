"""Spans: what a collector is told of each request, by the OpenTelemetry SDK.

A request has one server span, from its dispatch to its answer, named by its route: `POST /v0/topics/{topic}`. Its
parent is the caller's span, if the request brings a `traceparent`. It says what was asked for, of which topic, by which
key, and how it ended: a refusal has the status error and our code. What the answer measured of itself, such as
`wal_append_ms` and `fsync_ms` of a write, the span says as well. Tokens, queries and payloads are never in it. The span
of an answer that is streamed ends when the stream begins. What is refused before it is a whole request has one too,
with what could be read of it.

Spans are sent in batches by a thread of the SDK. What a slow collector does not take in time is dropped, and the log
says so. Samplers, batch sizes, headers and resource attributes are set by the standard `OTEL_*` variables.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from threading import Thread

import msgspec
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from topics import __version__
from topics.errors import TopicsError
from topics.server.logs import fields, redact
from topics.server.message import Dispatch, Refuse, Reply, Request, Response
from topics.server.table import Table
from topics.server.tracing import unusable
from topics.settings import Settings

SERVICE_NAME = "topics"
TRACES_PATH = "/v1/traces"
FLUSH_S = 5.0
"""How long the end of the server waits for a collector to take the last spans."""
ERROR_STATUS_MIN = 400
TEXT_CHARS_MAX = 512
"""Of a path or a name that a client made up; every valid name is shorter."""
UNREADABLE = "HTTP"
"""The method of what could not be read."""
PERFORMANCE_BYTES_MAX = 512
"""The `performance` object is the last of every answer, and within so many bytes of its end."""

_PERFORMANCE = b'"performance":'
_PARENT = TraceContextTextMapPropagator()

log = logging.getLogger(__name__)


class _Error(msgspec.Struct):
    code: str


class _Refusal(msgspec.Struct):
    error: _Error


class Spans:
    """Made before the server listens, started when it does, closed behind its last answer."""

    def __init__(self, settings: Settings, exporter: SpanExporter | None = None) -> None:
        self._exporter = _exporter(settings.otel_endpoint) if exporter is None else exporter
        # We close it ourselves, at the right moment; at the exit of the process it would be late.
        self._provider = TracerProvider(resource=_resource(settings.otel_service_name), shutdown_on_exit=False)
        self._tracer = self._provider.get_tracer(__name__, __version__)

    def start(self) -> None:
        try:
            self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        except ValueError as error:
            raise unusable(error) from error

    async def close(self) -> None:
        """Send what is not sent yet. A collector that takes too long goes without."""
        flushing = Thread(target=self._provider.shutdown, name="topics-spans", daemon=True)
        flushing.start()
        await asyncio.get_running_loop().run_in_executor(None, flushing.join, FLUSH_S)
        if flushing.is_alive():
            # It gives up the attempt that is under way.
            self._exporter.shutdown()
            log.warning("the collector did not take the last spans in time", extra=fields(waited_s=FLUSH_S))

    def around(self, dispatch: Dispatch, table: Table) -> Dispatch:
        """The same dispatch, with a span around each request."""

        def traced(request: Request, reply: Reply) -> None:
            span = self._begin(request, table)
            if not span.is_recording():
                dispatch(request, reply)
                return

            def answered(response: Response) -> None:
                _end(span, request, response)
                reply(response)

            dispatch(request, answered)

        return traced

    def around_refusals(self, refuse: Refuse, table: Table) -> Refuse:
        """The same for what never gets as far as the dispatch."""

        def traced(request: Request, error: TopicsError) -> Response:
            span = self._begin(request, table)
            response = refuse(request, error)
            _end(span, request, response)
            return response

        return traced

    def _begin(self, request: Request, table: Table) -> Span:
        name, attributes = _asked(request, table)
        return self._tracer.start_span(name, _PARENT.extract(request.headers), SpanKind.SERVER, attributes)


def _exporter(endpoint: str | None) -> SpanExporter:
    """Without an address of ours the SDK takes the standard ones, each with its own rule for the path."""
    return OTLPSpanExporter(endpoint=None if endpoint is None else endpoint.rstrip("/") + TRACES_PATH)


def _resource(service_name: str | None) -> Resource:
    """Who we are: what our setting says, else what the standard variables say, else `topics`."""
    ours = Resource({"service.name": SERVICE_NAME, "service.version": __version__})
    told = ours.merge(OTELResourceDetector().detect())
    given = Resource({} if service_name is None else {"service.name": service_name})
    return Resource.create(told.merge(given).attributes)


def _asked(request: Request, table: Table) -> tuple[str, dict[str, str | int]]:
    """A span's name, of which there are few, and what is known before the answer."""
    method = request.method or UNREADABLE
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "url.path": redact(request.path[:TEXT_CHARS_MAX]),
        "topics.request_id": request.request_id,
        "http.request.body.size": len(request.body),
    }
    try:
        route, _ = table.find(request.method, request.path)
    except TopicsError:
        return method, attributes
    attributes["http.route"] = route.path
    return f"{method} {route.path}", attributes


def _end(span: Span, request: Request, response: Response) -> None:
    span.set_attribute("http.response.status_code", response.status)
    span.set_attribute("http.response.body.size", len(response.body))
    if (topic := request.params.get("topic")) is not None:
        span.set_attribute("topics.topic", topic[:TEXT_CHARS_MAX])
    if request.principal.key_id:
        span.set_attribute("topics.key", request.principal.key_id)
    if response.status >= ERROR_STATUS_MIN:
        code = _code(response)
        span.set_attribute("error.type", code)
        span.set_status(Status(StatusCode.ERROR, code))
    for name, value in _performance(response.body).items():
        span.set_attribute(f"topics.{name}", value)
    span.end()


def _code(response: Response) -> str:
    try:
        return msgspec.json.decode(response.body, type=_Refusal).error.code
    except msgspec.MsgspecError:
        return str(response.status)


def _performance(body: bytes) -> Mapping[str, float]:
    """What an answer says of itself at its end; nothing when it has no such object."""
    end = body[-PERFORMANCE_BYTES_MAX:]
    at = end.rfind(_PERFORMANCE)
    if at < 0:
        return {}
    try:
        return msgspec.json.decode(end[at + len(_PERFORMANCE) : -1], type=dict[str, float])
    except msgspec.MsgspecError:
        return {}
