"""Following: pages turned into one stream of records and gaps without end, with its place kept if wanted.

What a page tells of loss becomes a `Gap` ahead of its records. With a store, an event counts as done when the next one
is asked for: who stops in the middle of one, or fails, gets it again. So every event is processed at least once, and
exactly once by whoever stores the result together with the seq. One topic is followed as several are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from topics.client.cursors import Cursor, CursorStore, cursor_name, parse_cursor_name
from topics.client.keeper import Keeper
from topics.client.transport import Place, ReadRequest, Transport
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
        if keeper is not None:
            place = _resumed(place, await keeper.load())
        if place.request.from_ts is not None:
            place = await _found(transport, place)
        async with aclosing(transport.watch([place])) as pages:
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
        if keeper is not None:
            places = _all_resumed(places, await keeper.load())
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
        if keeper is not None:
            places = _all_resumed(places, await keeper.load())
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


async def _found(transport: Transport, place: Place) -> Place:
    """The same place by a cursor in place of a time: looked up once, because from there on seqs are exact."""
    asked = place.request
    page = await transport.read(place.topic, ReadRequest(from_ts=asked.from_ts, partition=asked.partition, limit=1))
    return _at(place, Cursor(cursor_before(page), page.epoch))


def cursor_before(page: Page) -> int:
    """Behind which all that a page tells comes again."""
    if page.tombstone is not None:
        return page.tombstone.gap_from - 1
    return page.records[0].seq - 1 if page.records else page.next_from_seq


def _resumed(place: Place, cursors: dict[str, Cursor]) -> Place:
    cursor = cursors.get(cursor_name(place.topic, place.request.partition))
    return place if cursor is None else _at(place, cursor)


def _at(place: Place, cursor: Cursor) -> Place:
    request = replace(place.request, from_seq=cursor.seq, from_ts=None)
    return replace(place, request=request, epoch=cursor.epoch, tail=False)


def _all_resumed(places: Sequence[Place], cursors: dict[str, Cursor]) -> list[Place]:
    """Places as the store has them; a topic of a wildcard that the store knows gets a place of its own."""
    resumed = [_resumed(place, cursors) for place in places]
    named = {place.topic for place in places}
    for place in places:
        if place.topic.endswith("*"):
            prefix = place.topic.removesuffix("*")
            for name in sorted(cursors):
                topic, partition = parse_cursor_name(name)
                if topic.startswith(prefix) and topic not in named:
                    request = replace(place.request, partition=partition)
                    resumed.append(_resumed(replace(place, topic=topic, request=request), cursors))
            named.update(topic for topic, _ in map(parse_cursor_name, cursors) if topic.startswith(prefix))
    return resumed
