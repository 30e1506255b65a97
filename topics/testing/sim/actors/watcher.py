"""Watchers of event streams. They keep the id of what they have taken in, and after each cut go on behind it.

Some read slowly, some go away for a while. After a restart of the server, which forgets sessions, the id goes into the
cursor of a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.testing.checkers.events import Heard
from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import Request
from topics.testing.sim.http import Frame, FrameReader, ResponseReader, request_bytes
from topics.testing.sim.network import Link
from topics.testing.sim.plan import WATCHED, place_key

if TYPE_CHECKING:
    from topics.testing.sim.world import World

LIMIT = 5


class Watcher(Actor):
    pause_ms = 150.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._link: Link | None = None
        self._url = ""
        self._last_id = ""
        self._frames = FrameReader()
        self._response = ResponseReader()

    def stop(self) -> None:
        """Watchers go on to the end: that is when they must have heard of everything."""

    def routine(self) -> Routine:
        chance = self.chance
        if self._link is not None:
            if self.world.healed:
                self._link.slow_ms = 0.0
            elif chance.random() < 0.15:
                self.world.notes.faults["vanishing watcher"] += 1
                self._link.cut()
                yield chance.choice((10, 400, 3000))
            return
        if not self._url:
            topics: dict[str, dict[str, int]] = {place_key(place): {} for place in WATCHED}
            body = {"topics": topics, "limit": LIMIT, **({"cursor": self._last_id} if self._last_id else {})}
            reply = yield Request("watch", "", "POST", "/v0/watch", body, may_repeat=False)
            if not reply.ok:
                return
            self._url = reply.fields["stream_url"]
        self._open()

    def _open(self) -> None:
        self.world.notes.counts["streams"] += 1
        self._frames = FrameReader()
        self._response = ResponseReader(self._take)
        response = self._response
        self._link = self.world.network.connect(lambda data: self._receive(response, data))
        if self._link is None:
            return
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._last_id} if self._last_id else {})
        if self.chance.random() < 0.3 and not self.world.healed:
            self.world.notes.faults["cut stream"] += 1
            self._link.cut_after = self.chance.randrange(4000)
        elif self.chance.random() < 0.3 and not self.world.healed:
            self.world.notes.faults["slow watcher"] += 1
            self._link.slow_ms = self.chance.choice((50.0, 400.0))
        self._link.send(request_bytes("GET", self._url, headers=headers))

    def _receive(self, response: ResponseReader, data: bytes | None) -> None:
        if response is not self._response:
            return
        if data is None:
            self._link = None
            self._response = ResponseReader()
            if not self._last_id:
                # Who never got an id makes a new session: the old one stands behind what was written, not read.
                self._url = ""
            return
        response.feed(data)
        if response.is_whole and self._link is not None:
            # Refused: the session is not known any more, or the stream was ended.
            self._url = ""
            self._link.cut()

    def _take(self, data: bytes) -> None:
        if self._response.status != 200:
            return
        for frame in self._frames.feed(data):
            self._hear(frame)
            if frame.id is not None:
                self._last_id = frame.id

    def _hear(self, frame: Frame) -> None:
        fields, notes = frame.fields, self.world.notes
        if frame.event not in ("record", "tombstone"):
            return
        place = f"{fields['topic']}#{fields.get('partition', 0)}"
        if frame.event == "tombstone":
            gap = (fields["gap_from"], fields["gap_to"])
            notes.heard(Heard(self.name, place, notes.moment(), gap=gap))
        else:
            rows = [(record["$seq"], record["data"]["id"]) for record in fields["records"]]
            notes.heard(Heard(self.name, place, notes.moment(), rows, fields["from_seq"], fields["to_seq"]))
