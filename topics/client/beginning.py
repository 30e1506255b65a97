"""Where following begins: places as a program names them become cursors that a transport can go on from.

A store knows best: where a follower was counts more than where it was told to begin. A time is looked up once, at the
first step, because from there on seqs are exact. A wildcard is looked through for both: a topic that it stands for gets
a place of its own, and the wildcard is left for those that are made later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from topics.client.cursors import Cursor, cursor_name, parse_cursor_name
from topics.client.listing import every_topic
from topics.client.transport import Place, ReadRequest, Transport
from topics.errors import TopicNotFound, TopicsError
from topics.model import Page

WILDCARD: Final = "*"
LOOKUPS_AT_ONCE: Final = 32
"""Logs of a wildcard that are asked at the same time where a time is in them."""


async def begun(transport: Transport, places: Sequence[Place], cursors: Mapping[str, Cursor]) -> list[Place]:
    """The places by cursors, none by a time."""
    resumed = _resumed(places, cursors)
    taken = {(place.topic, place.request.partition) for place in resumed}
    found: list[Place] = []
    for place in resumed:
        if place.request.from_ts is None:
            found.append(place)
        elif place.topic.endswith(WILDCARD):
            found += await _all_found(transport, place, taken)
            found.append(replace(place, request=replace(place.request, from_ts=None)))
        else:
            found.append(await _found(transport, place))
    return found


def cursor_before(page: Page) -> int:
    """Behind which all that a page tells comes again."""
    if page.tombstone is not None:
        return page.tombstone.gap_from - 1
    return page.records[0].seq - 1 if page.records else page.next_from_seq


def is_past(place: Place, error: TopicsError, places: Sequence[Place]) -> bool:
    """Whether what is wrong with a place of these is only that its topic is gone since a follower was there.

    A wildcard's topic may have been made anew with fewer partitions as well: those who followed it named none.
    """
    if not place.epoch:
        return False
    prefixes = tuple(each.topic.removesuffix(WILDCARD) for each in places if each.topic.endswith(WILDCARD))
    return isinstance(error, TopicNotFound) or place.topic.startswith(prefixes)


# ---- by a time


async def _found(transport: Transport, place: Place) -> Place:
    """The same place by a cursor in place of a time."""
    asked = place.request
    page = await transport.read(place.topic, ReadRequest(from_ts=asked.from_ts, partition=asked.partition, limit=1))
    return _at(place, Cursor(cursor_before(page), page.epoch))


async def _all_found(transport: Transport, place: Place, taken: set[tuple[str, int]]) -> list[Place]:
    """All logs that a wildcard stands for now, without those that have a place already."""
    wanted = []
    async for state in every_topic(transport, place.topic.removesuffix(WILDCARD)):
        for partition in range(state.partitions):
            if (state.topic, partition) not in taken:
                taken.add((state.topic, partition))
                wanted.append(replace(place, topic=state.topic, request=replace(place.request, partition=partition)))
    found: list[Place] = []
    for first in range(0, len(wanted), LOOKUPS_AT_ONCE):
        some = wanted[first : first + LOOKUPS_AT_ONCE]
        found += [each for each in await asyncio.gather(*(_found_or_gone(transport, one) for one in some)) if each]
    return found


async def _found_or_gone(transport: Transport, place: Place) -> Place | None:
    try:
        return await _found(transport, place)
    except TopicNotFound:
        return None


# ---- by what a store knows


def _resumed(places: Sequence[Place], cursors: Mapping[str, Cursor]) -> list[Place]:
    """Places as the store has them; a topic of a wildcard that the store knows gets a place of its own."""
    resumed = [_resumed_one(place, cursors) for place in places]
    named = {place.topic for place in places}
    for place in places:
        if place.topic.endswith(WILDCARD):
            prefix = place.topic.removesuffix(WILDCARD)
            for name in sorted(cursors):
                topic, partition = parse_cursor_name(name)
                if topic.startswith(prefix) and topic not in named:
                    request = replace(place.request, partition=partition)
                    resumed.append(_resumed_one(replace(place, topic=topic, request=request), cursors))
            named.update(topic for topic, _ in map(parse_cursor_name, cursors) if topic.startswith(prefix))
    return resumed


def _resumed_one(place: Place, cursors: Mapping[str, Cursor]) -> Place:
    cursor = cursors.get(cursor_name(place.topic, place.request.partition))
    return place if cursor is None else _at(place, cursor)


def _at(place: Place, cursor: Cursor) -> Place:
    request = replace(place.request, from_seq=cursor.seq, from_ts=None)
    return replace(place, request=request, epoch=cursor.epoch, tail=False)
