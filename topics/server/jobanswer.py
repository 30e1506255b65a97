"""The answers to claims and acks, formatted by hand: jobs are text that was cut from the log, and stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, Durability
from topics.server.answers import NS_PER_MS, elapsed_ms
from topics.server.context import Context
from topics.server.routes.stages import part_of

_CLAIMED: Final = (
    b'{"topic":"%b",%b"claimed":[%b],"count":%d,"ready":%d,'
    b'"performance":{"server_total_ms":%.3f,"throttle_wait_ms":0.0}}'
)
_ACKED: Final = (
    b'{"topic":"%b",%b"acked":%d,"skipped":[%b],"ready":%d,"in_flight":%d,%b'
    b'"performance":{"server_total_ms":%.3f,"fsync_ms":%.3f}}'
)


def claimed_texts(context: Context, host: Host, answers: Sequence[ClaimedJobs], received_ns: int) -> list[bytes]:
    """The answers to claims of one queue that came together; one at least."""
    topic, partition = _place(host, answers[0].topic, answers[0].partition)
    total_ms = elapsed_ms(context, received_ns)
    return [_CLAIMED % (topic, partition, jobs.text, len(jobs.seqs), jobs.ready, total_ms) for jobs in answers]


def acked_texts(
    context: Context, host: Host, answers: Sequence[AckedJobs], ticket: Ticket, received_ns: int
) -> list[bytes]:
    """The answers to acks of one queue that were stored together; one at least. Most are the same."""
    topic, partition = _place(host, answers[0].topic, answers[0].partition)
    total_ms, fsync_ms = elapsed_ms(context, received_ns), _fsync_ms(context, host, answers[0].topic, ticket)
    texts = []
    text, told = b"", -1
    for acked in answers:
        if acked.acked != told or acked.skipped:
            skipped = b",".join(b"%d" % seq for seq in acked.skipped)
            left = acked.ready, acked.in_flight
            text = _ACKED % (topic, partition, acked.acked, skipped, *left, b"", total_ms, fsync_ms)
            told = -1 if skipped else acked.acked
        texts.append(text)
    return texts


def completed_text(context: Context, host: Host, completed: CompletedJobs, ticket: Ticket, received_ns: int) -> bytes:
    """The answer to an ack with results."""
    written = b'"written":%b,' % msgspec.json.encode([part_of(each) for each in completed.written])
    return _ACKED % (
        *_place(host, completed.topic, completed.partition),
        completed.acked,
        b"",
        completed.ready,
        completed.in_flight,
        written,
        elapsed_ms(context, received_ns),
        _fsync_ms(context, host, completed.topic, ticket),
    )


def is_parted(host: Host, topic: str) -> bool:
    # It may have been deleted since.
    found = host.engine.machine.topics.get(topic)
    return found is not None and found.config.partitions > 1


def _place(host: Host, topic: str, partition: int) -> tuple[bytes, bytes]:
    return topic.encode(), b'"partition":%d,' % partition if is_parted(host, topic) else b""


def _fsync_ms(context: Context, host: Host, topic: str, ticket: Ticket) -> float:
    """How long a durable ack waited for the disk."""
    found = host.engine.machine.topics.get(topic)
    if found is None or found.config.durability is not Durability.FSYNC or not ticket.written_ns:
        return 0.0
    return (context.clock.ticks_ns() - ticket.written_ns) / NS_PER_MS
