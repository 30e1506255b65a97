"""Streams that are cut at any byte, again and again, while everything happens that can happen to a topic.

A watcher keeps what it has learnt together with the `id` of the event it learnt it from, and goes on from there: after
each event, or only now and then, in which case it hears some things again. Either way it knows in the end of each
record once, in order, and of each loss once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from tests.engine.rig import with_wal
from tests.engine.watchrig import WatchRig
from tests.server.piping import Edge, Pipe
from tests.server.sserig import Frame, split_frames
from topics.testing import CrashMode

TOPICS: dict[str, dict[str, object]] = {
    "plain": {},
    "safe": {"durability": "fsync"},
    "capped": {"cap_records": 5},
    "brief": {"ttl_ms": 3000},
    "erased": {},
}
STEPS = 600
CRASHES: tuple[CrashMode | None, ...] = ("lost", "kept", None)
"""The power fails, or only the process dies."""


@dataclass
class Life:
    """What a watcher knows of one topic, from its creation on."""

    cursor: int = 0
    seen: list[int] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def copy(self) -> Life:
        return Life(self.cursor, list(self.seen), list(self.gaps))


class World:
    """The engine, its edge, and the truth about what was written."""

    def __init__(self, seed: int, extra_topics: int = 0) -> None:
        self.random = random.Random(seed)
        self.rig = WatchRig(with_wal(shards=2, file_bytes=64 << 10))
        self.edge = Edge(self.rig, watch_buffer_bytes=1500, max_watch_topics=1000)
        self.topics = list(TOPICS) + [f"extra{number}" for number in range(extra_topics)]
        for topic in self.topics:
            self.rig.configure(topic, **TOPICS.get(topic, {}))
        self.churning = [f"w:{number}" for number in range(3)]
        self.data: dict[tuple[str, int, int], object] = {}
        self.deleted: dict[str, set[int]] = {topic: set() for topic in (*self.topics, *self.churning)}
        self.watchers: list[Watcher] = []
        self.written = 0

    def write(self, topic: str) -> None:
        self.written += 1
        items = [self.written * 100 + at for at in range(self.random.randint(1, 4))]
        drafts = [{"data": item, "tag": f"t{item % 3}"} for item in items]
        done = self.rig.write(topic, *drafts)
        epoch = self.rig.engine.state(topic, touch=False).epoch
        self.data |= {(topic, epoch, seq): item for seq, item in zip(done.seqs, items, strict=True)}

    def delete(self) -> None:
        head = self.rig.log("erased").head_seq
        before = {record.seq for record in self.rig.read("erased")}
        if self.random.random() < 0.5:
            self.rig.delete("erased", before_seq=self.random.randint(1, head + 1))
        else:
            self.rig.delete("erased", match=f"t{self.random.randrange(3)}")
        self.deleted["erased"] |= before - {record.seq for record in self.rig.read("erased")}

    def churn(self) -> None:
        topic = self.random.choice(self.churning)
        if self.rig.engine.machine.topics.get(topic) is None or self.random.random() < 0.7:
            self.write(topic)
        else:
            self.rig.drop(topic)

    def restart(self) -> None:
        for watcher in self.watchers:
            watcher.cut()
        mode = self.random.choice(CRASHES)
        if mode is None:
            self.rig.kill()
        else:
            self.rig.crash(mode)
        self.edge.start()

    def pass_time(self) -> None:
        self.rig.clock.advance(self.random.choice((10, 500, 4000, 40_000)))
        for watcher in self.watchers:
            if watcher.pipe is not None:
                watcher.pipe.tick(self.rig.clock.ticks_ns())


class Watcher:
    """A client. `careful` keeps what it knows after every event, otherwise after one in a few."""

    def __init__(self, world: World, topics: dict[str, object], careful: bool) -> None:
        self.world = world
        self.topics = topics
        self.careful = careful
        self.pipe: Pipe | None = None
        self.url = ""
        self.cut_count = 0
        self.lives: dict[str, Life] = {}
        self.last_id = ""
        self._kept: tuple[str, dict[str, Life]] = ("", {})
        self._received = b""
        world.watchers.append(self)

    def cut(self) -> None:
        if self.pipe is not None:
            self.pipe.cut()
            self.cut_count += 1
        self.pipe = None
        self._received = b""

    def connect(self) -> None:
        self.last_id, lives = self._kept
        self.lives = {key: life.copy() for key, life in lives.items()}
        if not self.last_id:
            # Nothing came of the first connection, or it was not kept: begin anew.
            self.url = ""
        self.pipe = self.world.edge.open(self.url, self.last_id) if self.url else None
        if self.pipe is None:
            options = {"cursor": self.last_id} if self.last_id else {}
            self.url = self.world.edge.watch(self.topics, limit=3, **options)
            self.pipe = self.world.edge.open(self.url)
        assert self.pipe is not None

    def read(self, count: int | None) -> None:
        assert self.pipe is not None
        frames, self._received = split_frames(self._received + self.pipe.read(count))
        for frame in frames:
            self.take(frame)
        if self.pipe.ended and not self.pipe.unread:
            self.cut()

    def take(self, frame: Frame) -> None:
        if frame.event == "error":
            assert frame.fields["code"] in (408, 409), frame
        elif frame.event:
            self._learn(frame)
        if frame.id is not None:
            self.last_id = frame.id
            if self.careful or self.world.random.random() < 0.2:
                self._kept = (frame.id, {key: life.copy() for key, life in self.lives.items()})

    def _learn(self, frame: Frame) -> None:
        fields, world = frame.fields, self.world
        topic = fields["topic"]
        life = self.lives.setdefault(topic, Life())
        if frame.event == "record":
            epochs = frame.positions.get("$epochs", {})
            assert life.cursor <= fields["from_seq"] < fields["to_seq"] <= fields["head_seq"], frame
            for record in fields["records"]:
                seq = record["$seq"]
                assert fields["from_seq"] < seq <= fields["to_seq"]
                assert not life.seen or seq > life.seen[-1], "once, in order"
                known = [world.data.get((topic, epoch, seq)) for epoch in (epochs.get(topic),) if epoch] or [
                    value for (name, _, at), value in world.data.items() if (name, at) == (topic, seq)
                ]
                assert record["data"] in known
                life.seen.append(seq)
            life.cursor = fields["to_seq"]
        elif frame.event == "tombstone" and fields["reason"] == "recreated":
            self.lives[topic] = Life()
        elif frame.event == "tombstone":
            assert life.cursor < fields["gap_from"] <= fields["gap_to"], frame
            life.gaps.append((fields["gap_from"], fields["gap_to"]))
            life.cursor = fields["gap_to"]
        elif frame.event == "topic-deleted":
            self.lives[topic] = Life()

    def check(self, topic: str) -> None:
        life = self.lives.get(topic, Life())
        head = self.world.rig.log(topic).visible_seq
        lost = [seq for first, last in life.gaps for seq in range(first, last + 1)]
        assert len(life.seen) == len(set(life.seen)), "each record once"
        assert len(lost) == len(set(lost)), "each loss once"
        assert not set(lost) & set(life.seen)
        unknown = set(range(1, head + 1)) - set(life.seen) - set(lost)
        assert unknown <= self.world.deleted[topic], (topic, sorted(unknown)[:10])


def settle(world: World) -> None:
    """Everybody gets everything, without another cut."""
    for watcher in world.watchers:
        while True:
            if watcher.pipe is None:
                watcher.connect()
            world.rig.pump()
            if watcher.pipe is not None and not watcher.pipe.unread:
                break
            watcher.read(None)


def run(world: World, steps: int, restarts: bool) -> None:
    rng = world.random
    for _ in range(steps):
        chance = rng.random()
        if chance < 0.3:
            world.write(rng.choice(world.topics))
        elif chance < 0.34:
            world.delete()
        elif chance < 0.38:
            world.pass_time()
        elif chance < 0.385 and restarts:
            world.restart()
        elif chance < 0.42 and not restarts:
            world.churn()
        else:
            watcher = rng.choice(world.watchers)
            if watcher.pipe is None:
                watcher.connect()
            elif rng.random() < 0.4:
                watcher.cut()
            else:
                watcher.read(rng.choice((1, 20, 150, 600, 3000)))
        if rng.random() < 0.7:
            world.rig.pump()
    settle(world)


def checked(world: World) -> int:
    """Whether everybody knows everything; how often a stream was cut."""
    for watcher in world.watchers:
        for topic in watcher.topics:
            if not topic.endswith("*"):
                watcher.check(topic)
    return sum(watcher.cut_count for watcher in world.watchers)


def cuts_of_named_topics(seed: int, steps: int = STEPS) -> int:
    world = World(seed)
    for topic in world.topics:
        world.write(topic)
    for careful in (True, True, False):
        Watcher(world, {topic: {} for topic in world.topics}, careful)
    Watcher(world, {"capped": {}}, careful=True)
    run(world, steps, restarts=True)
    return checked(world)


def cuts_of_a_wildcard(seed: int, steps: int = STEPS) -> int:
    world = World(seed)
    for topic in (*world.topics, *world.churning):
        world.write(topic)
    named = {topic: {} for topic in world.topics}
    watchers = [Watcher(world, {**named, "w:*": {}}, careful) for careful in (True, False)]
    run(world, steps, restarts=False)
    for watcher in watchers:
        for topic in world.churning:
            if world.rig.engine.machine.topics.get(topic) is not None:
                watcher.check(topic)
    return checked(world)


def cuts_of_more_topics_than_an_id_can_name(seed: int, steps: int = STEPS) -> int:
    world = World(seed, extra_topics=65)
    for topic in world.topics:
        world.write(topic)
    for careful in (True, False):
        Watcher(world, {topic: {} for topic in world.topics}, careful)
    run(world, steps, restarts=False)
    return checked(world)


@pytest.mark.parametrize("search", [cuts_of_named_topics, cuts_of_a_wildcard, cuts_of_more_topics_than_an_id_can_name])
def test_nothing_is_lost_or_repeated_however_often_a_stream_is_cut(search) -> None:  # type: ignore[no-untyped-def]
    cut_count = sum(search(seed) for seed in range(6))
    assert cut_count > 500, "otherwise this shows nothing"


@pytest.mark.soak
@pytest.mark.parametrize("search", [cuts_of_named_topics, cuts_of_a_wildcard, cuts_of_more_topics_than_an_id_can_name])
def test_the_same_for_longer(search) -> None:  # type: ignore[no-untyped-def]
    for seed in range(1000, 1100):
        search(seed, 2000)
