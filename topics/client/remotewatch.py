"""Many topics of a server over one connection: a watch session and its event stream, as pages.

The state is a position in every topic, seq and epoch, which moves with each event. To begin, or when the server has
forgotten the session, `POST /v0/watch` is told all of them. When only the connection was lost, the session is opened
again with the id of the last event, and goes on exactly behind it.

An event does not name its topic's epoch. It is looked up when a topic is first heard of and when it was made anew, so
that positions mean something to the next process too. Nor does the stream say why something was lost before it began;
a read at that place does.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Final, Self
from urllib.parse import quote

import msgspec

from topics.client.backoff import Backoff
from topics.client.body import plain_body
from topics.client.caller import Caller
from topics.client.cursors import Cursor
from topics.client.eventstream import EventParser, ServerEvent
from topics.client.pages import parsed_page
from topics.client.transport import Place, ReadRequest, Transport
from topics.client.watching import Seen, every_topic
from topics.errors import NotFound, TopicNotFound, TopicsError, Unavailable
from topics.limits import SECOND_MS
from topics.model import Dropped, Page, Reason, Tombstone
from topics.wire.streamcursor import encode_positions

HEARTBEAT_MS: Final = 15 * SECOND_MS
SILENCE_MS: Final = 2 * HEARTBEAT_MS + 5 * SECOND_MS
"""Two heartbeats missed, and some."""
ADVISORY: Final = 429
"""An error frame that only says why less comes."""
NOT_SAID: Final = "from_seq_too_old"


class _Frame(msgspec.Struct):
    topic: str = ""
    partition: int = 0
    records: msgspec.Raw = msgspec.Raw(b"[]")
    to_seq: int = 0
    head_seq: int = 0
    earliest_seq: int = 0
    gap_from: int = 0
    gap_to: int = 0
    reason: str = ""
    code: int = 0
    error: str = ""


class _Session(msgspec.Struct):
    wid: str
    topics: dict[str, msgspec.Raw]


_frames = msgspec.json.Decoder(_Frame)
_sessions = msgspec.json.Decoder(_Session)


class RemoteWatch:
    """See `Transport.watch`."""

    def __init__(self, caller: Caller, transport: Transport, places: Sequence[Place]) -> None:
        self._caller = caller
        self._transport = transport
        self._places = places
        self._view = places[0].request
        self._keys: list[str] = []
        """What is watched by name."""
        self._patterns = [place.topic for place in places if place.topic.endswith("*")]
        self._positions: dict[str, Cursor] = {}
        self._ready: deque[Seen] = deque()
        self._begun = False
        self._wid = ""
        self._last_id = ""
        self._stack = AsyncExitStack()
        self._events: AsyncIterator[ServerEvent] | None = None
        self._backoff = Backoff()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Seen:
        if not self._begun:
            await self._begin()
            await self._subscribe()
            self._begun = True
        while not self._ready:
            await self._understand(await self._next_event())
        return self._ready.popleft()

    async def aclose(self) -> None:
        await self._disconnect()

    # ---- where to begin

    async def _begin(self) -> None:
        """Find every topic that is there now, with its epoch."""
        named = [place for place in self._places if not place.topic.endswith("*")]
        for place, found in zip(named, await asyncio.gather(*map(self._find, named)), strict=True):
            if found is None:
                self._ready.append(Dropped(topic=place.topic, deleted=True))
                continue
            key = _key(place.topic, place.request.partition)
            self._keys.append(key)
            self._positions[key] = found
        for place in self._places:
            if place.topic.endswith("*"):
                async for state in every_topic(self._transport, place.topic.removesuffix("*")):
                    for partition in range(state.partitions):
                        head_seq = await self._head_seq(state.topic, partition) if place.tail else 0
                        begin = Cursor(head_seq if place.tail else place.request.from_seq, state.epoch)
                        self._positions.setdefault(_key(state.topic, partition), begin)

    async def _find(self, place: Place) -> Cursor | None:
        try:
            state = await self._transport.state(place.topic, partition=place.request.partition, touch=True)
        except TopicNotFound:
            # Where a follower was in a topic that is gone is no place any more; any other name must be there.
            if place.epoch:
                return None
            raise
        return Cursor(state.head_seq if place.tail else place.request.from_seq, place.epoch or state.epoch)

    async def _head_seq(self, topic: str, partition: int) -> int:
        return (await self._transport.state(topic, partition=partition, touch=True)).head_seq

    async def _subscribe(self) -> None:
        """Make a session at the positions as they are."""
        view = self._view
        fields: dict[str, object] = {
            "topics": {key: {} for key in [*self._keys, *self._patterns]},
            "heartbeat_ms": HEARTBEAT_MS,
            "include_tags": view.include_tags,
            "include_meta": view.include_meta,
            "cursor": encode_positions(
                {key: cursor.seq for key, cursor in self._positions.items()},
                {key: cursor.epoch for key, cursor in self._positions.items() if cursor.epoch},
            ).decode(),
        }
        if view.nodes:
            fields["node"] = list(view.nodes)
        if view.match is not None:
            fields["match"] = view.match
        answer = await self._caller.call("POST", "/v0/watch?lenient=true", plain_body(fields), repeatable=True)
        session = _sessions.decode(answer.body)
        self._wid, self._last_id = session.wid, ""
        for key in [key for key in self._positions if key not in session.topics]:
            self._drop(key.partition("#")[0])

    # ---- events

    async def _next_event(self) -> ServerEvent:
        while True:
            try:
                if self._events is None:
                    await self._connect()
                assert self._events is not None
                event = await anext(self._events, None)
                if event is not None:
                    self._backoff.reset()
                    return event
                raise Unavailable("the server ended the stream")
            except TopicsError as error:
                await self._disconnect()
                if not self._transport.may_pass(error):
                    raise
                await asyncio.sleep(self._backoff.next_s())

    async def _connect(self) -> None:
        try:
            self._events = await self._open()
        except NotFound:
            await self._subscribe()
            self._events = await self._open()

    async def _open(self) -> AsyncIterator[ServerEvent]:
        headers = {"Accept": "text/event-stream"}
        if self._last_id:
            headers["Last-Event-ID"] = self._last_id
        path = f"/v0/watch/{quote(self._wid, safe='')}"
        parts = await self._stack.enter_async_context(self._caller.stream(path, SILENCE_MS, headers))
        return _events(parts)

    async def _disconnect(self) -> None:
        self._events = None
        await self._stack.aclose()

    async def _understand(self, event: ServerEvent) -> None:
        frame = _frames.decode(event.data)
        if event.name == "error":
            if frame.code != ADVISORY:
                await self._disconnect()
                await asyncio.sleep(self._backoff.next_s())
            return
        key = _key(frame.topic, frame.partition)
        if event.name == "topic-deleted":
            self._drop(frame.topic)
        elif event.name == "record":
            self._ready.append(self._page(frame, await self._known(key, frame)))
        elif event.name == "tombstone":
            self._ready.append(await self._lost(key, frame))
        self._last_id = event.id or self._last_id

    def _page(self, frame: _Frame, epoch: int) -> Page:
        self._positions[_key(frame.topic, frame.partition)] = Cursor(frame.to_seq, epoch)
        return parsed_page(
            frame.records,
            frame.topic,
            partition=frame.partition,
            next_from_seq=frame.to_seq,
            head_seq=frame.head_seq,
            earliest_seq=frame.earliest_seq,
            epoch=epoch,
        )

    async def _lost(self, key: str, frame: _Frame) -> Page:
        recreated = frame.reason == Reason.RECREATED
        if recreated:
            self._positions.pop(key, None)
        epoch = await self._known(key, frame)
        reason = Reason(frame.reason) if frame.reason != NOT_SAID else await self._why(frame)
        next_from_seq = 0 if recreated else frame.gap_to
        self._positions[key] = Cursor(next_from_seq, epoch)
        return Page(
            topic=frame.topic,
            partition=frame.partition,
            body=b"",
            count=0,
            next_from_seq=next_from_seq,
            head_seq=frame.head_seq,
            earliest_seq=frame.earliest_seq,
            tombstone=Tombstone(
                frame.gap_from,
                frame.gap_to,
                reason,
                frame.gap_to - frame.gap_from + 1,
                frame.earliest_seq,
                frame.head_seq,
            ),
            epoch=epoch,
        )

    async def _why(self, frame: _Frame) -> Reason:
        """Why records before the beginning of the stream are gone; by now it may be for more than one reason."""
        request = ReadRequest(from_seq=frame.gap_from - 1, partition=frame.partition, limit=1)
        try:
            page = await self._transport.read(frame.topic, request)
        except TopicNotFound:
            return Reason.MIXED
        return Reason.MIXED if page.tombstone is None else page.tombstone.reason

    async def _known(self, key: str, frame: _Frame) -> int:
        """The epoch of an event's topic."""
        cursor = self._positions.get(key)
        if cursor is not None:
            return cursor.epoch
        try:
            state = await self._transport.state(frame.topic, partition=frame.partition, touch=False)
        except TopicNotFound:
            return 0
        return state.epoch

    def _drop(self, topic: str) -> None:
        """A topic is gone; its partitions go together, and it is told once."""
        gone = [key for key in self._positions if key.partition("#")[0] == topic]
        for key in gone:
            del self._positions[key]
        self._keys = [key for key in self._keys if key not in gone]
        if gone:
            self._ready.append(Dropped(topic=topic, deleted=True))


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[ServerEvent]:
    parser = EventParser()
    async for part in parts:
        for event in parser.feed(part):
            yield event


def _key(topic: str, partition: int) -> str:
    return f"{topic}#{partition}" if partition else topic
