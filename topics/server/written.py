"""The answer to a write, formatted by hand: for one write, or as a template for all that were stored together."""

from __future__ import annotations

from typing import Final

from topics.engine.ticket import Ticket
from topics.model import Durability, Written
from topics.server.answers import NS_PER_MS
from topics.server.context import Context
from topics.server.message import Response

_ANSWER: Final = (
    b'{"topic":"%b","first_seq":%b,"last_seq":%b,%b"head_seq":%b,"count":%d,"created":%b,"deduped":%b,%b'
    b'"performance":{"server_total_ms":%.3f,"wal_append_ms":%.3f,"fsync_ms":%.3f,"throttle_wait_ms":%.3f}}'
)
_TRUTH: Final = {True: b"true", False: b"false"}
_SEQ: Final = b"%b"
_SEQ_COUNT: Final = 4
"""How often the answer to one record names its seq."""


class Timing:
    """What a write waited for, as its answer tells it."""

    __slots__ = ("received_ns", "submitted_ns", "throttle_wait_ms")

    def __init__(self, received_ns: int, submitted_ns: int, throttle_wait_ms: float = 0.0) -> None:
        self.received_ns = received_ns
        self.submitted_ns = submitted_ns
        self.throttle_wait_ms = throttle_wait_ms


def written_response(context: Context, ticket: Ticket, timing: Timing, with_seqs: bool) -> Response:
    """The answer to one write, whose ticket is done."""
    written = ticket.result()
    assert isinstance(written, Written)
    first, last = b"%d" % written.first_seq, b"%d" % written.last_seq
    seqs = b""
    if with_seqs:
        seqs = b'"seqs":[%b],' % (first if first == last else ",".join(map(str, written.seqs)).encode())
    text = _ANSWER % (
        written.topic.encode(),
        first,
        last,
        seqs,
        b"%d" % written.head_seq,
        written.last_seq - written.first_seq + 1,
        _TRUTH[written.created],
        _TRUTH[written.deduped],
        *_told(context, ticket, written, timing),
    )
    return Response(201 if written.created else 200, text)


class Template:
    """The answers to many writes of one record each that were stored together: they differ in the request's id and
    number and in the seq, which is also the head that the write left behind."""

    def __init__(self, context: Context, ticket: Ticket, timing: Timing) -> None:
        written = ticket.result()
        assert isinstance(written, Written)
        self._ok_json = context.heading.ok_json
        self._body = _ANSWER % (
            written.topic.encode(),
            _SEQ,
            _SEQ,
            b'"seqs":[%b],' % _SEQ,
            _SEQ,
            1,
            _TRUTH[False],
            _TRUTH[False],
            *_told(context, ticket, written, timing),
        )

    def of(self, seq_digits: int) -> bytes:
        """The whole answer with its head, for seqs of so many digits: `% (id, number, seq, seq, seq, seq)`."""
        body_bytes = len(self._body) + _SEQ_COUNT * (seq_digits - len(_SEQ))
        return self._ok_json % (b"%b-%d", body_bytes, self._body)


def _told(
    context: Context, ticket: Ticket, written: Written, timing: Timing
) -> tuple[bytes, float, float, float, float]:
    """The partition of a topic that has several, and what was waited for."""
    now_ns = context.clock.ticks_ns()
    written_ns = ticket.written_ns
    fsync_ms = 0.0
    partition = b""
    # The topic may have been deleted since.
    topic = None if context.host is None else context.host.engine.machine.topics.get(written.topic)
    if topic is not None:
        if topic.config.durability is Durability.FSYNC and written_ns:
            fsync_ms = (now_ns - written_ns) / NS_PER_MS
        if topic.config.partitions > 1:
            partition = b'"partition":%d,' % written.partition
    return (
        partition,
        (now_ns - timing.received_ns) / NS_PER_MS,
        (written_ns - timing.submitted_ns) / NS_PER_MS if written_ns else 0.0,
        fsync_ms,
        timing.throttle_wait_ms,
    )
