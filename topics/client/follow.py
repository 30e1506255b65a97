"""Following a topic: pages that wait, turned into one stream without end.

The state is a cursor and the epoch it belongs to. Each page moves the cursor; one that has nothing to tell has waited
as long as a read may wait, and is asked for again. What a page tells of loss becomes a `Gap` ahead of its records.

Seqs start again when a topic is dropped and made anew, so a cursor means something only within one epoch. When a page
comes from another one, whether the cursor would still fit or not, the stream says so and starts over.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from topics.client.transport import ReadRequest, Transport
from topics.limits import WAIT_MS_MAX
from topics.model import Gap, Reason, Record


async def follow(
    transport: Transport, topic: str, request: ReadRequest, *, tail: bool = False
) -> AsyncIterator[Record | Gap]:
    """Records and gaps behind the request's cursor; with `tail`, behind what is there at the first step."""
    cursor = request.from_seq
    epoch: int | None = None
    if tail:
        state = await transport.state(topic, partition=request.partition, touch=True)
        cursor, epoch = state.head_seq, state.epoch
    while True:
        page = await transport.read(topic, replace(request, from_seq=cursor, wait_ms=WAIT_MS_MAX))
        if epoch not in (None, page.epoch):
            yield Gap(gap_from=1, gap_to=page.head_seq, reason=Reason.RECREATED)
            cursor, epoch = 0, page.epoch
            continue
        if page.tombstone is not None:
            yield Gap(page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason)
        for record in page.records:
            yield record
        cursor, epoch = page.next_from_seq, page.epoch
