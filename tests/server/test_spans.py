from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.server.collector import collecting
from topics import __version__
from topics.core.records import DEFAULT_LIMITS
from topics.errors import RequestTimeout, TopicFull
from topics.server import spans as module
from topics.server.answers import failure
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Reply, Request, Response
from topics.server.principal import NO_SCOPE, Scope
from topics.server.route import Operation, Route
from topics.server.spans import Spans
from topics.server.table import Table
from topics.settings import Settings, load
from topics.testing import SimClock

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_EXPORTER_OTLP_HEADERS"):
        monkeypatch.delenv(name, raising=False)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


class Desk:
    """A dispatcher with spans around it, over routes of its own."""

    def __init__(self, spans: Spans, **variables: str) -> None:
        settings = load({f"TOPICS_{name.upper()}": value for name, value in variables.items()})
        context = Context(settings, DEFAULT_LIMITS, SimClock(), 0)
        self.parked: list[Reply] = []
        plain = Operation("", "", "")
        table = Table(
            [
                Route("POST", "/write/{topic}", Scope.WRITE, self._write, plain, name_param="topic"),
                Route("GET", "/full", NO_SCOPE, self._full, plain),
                Route("GET", "/odd", NO_SCOPE, self._odd, plain),
                Route("GET", "/break", NO_SCOPE, self._break, plain),
                Route("GET", "/park", NO_SCOPE, lambda context, request, reply: self.parked.append(reply), plain),
            ]
        )
        self._dispatch = spans.around(Dispatcher(context, table, context.authenticator, context.quota), table)
        self.refuse = spans.around_refusals(partial(failure, context), table)

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> list[Response]:
        answers: list[Response] = []
        request = Request(method, path, "token=hunter2", headers or {}, body, 0, "req-1")
        self._dispatch(request, answers.append)
        return answers

    @staticmethod
    def _odd(context: Context, request: Request, reply: Reply) -> None:
        reply(Response(200, b'{"performance":{"fsync_ms":"none"}}'))

    @staticmethod
    def _write(context: Context, request: Request, reply: Reply) -> None:
        measured = b'"performance":{"server_total_ms":1.5,"wal_append_ms":0.25,"fsync_ms":0.5}}'
        reply(Response(200, b'{"data":{"performance":{"wal_append_ms":99}},' + measured))

    @staticmethod
    def _full(context: Context, request: Request, reply: Reply) -> None:
        raise TopicFull("full")

    @staticmethod
    def _break(context: Context, request: Request, reply: Reply) -> None:
        raise RuntimeError("the inside of the server")


def made(ask: Callable[[Desk], object], settings: Settings | None = None, **variables: str) -> list[ReadableSpan]:
    """The spans of what `ask` asks, when the server has closed."""
    exporter = InMemorySpanExporter()

    async def test() -> None:
        spans = Spans(settings or Settings(), exporter)
        spans.start()
        ask(Desk(spans, **variables))
        await spans.close()

    run(test)
    return list(exporter.get_finished_spans())


def attributes(span: ReadableSpan) -> dict[str, Any]:
    assert span.attributes is not None
    return dict(span.attributes)


def test_a_request_is_one_span_named_by_its_route() -> None:
    (span,) = made(lambda desk: desk.ask("POST", "/write/orders", body=b"{}"))
    assert (span.name, span.kind, span.parent) == ("POST /write/{topic}", SpanKind.SERVER, None)
    assert span.status.status_code is StatusCode.UNSET
    found = attributes(span)
    assert found["http.request.method"] == "POST"
    assert found["http.route"] == "/write/{topic}"
    assert found["url.path"] == "/write/orders"
    assert found["http.response.status_code"] == 200
    assert found["http.request.body.size"] == 2
    assert found["topics.topic"] == "orders"
    assert found["topics.request_id"] == "req-1"


def test_what_the_answer_measured_is_told_and_not_what_a_record_says() -> None:
    (span,) = made(lambda desk: desk.ask("POST", "/write/orders"))
    found = attributes(span)
    assert (found["topics.wal_append_ms"], found["topics.fsync_ms"]) == (0.25, 0.5)
    assert found["topics.server_total_ms"] == 1.5


def test_an_answer_that_only_looks_measured_has_no_measures() -> None:
    (span,) = made(lambda desk: desk.ask("GET", "/odd"))
    assert attributes(span)["http.response.status_code"] == 200
    assert not [name for name in attributes(span) if name.endswith("_ms")]


@pytest.mark.parametrize(
    ("method", "path", "name", "code"),
    [
        ("GET", "/full", "GET /full", "topic_full"),
        ("GET", "/break", "GET /break", "internal"),
        ("GET", "/nowhere", "GET", "not_found"),
        ("PUT", "/full", "PUT", "method_not_allowed"),
        ("POST", "/write/a", "POST /write/{topic}", "unauthorized"),
    ],
)
def test_a_refusal_is_an_error_with_our_code(method: str, path: str, name: str, code: str) -> None:
    (span,) = made(lambda desk: desk.ask(method, path), api_keys="secret")
    assert span.name == name
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, code)
    assert attributes(span)["error.type"] == code


@pytest.mark.parametrize(
    ("method", "path", "name"), [("", "", "HTTP"), ("GET", "/full", "GET /full"), ("GET", "", "GET")]
)
def test_what_is_refused_before_the_dispatch_is_a_span_too(method: str, path: str, name: str) -> None:
    request = Request(method, path, "", {}, b"", 0, "req-1")
    (span,) = made(lambda desk: desk.refuse(request, RequestTimeout("too slow")))
    assert (span.name, span.status.description) == (name, "request_timeout")
    assert attributes(span)["http.response.status_code"] == 408


def test_an_error_that_is_not_ours_is_told_by_its_status() -> None:
    (span,) = made(lambda desk: (desk.ask("GET", "/park"), desk.parked[0](Response(502, b"<html>"))))
    assert attributes(span)["error.type"] == "502"


def test_the_caller_is_the_parent() -> None:
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=1"}
    (span,) = made(lambda desk: desk.ask("GET", "/full", headers))
    assert span.parent is not None and span.context is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.context.trace_state["vendor"] == "1"


def test_a_caller_who_is_not_sampled_makes_no_span_and_gets_its_answer() -> None:
    answers: list[Response] = []
    headers = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    assert made(lambda desk: answers.extend(desk.ask("POST", "/write/a", headers))) == []
    assert [answer.status for answer in answers] == [200]


@pytest.mark.parametrize("given", ["", "garbage", f"00-{'0' * 32}-{PARENT}-01", "ff-" + "x" * 600])
def test_a_parent_that_makes_no_sense_is_none(given: str) -> None:
    (span,) = made(lambda desk: desk.ask("GET", "/full", {"traceparent": given}))
    assert span.parent is None


def test_neither_keys_nor_queries_nor_payloads_are_told() -> None:
    def ask(desk: Desk) -> None:
        desk.ask("POST", "/write/orders", {"authorization": "Bearer hunter2"}, b'{"data": "hunter2"}')
        desk.ask("GET", "/bearer hunter2")

    spans = made(ask, api_keys="hunter2")
    assert attributes(spans[0])["topics.key"] == "key-1"
    assert len(spans) == 2
    assert "hunter2" not in "".join(span.to_json() for span in spans)


def test_a_span_lasts_until_the_answer() -> None:
    exporter = InMemorySpanExporter()

    async def test() -> None:
        spans = Spans(Settings(), exporter)
        spans.start()
        desk = Desk(spans)
        desk.ask("GET", "/park")
        desk.ask("GET", "/park")
        desk.parked[1](Response(200))
        await spans.close()

    run(test)
    assert len(exporter.get_finished_spans()) == 1


def test_the_service_is_named_by_the_setting_else_by_the_standard_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    def service(settings: Settings) -> dict[str, Any]:
        (span,) = made(lambda desk: desk.ask("GET", "/full"), settings)
        return dict(span.resource.attributes)

    assert service(Settings())["service.name"] == "topics"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "theirs")
    found = service(Settings())
    assert (found["service.name"], found["deployment.environment"]) == ("theirs", "test")
    assert found["service.version"] == __version__
    assert service(Settings(otel_service_name="ours"))["service.name"] == "ours"


def test_the_standard_sampler_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    assert made(lambda desk: desk.ask("GET", "/full")) == []


def test_spans_reach_a_collector_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=42")
    with collecting() as collector:

        async def test() -> None:
            spans = Spans(Settings(otel_endpoint=f"{collector.url}/", otel_service_name="orders"))
            spans.start()
            Desk(spans).ask("GET", "/full", {"traceparent": f"00-{TRACE}-{PARENT}-01"})
            await spans.close()

        run(test)
    (sent,) = collector.sent
    assert (sent.path, sent.name, sent.error) == ("/v1/traces", "GET /full", "topic_full")
    assert (sent.trace_id, sent.parent_id) == (TRACE, PARENT)
    assert sent.resource["service.name"] == "orders"
    assert sent.headers["x-tenant"] == "42"


def test_a_collector_that_is_gone_hurts_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The SDK tries again for as long as its own timeout; the end of the server does not wait for that.
    monkeypatch.setattr(module, "FLUSH_S", 0.01)
    with collecting() as collector:
        gone = collector.url

    async def test() -> None:
        spans = Spans(Settings(otel_endpoint=gone))
        spans.start()
        (answer,) = Desk(spans).ask("GET", "/full")
        assert json.loads(answer.body)["error"]["code"] == "topic_full"
        await spans.close()

    run(test)
    assert "the collector did not take the last spans in time" in caplog.text
