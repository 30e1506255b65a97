"""Casters speak over WebSockets: they publish under a key until they are answered, and follow topics by their seqs.

A socket may be cut at any byte, read slowly, or be left. The next one subscribes behind the last seq of each topic that
was taken in, and sends again what was not answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from topics.testing.checkers.events import Heard, Outcome
from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.calls import NOT_DONE_CODES, Asked, Fields
from topics.testing.sim.network import Link
from topics.testing.sim.plan import WATCHED, WRITTEN, place_key, split
from topics.testing.sim.websocket import CLOSE, PING, PONG, TEXT, SocketReader, frame, handshake

if TYPE_CHECKING:
    from topics.testing.sim.world import World

LIMIT = 5
TRIES_MAX = 8
ANSWER_MS = 400.0
"""How long it waits for an answer before it does something else."""


class Caster(Actor):
    pause_ms = 130.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._link: Link | None = None
        self._reader = SocketReader()
        self._subscribed = False
        self._cursors = dict.fromkeys(WATCHED, 0)
        self._asked: dict[int, Asked] = {}
        """Publishes that are not answered yet, by the number of the request."""
        self._answered: set[int] = set()
        """Numbers of first records, of what was answered."""
        self._requests = 0
        self._is_done = False

    def stop(self) -> None:
        """It publishes no more, and listens to the end: that is when it must have heard of everything."""
        self._is_done = True

    def routine(self) -> Routine:
        chance, link = self.chance, self._link
        if link is None:
            self._connect()
        elif self.world.healed:
            link.slow_ms = 0.0
        elif chance.random() < 0.1:
            self.world.notes.faults["vanishing watcher"] += 1
            link.cut()
            yield chance.choice((10, 400, 2000))
        if not self._is_done and chance.random() < 0.7:
            yield from self._publish()

    # ---- what it says

    def _publish(self) -> Routine:
        place = self.chance.choice(WRITTEN)
        ids = self.ids(self.chance.choice((1, 2, 4)))
        for _ in range(TRIES_MAX):
            self._send_publish(place, ids)
            yield ANSWER_MS * self.chance.random()
            if ids[0] in self._answered or self._is_done:
                return

    def _send_publish(self, place: str, ids: list[int]) -> None:
        if self._link is None or not self._reader.is_open:
            return
        topic, partition = split(place)
        self._requests += 1
        key = f"{self.name}-{ids[0]}"
        asked = {"ids": ids, "tags": [""] * len(ids), "key": key}
        message = {
            "op": "publish",
            "request_id": self._requests,
            "topic": topic,
            "partition": partition,
            "records": [{"data": {"id": number}} for number in ids],
            "idempotency_key": key,
        }
        self.world.notes.counts["by WebSocket"] += 1
        self._asked[self._requests] = self.world.notes.ask(self.name, "write", place, asked)
        self._send(message)

    def _send(self, message: object) -> None:
        if self._link is not None:
            self._link.send(frame(msgspec.json.encode(message), self.chance))

    def _settle(self, number: int, fields: Fields) -> None:
        call = self._asked.pop(number, None)
        if call is None:
            return
        if fields["op"] == "ack":
            self._answered.add(call.asked["ids"][0])
            self.world.notes.note(call, Outcome.OK, {"seqs": fields["seqs"], "deduped": fields["deduped"]})
        else:
            # It says nothing of whether it began, but for those that never do.
            known = fields["code"] in NOT_DONE_CODES
            self.world.notes.note(call, Outcome.REFUSED if known else Outcome.UNKNOWN, {})

    # ---- the socket

    def _connect(self) -> None:
        notes, chance = self.world.notes, self.chance
        reader = self._reader = SocketReader()
        self._subscribed = False
        self._link = self.world.network.connect(lambda data: self._receive(reader, data))
        if self._link is None:
            return
        notes.counts["sockets"] += 1
        if chance.random() < 0.3 and not self.world.healed:
            notes.faults["cut socket"] += 1
            self._link.cut_after = chance.randrange(4000)
        elif chance.random() < 0.3 and not self.world.healed:
            notes.faults["slow watcher"] += 1
            self._link.slow_ms = chance.choice((50.0, 400.0))
        self._link.send(handshake("/v0/ws"))

    def _receive(self, reader: SocketReader, data: bytes | None) -> None:
        if reader is not self._reader:
            return
        if data is None:
            self._lost()
            return
        for opcode, payload in reader.feed(data):
            self._take(opcode, payload)
        if reader.is_open and not self._subscribed:
            self._subscribed = True
            topics = {place_key(place): {"from_seq": seq} for place, seq in self._cursors.items()}
            self._send({"op": "subscribe", "request_id": "all", "topics": topics, "limit": LIMIT})
        if reader.is_refused and self._link is not None:
            self._link.cut()

    def _lost(self) -> None:
        """Whoever had no answer knows nothing."""
        self._link = None
        self._reader = SocketReader()
        calls, self._asked = self._asked, {}
        for call in calls.values():
            self.world.notes.note(call, Outcome.UNKNOWN, {})

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == TEXT:
            self._hear(msgspec.json.decode(payload))
        elif opcode == PING and self._link is not None:
            self._link.send(frame(payload, self.chance, PONG))
        elif opcode == CLOSE and self._link is not None:
            self._link.cut()

    def _hear(self, fields: Fields) -> None:
        notes = self.world.notes
        match fields["op"]:
            case "record":
                place = self._place(fields)
                rows = [(record["$seq"], record["data"]["id"]) for record in fields["records"]]
                notes.heard(Heard(self.name, place, notes.moment(), rows, fields["from_seq"], fields["to_seq"]))
                self._cursors[place] = fields["to_seq"]
            case "tombstone":
                place = self._place(fields)
                gap = (fields["gap_from"], fields["gap_to"])
                notes.heard(Heard(self.name, place, notes.moment(), gap=gap))
                self._cursors[place] = gap[1]
            case "error" if fields["request_id"] == "all" and self._link is not None:
                # Not ready yet, or on its way out: another time.
                self._link.cut()
            case "ack" | "error":
                self._settle(fields["request_id"], fields)

    def _place(self, fields: Fields) -> str:
        return f"{fields['topic']}#{fields.get('partition', 0)}"
