"""What the tests of watching share: an engine driven by hand, and a listener that writes down what it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.engine.rig import SMALL, Rig
from topics.core.view import View
from topics.engine.events import Event
from topics.engine.recovery import Options
from topics.engine.watch import SLICE_NS, Watch
from topics.engine.watcher import Subscription, Watcher
from topics.errors import Throttled

SLICE_MS = SLICE_NS // 1_000_000
VIEW = View(limit=256, byte_budget=1 << 18)

Told = tuple[str, str, Any]
"""Kind, topic, and what matters of it."""


def plain(event: Event) -> bytes:
    return b"%b {%b" % (event.kind.value.encode(), event.text)


def other(event: Event) -> bytes:
    """Another protocol."""
    return b"%b: {%b" % (event.kind.value.encode(), event.text)


class Ear:
    """A listener whose connection can be full."""

    def __init__(self, watch: Watch, form: Any = plain) -> None:
        self.frames: list[bytes] = []
        self.told: list[Told] = []
        self.room: int | None = None
        """Frames until the connection is full; None is never."""
        self.broken = False
        self.on_told: Callable[[], None] = lambda: None
        self.watcher: Watcher = watch.open(self, form)

    def send(self, subscription: Subscription, frame: bytes) -> None:
        if self.broken:
            raise RuntimeError("a bug of the edge")
        self.frames.append(frame)
        kind, _, text = frame.partition(b" ")
        fields = json.loads(text)
        assert fields["topic"] == subscription.topic
        self.told.append((kind.decode().strip(":"), subscription.key, _gist(fields)))
        self.on_told()
        if self.room is not None:
            self.room -= 1
            if not self.room:
                self.watcher.block()

    def joined(self, subscription: Subscription) -> None:
        self.told.append(("joined", subscription.key, subscription.cursor))

    def ended(self, subscription: Subscription) -> None:
        self.told.append(("ended", subscription.key, subscription.cursor))

    def failed(self, subscription: Subscription, error: Exception) -> None:
        self.told.append(("failed", subscription.key, str(error)))

    def paced(self, topics: list[str], retry_after_ms: int) -> None:
        self.told.append(("paced", ",".join(sorted(topics)), retry_after_ms))

    def refused(self, topic: str, error: Throttled) -> None:
        self.told.append(("refused", topic, error.detail["limit"]))

    def take(self) -> list[Told]:
        told, self.told = self.told, []
        return told

    def seqs(self, topic: str) -> list[int]:
        """Of all records that came."""
        batches = [gist for kind, key, gist in self.told if kind == "record" and key == topic]
        return [seq for batch in batches for seq in batch]


def _gist(fields: dict[str, Any]) -> Any:
    if "records" in fields:
        return [record["$seq"] for record in fields["records"]]
    if "gap_from" in fields:
        return fields["reason"], fields["gap_from"], fields["gap_to"]
    return fields["head_seq"]


class Slow(Ear):
    """A listener to whom telling something takes as long as a pump may."""

    rig: WatchRig

    def send(self, subscription: Subscription, frame: bytes) -> None:
        super().send(subscription, frame)
        self.rig.clock.advance(SLICE_MS)


class WatchRig(Rig):
    def __init__(self, options: Options = SMALL) -> None:
        super().__init__(options)
        self.pumps_wanted = 0
        self.watch.wanted = self._wanted

    def _wanted(self) -> None:
        self.pumps_wanted += 1

    @property
    def watch(self) -> Watch:
        return self.engine.watch

    def pump(self) -> None:
        """Until there is nothing more to tell."""
        self.work()
        while self.pumps_wanted:
            self.pumps_wanted = 0
            self.watch.pump()

    def ear(self, *topics: str, form: Any = plain, view: View = VIEW, **place: Any) -> Ear:
        ear = Ear(self.watch, form)
        for topic in topics:
            ear.watcher.subscribe(topic, view, **place)
        return ear
