from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.client.rig import on_loop
from tests.client.scripted import OK, Side, calling, scripted
from topics.client import tracing
from topics.client.payload import prepared
from topics.model import Record

trace = pytest.importorskip("opentelemetry.trace")

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
SPAN_ID = 0xB7AD6B7169203331
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ROOT = Path(__file__).parents[2]


def span() -> object:
    state = trace.TraceState([("vendor", "x")])
    context = trace.SpanContext(TRACE_ID, SPAN_ID, True, trace.TraceFlags(trace.TraceFlags.SAMPLED), state)
    return trace.NonRecordingSpan(context)


def test_the_active_span_goes_with_each_record() -> None:
    assert prepared([{"data": 1}]) == [{"data": 1}]
    with trace.use_span(span()):
        first, second = prepared([{"data": 1}, {"data": 2, "meta": {"k": "v", "tracestate": "mine"}}])
    assert first == {"data": 1, "meta": {"traceparent": PARENT, "tracestate": "vendor=x"}}
    assert second["meta"] == {"traceparent": PARENT, "tracestate": "mine", "k": "v"}


@on_loop
async def test_the_server_hears_of_it_too() -> None:
    asked: list[bytes] = []

    async def note(side: Side) -> None:
        while True:
            asked.append(await side.request())
            side.send(OK)

    async with scripted(note) as server, calling(server) as caller:
        await caller.call("GET", "/", repeatable=True)
        with trace.use_span(span()):
            await caller.call("GET", "/", repeatable=True)
    assert b"traceparent" not in asked[0]
    assert f"traceparent: {PARENT}\r\n".encode() in asked[1]


def test_a_reader_gets_the_context_back() -> None:
    record = Record(1, 1, None, meta={"traceparent": PARENT, "k": "v"})
    found = trace.get_current_span(tracing.trace_context(record)).get_span_context()
    assert (found.trace_id, found.span_id, found.is_remote) == (TRACE_ID, SPAN_ID, True)
    assert tracing.trace_context(Record(1, 1, None)) is None
    assert tracing.trace_context(Record(1, 1, None, meta={"k": "v"})) is None


def test_nothing_is_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys; from topics.client.payload import prepared; prepared([{'data': 1}]);"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
