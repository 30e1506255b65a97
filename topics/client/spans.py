"""Spans of heaps, for programs that use OpenTelemetry; it is never imported for those that do not.

An enqueue is a span of kind producer, and its context travels in the message's meta. Working on a message inside
`async with message` is a span of kind consumer in the same trace, however long that is after.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from topics.client import tracing
from topics.heapmodel import EnqueuedBatch, PoppedMessage

SYSTEM: Final = "topics"


class Producing:
    """What an enqueue gets out of its span."""

    meta: Mapping[str, str] = {}

    def done(self, batch: EnqueuedBatch) -> None:
        """Say what came of it."""


class _Traced(Producing):
    def __init__(self, span: Any) -> None:
        self._span = span
        self.meta = tracing.current()

    def done(self, batch: EnqueuedBatch) -> None:
        if len(batch.messages) == 1:
            (message,) = batch.messages
            self._span.set_attribute("messaging.message.id", message.message_id)
            self._span.set_attribute("messaging.destination.partition.id", str(message.partition))


def producing(topic: str, count: int) -> AbstractContextManager[Producing]:
    trace = _trace()
    return nullcontext(Producing()) if trace is None else _producing(trace, topic, count)


def consuming(message: PoppedMessage) -> AbstractContextManager[Any]:
    trace = _trace()
    if trace is None:
        return nullcontext()
    attributes = _attributes(message.topic, "process") | {
        "messaging.message.id": message.message_id,
        "messaging.destination.partition.id": str(message.partition),
    }
    return _consuming(trace, message, attributes)


@contextmanager
def _producing(trace: Any, topic: str, count: int) -> Iterator[Producing]:
    attributes = _attributes(topic, "send") | {"messaging.batch.message_count": count}
    with _started(trace, f"send {topic}", trace.SpanKind.PRODUCER, attributes) as span:
        yield _Traced(span)


@contextmanager
def _consuming(trace: Any, message: PoppedMessage, attributes: Mapping[str, Any]) -> Iterator[None]:
    context = tracing.context_of(message.meta or {})
    with _started(trace, f"process {message.topic}", trace.SpanKind.CONSUMER, attributes, context):
        yield


def _started(trace: Any, name: str, kind: Any, attributes: Mapping[str, Any], context: Any = None) -> Any:
    tracer = trace.get_tracer(__name__)
    return tracer.start_as_current_span(name, context=context, kind=kind, attributes=attributes)


def _attributes(topic: str, operation: str) -> dict[str, Any]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": topic,
        "messaging.operation.type": operation,
    }


def _trace() -> Any:
    # A program that has not loaded it has no spans either.
    return sys.modules.get("opentelemetry.trace")
