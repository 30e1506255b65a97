"""Following: pages turned into one stream of records and gaps without end, with its place kept if wanted.

What a page tells of loss becomes a `Gap` ahead of its records. With a store, an event counts as done when the next one
is asked for: who stops in the middle of one, or fails, gets it again. So every event is processed at least once, and
exactly once by whoever stores the result together with the seq. One topic is followed as several are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import Final

from topics.client.beginning import begun
from topics.client.cursors import Cursor, CursorStore, cursor_name
from topics.client.keeper import Keeper
from topics.client.transport import Place, Transport
from topics.errors import TopicNotFound
from topics.limits import SECOND_MS
from topics.model import Dropped, Gap, Page, Reason, Record

Event = Record | Gap

COMMIT_MS: Final = 1 * SECOND_MS
"""How long what is done may wait to be saved, unless told otherwise."""


async def follow(
    transport: Transport, place: Place, store: CursorStore | None = None, commit_ms: int = COMMIT_MS
) -> AsyncIterator[Event]:
    """Records and gaps of one topic behind a place, or behind where the store says that the follower was.

    Ends with `TopicNotFound` when the topic is dropped; the store then keeps where the follower was.
    """
    keeper = None if store is None else Keeper(store, commit_ms)
    try:
        places = await begun(transport, [place], {} if keeper is None else await keeper.load())
        async with aclosing(transport.watch(places)) as pages:
            async for page in pages:
                if isinstance(page, Dropped):
                    raise TopicNotFound(f'topic "{page.topic}" was deleted', topic=page.topic)
                for event, cursor in _parts(page):
                    if event is not None:
                        yield event
                    if keeper is not None:
                        await keeper.done(cursor_name(page.topic, page.partition), cursor)
    finally:
        if keeper is not None:
            await keeper.close()


async def follow_many(
    transport: Transport, places: Sequence[Place], store: CursorStore | None = None, commit_ms: int = COMMIT_MS
) -> AsyncIterator[tuple[str, Event | Dropped]]:
    """The same of several topics; each event comes with the name of its topic, and `Dropped` is the last of one."""
    keeper = None if store is None else Keeper(store, commit_ms)
    try:
        places = await begun(transport, places, {} if keeper is None else await keeper.load())
        async with aclosing(transport.watch(places)) as pages:
            async for page in pages:
                if isinstance(page, Dropped):
                    yield page.topic, page
                    if keeper is not None:
                        await keeper.forget(page.topic)
                    continue
                for event, cursor in _parts(page):
                    if event is not None:
                        yield page.topic, event
                    if keeper is not None:
                        await keeper.done(cursor_name(page.topic, page.partition), cursor)
    finally:
        if keeper is not None:
            await keeper.close()


async def follow_pages(
    transport: Transport, places: Sequence[Place], store: CursorStore | None = None, commit_ms: int = COMMIT_MS
) -> AsyncIterator[Page | Dropped]:
    """The same, a page at a time; one is done when the next is asked for."""
    keeper = None if store is None else Keeper(store, commit_ms)
    try:
        places = await begun(transport, places, {} if keeper is None else await keeper.load())
        async with aclosing(transport.watch(places)) as pages:
            async for page in pages:
                yield page
                if keeper is None:
                    continue
                if isinstance(page, Dropped):
                    await keeper.forget(page.topic)
                else:
                    cursor = Cursor(page.next_from_seq, page.epoch)
                    await keeper.done(cursor_name(page.topic, page.partition), cursor)
    finally:
        if keeper is not None:
            await keeper.close()


def _parts(page: Page) -> Iterator[tuple[Event | None, Cursor]]:
    """What a page tells, each with where a reader is that is done with it; last, the end of the page."""
    epoch = page.epoch
    tombstone = page.tombstone
    if tombstone is not None:
        # A topic that was made anew is read from its beginning; the gap is about the one before.
        seq = 0 if tombstone.reason is Reason.RECREATED else tombstone.gap_to
        yield Gap(tombstone.gap_from, tombstone.gap_to, tombstone.reason), Cursor(seq, epoch)
    for record in page.records:
        yield record, Cursor(record.seq, epoch)
    # A filter may have left out what stands behind the last record.
    yield None, Cursor(page.next_from_seq, epoch)
