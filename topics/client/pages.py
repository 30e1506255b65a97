"""Pages behind a cursor, one after the other: reads that wait, each beginning where the one before ended.

The state is a cursor and the epoch it belongs to. Seqs start again when a topic is dropped and made anew, so a cursor
means something only within one epoch. When a page comes from another one, whether the cursor would still fit or not,
a page says so and reading starts over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Self

import msgspec

from topics.client.transport import Place, ReadRequest, Transport
from topics.limits import WAIT_MS_MAX
from topics.model import Page, Reason, Tombstone, parse_records

Read = Callable[[str, ReadRequest], Awaitable[Page]]


async def located(transport: Transport, place: Place) -> Place:
    """A place with `tail` as one with the cursor it stands for now; any other as it is."""
    if not place.tail:
        return place
    state = await transport.state(place.topic, partition=place.request.partition, touch=True)
    return replace(place, request=replace(place.request, from_seq=state.head_seq), epoch=state.epoch, tail=False)


class Pages:
    """Pages that tell something, without end."""

    def __init__(self, read: Read, place: Place) -> None:
        self._read = read
        self._place = place
        self._cursor = place.request.from_seq
        self._epoch = place.epoch

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        while True:
            cursor, epoch = self._cursor, self._epoch
            request = replace(self._place.request, from_seq=cursor, wait_ms=WAIT_MS_MAX)
            page = await self._read(self._place.topic, request)
            self._cursor, self._epoch = page.next_from_seq, page.epoch
            if epoch and page.epoch and epoch != page.epoch:
                self._cursor = 0
                return _recreated(page)
            # One that tells nothing has waited as long as a read may.
            if page.count or page.tombstone is not None or page.next_from_seq != cursor:
                return page

    async def aclose(self) -> None:
        """There is nothing to end between two reads."""


def parsed_page(records: msgspec.Raw, topic: str, **fields: Any) -> Page:
    """A page out of the text of an array of records. Counting takes parsing them, so they are kept."""
    body = bytes(records)[1:-1]
    parsed = parse_records(body)
    page = Page(topic=topic, body=body, count=len(parsed), **fields)
    page.__dict__["records"] = parsed
    return page


def _recreated(page: Page) -> Page:
    """The news that another topic has the name now."""
    return Page(
        topic=page.topic,
        partition=page.partition,
        body=b"",
        count=0,
        next_from_seq=0,
        head_seq=page.head_seq,
        earliest_seq=page.earliest_seq,
        tombstone=Tombstone(1, page.head_seq, Reason.RECREATED, 0, page.earliest_seq, page.head_seq),
        epoch=page.epoch,
    )
