"""Watching in process: what the engine tells a watcher, as the pages of one reader.

How it works. The stream is a `Listener` of the engine (`engine/watcher.py`), as a connection of the server is. What it
is sent stands in `_ready` until the reader asks for it. When as much stands there as may, the watcher is blocked, and
unblocked once half of it was taken; meanwhile nothing is kept but its place in each log. So the engine reads ahead of a
fast reader, a slow one costs a bound, and nobody ever looks whether there is news.

What goes wrong comes behind what came before it, and is the end. Whichever way the stream ends, the engine is let go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Self

import msgspec

from topics.client.beginning import is_past
from topics.client.pages import parsed_page
from topics.client.transport import Place, ReadRequest, Seen
from topics.core.cut import Shape
from topics.core.match import parse_match
from topics.core.names import check_topic
from topics.core.view import View
from topics.engine.events import Event, Kind
from topics.engine.host import Host
from topics.engine.watcher import Subscription, Watcher, key_of
from topics.errors import InvalidRequest, Throttled, TopicNotFound
from topics.limits import MIB, U64_MAX
from topics.model import Dropped, Page, Reason, Tombstone
from topics.wire.numbers import whole
from topics.wire.watch import WILDCARD

AHEAD_PAGES_MAX: Final = 16
AHEAD_BYTES_MAX: Final = 1 * MIB
"""What may wait for the reader; the page that exceeds it is the last."""

_NOTHING: Final = b""
_ARRAY: Final = b"["
_tombstones = msgspec.json.Decoder(Tombstone)


def as_text(event: Event) -> bytes:
    """A form of the engine's events: an array of records, what is lost as an object, and nothing for all others."""
    if event.kind is Kind.RECORD:
        return b"[%b]" % event.body
    return _NOTHING if event.lost is None else msgspec.json.encode(event.lost)


class _Told(NamedTuple):
    """What will be a page once the reader asks for it: only then are its records parsed."""

    text: bytes
    topic: str
    partition: int
    cursor: int
    epoch: int
    head_seq: int
    earliest_seq: int


class EmbeddedWatch:
    """See `Transport.watch`."""

    def __init__(
        self, places: Sequence[Place], find_host: Callable[[], Host], open_watches: set[EmbeddedWatch]
    ) -> None:
        """`find_host` raises when there is none. `open_watches` has this one in it while it follows something."""
        # Named ones first, so that a wildcard leaves them alone.
        self._places = sorted(places, key=_is_wildcard)
        self._find_host = find_host
        self._open_watches = open_watches
        self._watcher: Watcher | None = None
        self._ready: deque[_Told | Dropped] = deque()
        """What was told and not taken yet."""
        self._ready_bytes = 0
        self._end: Exception | None = None
        """What comes behind everything that is ready."""
        self._reader: asyncio.Future[None] | None = None

    # ---- the reader's side

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Seen:
        if self._watcher is None and self._end is None:
            self._begin()
        if self._ready:
            # A reader that always finds something would otherwise never wait, and nobody else would run.
            await asyncio.sleep(0)
        while not self._ready:
            if self._end is not None:
                raise self._end
            if self._is_idle():
                raise StopAsyncIteration
            await self._news()
        return self._take()

    async def aclose(self) -> None:
        self._ready.clear()
        self.end(StopAsyncIteration())

    def end(self, error: Exception) -> None:
        """Follow nothing any more; the reader gets what is ready, and then this."""
        if self._watcher is not None:
            self._watcher.close()
        self._open_watches.discard(self)
        self._end = self._end or error
        self._wake()

    def _begin(self) -> None:
        watcher = self._find_host().engine.watch.open(self, as_text)
        try:
            for place in self._places:
                self._follow(watcher, place)
        except BaseException:
            watcher.close()
            self._ready.clear()
            raise
        self._watcher = watcher
        self._open_watches.add(self)

    def _follow(self, watcher: Watcher, place: Place) -> None:
        request, view = place.request, _view(place.request)
        from_seq = whole("from_seq", request.from_seq, U64_MAX)
        if _is_wildcard(place):
            prefix = place.topic.removesuffix(WILDCARD)
            if prefix:
                check_topic(prefix)
            watcher.subscribe_matching(prefix, view, from_seq=from_seq, tail=place.tail)
            return
        try:
            watcher.subscribe(
                place.topic, view, partition=request.partition, from_seq=from_seq, tail=place.tail, epoch=place.epoch
            )
        except (TopicNotFound, InvalidRequest) as error:
            if not is_past(place, error, self._places):
                raise
            dropped = Dropped(topic=place.topic, deleted=True)
            if dropped not in self._ready:
                self._ready.append(dropped)

    def _is_idle(self) -> bool:
        """Whether nothing can come any more: all topics are gone, and there is no wildcard for others."""
        return self._watcher is not None and not self._watcher.subscriptions and not self._watcher.patterns

    async def _news(self) -> None:
        self._reader = asyncio.get_running_loop().create_future()
        try:
            await self._reader
        finally:
            self._reader = None

    def _take(self) -> Seen:
        assert self._watcher is not None
        told = self._ready.popleft()
        if isinstance(told, _Told):
            self._ready_bytes -= len(told.text)
        if len(self._ready) <= AHEAD_PAGES_MAX // 2 and self._ready_bytes <= AHEAD_BYTES_MAX // 2:
            self._watcher.unblock()
        return _page(told) if isinstance(told, _Told) else told

    # ---- the engine's side

    def send(self, subscription: Subscription, frame: bytes) -> None:
        if not frame:
            return
        log = subscription.feed.log
        self._ready_bytes += len(frame)
        self._tell(
            subscription.watcher,
            _Told(
                frame,
                log.topic,
                log.partition,
                subscription.cursor,
                subscription.epoch,
                subscription.head_seq,
                subscription.earliest_seq,
            ),
        )

    def joined(self, subscription: Subscription) -> None:
        """Its records say so themselves."""

    def ended(self, subscription: Subscription) -> None:
        """The partitions of a topic end together, and one word is enough."""
        topic, watcher = subscription.feed.topic, subscription.watcher
        for partition in range(topic.config.partitions):
            watcher.unsubscribe(key_of(topic.name, partition))
        self._tell(watcher, Dropped(topic=topic.name, deleted=True))

    def failed(self, subscription: Subscription, error: Exception) -> None:
        self.end(error)

    def paced(self, topics: list[str], retry_after_ms: int) -> None:
        """A reader who waits is told nothing by being told to wait."""

    def refused(self, topic: str, error: Throttled) -> None:
        self.end(error)

    def _tell(self, watcher: Watcher, told: _Told | Dropped) -> None:
        self._ready.append(told)
        if len(self._ready) >= AHEAD_PAGES_MAX or self._ready_bytes >= AHEAD_BYTES_MAX:
            watcher.block()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


def _is_wildcard(place: Place) -> bool:
    return place.topic.endswith(WILDCARD)


def _view(request: ReadRequest) -> View:
    return View(
        limit=whole("limit", request.limit, U64_MAX),
        byte_budget=whole("max_batch_bytes", request.max_batch_bytes, U64_MAX),
        nodes=tuple(node.encode() for node in request.nodes),
        match=None if request.match is None else parse_match(request.match),
        shape=Shape(tags=request.include_tags, meta=request.include_meta),
    )


def _page(told: _Told) -> Page:
    records, cursor, lost = told.text, told.cursor, None
    if not records.startswith(_ARRAY):
        records, lost = b"[]", _tombstones.decode(told.text)
        # Another topic has the name now; where its first records were is said by what comes next.
        cursor = 0 if lost.reason is Reason.RECREATED else lost.gap_to
    return parsed_page(
        msgspec.Raw(records),
        told.topic,
        partition=told.partition,
        next_from_seq=cursor,
        head_seq=told.head_seq,
        earliest_seq=told.earliest_seq,
        tombstone=lost,
        epoch=told.epoch,
    )
