"""One trace from who enqueues a message to who works on it, over a server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from topics import testing

trace = pytest.importorskip("opentelemetry.trace")
sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")

GUARD_S = 30


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a program that traces would send away; the provider of this process stays as it is."""
    exporter = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.mark.parametrize("over_grpc", [False, True], ids=["http", "grpc"])
def test_a_message_carries_its_trace_to_whoever_gets_it(spans: Any, over_grpc: bool) -> None:
    async def run() -> None:
        async with asyncio.timeout(GUARD_S), testing.server(no_grpc=not over_grpc) as server:
            how = {"grpc": server.grpc_address} if over_grpc else {}
            async with server.client(**how) as client:
                heap = client.heap("jobs")
                await heap.create()
                await heap.enqueue("one", meta={"k": "v"})
                async for message in heap.pop():
                    async with message:
                        assert message.meta["k"] == "v"
                    return

    asyncio.run(run())
    sent, processed = spans.get_finished_spans()
    assert (sent.name, sent.kind) == ("send jobs", trace.SpanKind.PRODUCER)
    assert (processed.name, processed.kind) == ("process jobs", trace.SpanKind.CONSUMER)
    assert processed.context.trace_id == sent.context.trace_id
    assert processed.parent.span_id == sent.context.span_id
    assert processed.attributes["messaging.message.id"] == sent.attributes["messaging.message.id"]
    assert processed.attributes["messaging.destination.name"] == "jobs"


def test_what_fails_is_said_on_its_span(spans: Any) -> None:
    async def run() -> None:
        async with asyncio.timeout(GUARD_S), testing.server() as server, server.client() as client:
            heap = client.heap("jobs")
            await heap.create()
            await heap.enqueue_many([{"payload": 1}, {"payload": 2}])
            (message,) = await heap.take()
            with pytest.raises(ValueError, match="bad"):
                async with message:
                    raise ValueError("bad")

    asyncio.run(run())
    sent, processed = spans.get_finished_spans()
    assert sent.attributes["messaging.batch.message_count"] == 2
    assert processed.status.status_code is trace.StatusCode.ERROR and "bad" in processed.status.description
