"""Trace context in records, for programs that use OpenTelemetry; it is never imported for those that do not.

On the way out, the context of the active span goes into the record's meta, as W3C `traceparent` (and `tracestate`), and
into the headers of the request, so that the server's own span is a part of the trace.
On the way in, `trace_context(record)` gives it back, to make the span that handles the record a part of the same trace:

    with tracer.start_as_current_span("handle", context=topics.trace_context(record)):
        ...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from topics.model import Record

TRACE_KEYS: Final = ("traceparent", "tracestate")

_NOTHING: Mapping[str, str] = {}


def current() -> Mapping[str, str]:
    """The context of the active span as meta; empty without one."""
    # A program that has not loaded it has no span either.
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or not trace.get_current_span().get_span_context().is_valid:
        return _NOTHING
    carrier: dict[str, str] = {}
    _propagator().inject(carrier)
    return {name: carrier[name] for name in TRACE_KEYS if name in carrier}


def trace_context(record: Record) -> Any:
    """The OpenTelemetry context that a record was written in; None when it carries none.

    Needs the package `opentelemetry-api`.
    """
    return context_of(record.meta or {})


def context_of(meta: Mapping[str, str]) -> Any:
    """The OpenTelemetry context in the meta of a record or a message; None when there is none."""
    carrier = {name: value for name, value in meta.items() if name in TRACE_KEYS}
    return _propagator().extract(carrier) if "traceparent" in carrier else None


def _propagator() -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator()
