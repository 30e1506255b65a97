"""Watching several topics at once by following each: the pages of all as they come, as one stream.

A place whose topic ends in `*` stands for all topics that begin like that. Who is there is looked up at the start and
then once in a while, so that topics made later join from their first record on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final, Self

from topics.client.gathering import Gathering
from topics.client.pages import Pages, located
from topics.client.transport import Place, Transport
from topics.errors import TopicNotFound, TopicsError
from topics.model import Dropped, Page, TopicState

AHEAD_MAX: Final = 16
"""Pages of all topics together that wait for the reader."""
LOOK_S: Final = 1.0
"""Between two looks for topics that are new."""
TOPICS_PAGE: Final = 100

Seen = Page | Dropped


class Watching:
    """See `Transport.watch`."""

    def __init__(self, transport: Transport, places: Sequence[Place]) -> None:
        self._transport = transport
        # Named ones first, so that a wildcard leaves them alone.
        self._places = sorted(places, key=_is_wildcard)
        self._watched: set[tuple[str, int]] = set()
        self._gathering: Gathering[Seen] = Gathering(AHEAD_MAX)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Seen:
        if self._places:
            await self._begin()
        while True:
            seen = await anext(self._gathering)
            if not isinstance(seen, Dropped):
                return seen
            partitions = {key for key in self._watched if key[0] == seen.topic}
            self._watched -= partitions
            if partitions:
                # Each of them tells it, and one word is enough.
                return seen

    async def aclose(self) -> None:
        await self._gathering.aclose()

    async def _begin(self) -> None:
        # All are looked for before the first is followed: a name that is not there is an error, and not an event.
        places, self._places = [await self._checked(place) for place in self._places], []
        for place in places:
            if _is_wildcard(place):
                self._gathering.add(_Discovery(self, place))
            else:
                self._follow(place)

    async def _checked(self, place: Place) -> Place:
        if _is_wildcard(place) or place.epoch:
            return place
        if not place.tail:
            await self._transport.state(place.topic, partition=place.request.partition, touch=True)
        return await located(self._transport, place)

    def _follow(self, place: Place) -> None:
        self._watched.add((place.topic, place.request.partition))
        self._gathering.add(_UntilDropped(Pages(self._transport.read, place), place.topic))

    async def look(self, place: Place) -> None:
        """Follow the partitions of a wildcard's topics that are not followed yet."""
        async for state in every_topic(self._transport, place.topic.removesuffix("*")):
            for partition in range(state.partitions):
                if (state.topic, partition) not in self._watched:
                    request = replace(place.request, partition=partition)
                    begin = replace(place, topic=state.topic, request=request, epoch=state.epoch)
                    self._follow(await located(self._transport, begin))

    async def look_patiently(self, place: Place) -> None:
        """The same; a server that is away is asked again the next time."""
        try:
            await self.look(place)
        except TopicsError as error:
            if not self._transport.may_pass(error):
                raise


class _UntilDropped:
    """The pages of one topic, and the news of its end."""

    def __init__(self, pages: Pages, topic: str) -> None:
        self._pages: Pages | None = pages
        self._topic = topic

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Seen:
        if self._pages is None:
            raise StopAsyncIteration
        try:
            return await anext(self._pages)
        except TopicNotFound:
            self._pages = None
            return Dropped(topic=self._topic, deleted=True)

    async def aclose(self) -> None:
        self._pages = None


class _Discovery:
    """Adds the topics of a wildcard as it finds them, and gives nothing itself."""

    def __init__(self, watching: Watching, place: Place) -> None:
        self._watching = watching
        self._place = place

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Seen:
        await self._watching.look(self._place)
        later = replace(self._place, request=replace(self._place.request, from_seq=0), tail=False)
        while True:
            await asyncio.sleep(LOOK_S)
            await self._watching.look_patiently(later)

    async def aclose(self) -> None:
        """It has nothing of its own."""


async def every_topic(transport: Transport, prefix: str) -> AsyncIterator[TopicState]:
    """The topics whose names begin with `prefix`, as they are now."""
    after = ""
    while True:
        found = await transport.topics(prefix=prefix, after=after, limit=TOPICS_PAGE)
        for state in found:
            yield state
        if len(found) < TOPICS_PAGE:
            return
        after = found[-1].topic


def _is_wildcard(place: Place) -> bool:
    return place.topic.endswith("*")
