"""A random net of routers on an engine that dies and comes back, and what must hold of it at every moment.

Each record that is written has a number of its own. What a topic shows is read in whole, gaps included, and compared
with what it showed before and with what its source shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from tests.engine.rig import SMALL, Rig
from topics.core import routing
from topics.core.commands import Append, Configure, Delete, Drop, DropRouter, PutRouter
from topics.core.inflow import RouteKey
from topics.core.log import Log
from topics.core.match import Match
from topics.core.records import Records
from topics.core.router import Router
from topics.errors import RouterCycle, TopicExistsIncompatible, TopicNotFound, TopicsError
from topics.model import Durability, Reason, Tombstone, TopicState
from topics.routermodel import Guarantee, RouterConfig
from topics.testing import CRASH_MODES

TOPICS = ("a", "b", "c", "d", "e", "f")
TAGS = ("", "x:1", "x:2", "y")


@dataclass(slots=True)
class Shown:
    """All that a reader of a log sees."""

    records: dict[int, bytes] = field(default_factory=dict)
    gaps: list[Tombstone] = field(default_factory=list)

    def numbers(self) -> list[int]:
        return [msgspec.json.decode(text)["data"]["n"] for text in self.records.values()]


def show(rig: Rig, topic: str, partition: int = 0) -> Shown:
    shown, from_seq = Shown(), 0
    while True:
        page = rig.engine.read(topic, from_seq, partition=partition, limit=1000, touch=False)
        for record in msgspec.json.decode(b"[%b]" % page.body, type=list[msgspec.Raw]):
            shown.records[msgspec.json.decode(record)["$seq"]] = bytes(record)
        if page.tombstone is not None:
            shown.gaps.append(page.tombstone)
        if page.next_from_seq == from_seq:
            return shown
        from_seq = page.next_from_seq


class Net:
    def __init__(self, seed: int, volatile: bool = False, backfill: bool = False, cycles: bool = False) -> None:
        self.random = random.Random(seed)
        self.classes = list(Durability) if volatile else [Durability.DISK, Durability.FSYNC]
        self.strict = not (volatile or backfill or cycles)
        """Whether no record ever comes twice: not where a topic forgets in a crash, a router is made again from the
        beginning, or a ring is closed while records are on their way."""
        self.backfill = backfill
        self.cycles = cycles
        self.rig = Rig(SMALL)
        self.number = 0
        self.deleted: set[str] = set()
        """Topics of which something was deleted: what is missing there is not counted."""
        self.seen: dict[int, dict[int, bytes]] = {}
        """By log: what each seq was seen to be."""
        self.came: dict[int, set[int]] = {}
        """By log: the numbers that were ever seen there, whether it forgot them since or not."""
        for name in TOPICS:
            self._make(name)

    # ---- what happens

    def act(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (30, self._write),
            (12, self._put),
            (4, self._drop_router),
            (3, self._delete),
            (2, self._drop_topic),
            (3, self._configure),
            (6, self.rig.driver.checkpoint),
            (8, self._pass_time),
            (5, self._kill),
            (4, self._crash),
            (3, self.rig.stop),
            (10, self._halfway),
        ]
        weights = [weight for weight, _ in actions]
        self.random.choices([action for _, action in actions], weights)[0]()

    def _make(self, name: str) -> None:
        chance = self.random
        fields: dict[str, object] = {"durability": chance.choice(self.classes).value}
        if chance.random() < 0.25:
            fields |= {"cap_records": chance.choice([5, 40, 700]), "discard": chance.choice(["old", "reject"])}
        if chance.random() < 0.2:
            fields["type"] = "queue"
        if chance.random() < 0.2:
            fields["partitions"] = 2
        self.rig.driver.do(Configure(name, fields))

    def _records(self, count: int) -> Records:
        drafts = []
        for _ in range(count):
            self.number += 1
            draft: dict[str, object] = {"data": {"n": self.number}, "node": self.random.choice(["", "n1", "n2"])}
            draft["tag"] = self.random.choice(TAGS)
            if self.random.random() < 0.3:
                draft["meta"] = {"k": "v"}
            drafts.append(draft)
        return Records.of(drafts)

    def _write(self) -> None:
        name = self.random.choice(TOPICS)
        topic = self.rig.engine.machine.topics.get(name)
        if topic is None:
            self._make(name)
            return
        partition = self.random.randrange(topic.config.partitions)
        count = self.random.choice([1, 1, 2, 5, 30, 600])
        try:
            ticket = self.rig.engine.submit(Append(name, self._records(count), partition))
        except TopicsError as error:
            assert topic.config.discard == "reject", error
            return
        if self.random.random() < 0.6:
            self.rig.driver.wait(ticket)

    def _put(self) -> None:
        chance = self.random
        source, dest = chance.sample(TOPICS, 2)
        config = RouterConfig(
            source=source,
            dest=dest,
            preserve_node=chance.random() < 0.8,
            preserve_tag=chance.random() < 0.8,
            filter=chance.choice([None, None, None, ("tag", "Eq", "y"), ("tag", "Glob", "x:*")]),
            allow_cycle=self.cycles and chance.random() < 0.6,
            guarantee=chance.choice(list(Guarantee)),
            backfill=self.backfill and chance.random() < 0.5,
        )
        try:
            self.rig.driver.wait(self.rig.engine.submit(PutRouter(f"{source}->{dest}", config)))
        except (RouterCycle, TopicExistsIncompatible):
            return

    def _drop_router(self) -> None:
        for router in list(self.rig.engine.machine.routers)[:1]:
            self.rig.driver.do(DropRouter(router.name))

    def _delete(self) -> None:
        name = self.random.choice(TOPICS)
        match = self.random.choice([None, Match(b"x:", prefix=True)])
        try:
            head = self.rig.engine.state(name, touch=False).head_seq
            before_seq = self.random.randrange(1, head + 2)
            self.rig.driver.do(Delete(name, before_seq=before_seq, match=match))
        except TopicNotFound:
            return
        self.deleted.add(name)

    def _drop_topic(self) -> None:
        name = self.random.choice(TOPICS)
        self.rig.driver.do(Drop(name))
        self.deleted.discard(name)

    def _configure(self) -> None:
        name = self.random.choice(TOPICS)
        if self.rig.engine.machine.topics.get(name) is not None:
            fields = {"durability": self.random.choice(self.classes).value}
            self.rig.driver.do(Configure(name, fields, merge=True))
            # What was written before is as safe as the old class says; from here on the new one counts.
            self.rig.clock.advance(1000)
            self.rig.work()

    def _pass_time(self) -> None:
        self.rig.clock.advance(self.random.choice([1, 50, 250, 2000]))
        self.rig.engine.tick()
        self.rig.work()

    def _halfway(self) -> None:
        """Some of the work, in any order."""
        for _ in range(self.random.randrange(1, 6)):
            part = self.random.randrange(3)
            if part == 0:
                self.rig.engine.flush()
            elif part == 1:
                self.rig.driver.wal.work()
            else:
                self.rig.engine.forwarding.pump()
            self.look(finished=False)

    def _kill(self) -> None:
        safe = self._safe(lambda log: log.visible_seq)
        self.rig.kill()
        self._survived(safe)

    def _crash(self) -> None:
        machine = self.rig.engine.machine

        def durable(log: Log) -> int:
            is_fsync = machine.topic(log.topic).config.durability is Durability.FSYNC
            return log.visible_seq if is_fsync else min(log.visible_seq, log.synced_seq)

        safe = self._safe(durable)
        self.rig.crash(self.random.choice(sorted(CRASH_MODES)))
        self._survived(safe)

    # ---- what holds

    def _logs(self) -> list[tuple[TopicState, Log]]:
        machine, engine = self.rig.engine.machine, self.rig.engine
        logs = [machine.logs[log_id] for topic in machine.topics for log_id in topic.log_ids()]
        return [(engine.state(log.topic, log.partition, touch=False), log) for log in logs]

    def _safe(self, upto: Callable[[Log], int]) -> dict[int, dict[int, bytes]]:
        """What must be there after the crash: by log and seq."""
        safe = {}
        for state, log in self._logs():
            if state.config.durability is Durability.EPHEMERAL or log.volatile is not None:
                continue
            shown = show(self.rig, log.topic, log.partition)
            last = upto(log)
            safe[log.log_id] = {seq: text for seq, text in shown.records.items() if seq <= last}
        return safe

    def _survived(self, safe: dict[int, dict[int, bytes]]) -> None:
        for state, log in self._logs():
            shown = show(self.rig, log.topic, log.partition)
            lost = {seq: text for seq, text in safe.get(log.log_id, {}).items() if shown.records.get(seq) != text}
            lost = {seq: text for seq, text in lost.items() if seq >= log.low}
            assert not lost, (log.topic, state.config.durability, sorted(lost)[:3], len(lost))
            if state.config.durability in (Durability.MEMORY, Durability.EPHEMERAL):
                self.seen.pop(log.log_id, None)

    def look(self, finished: bool = True) -> None:
        """Nothing that was seen is ever something else; and what routers promise holds."""
        for state, log in self._logs():
            shown = show(self.rig, log.topic, log.partition)
            if state.config.durability not in (Durability.MEMORY, Durability.EPHEMERAL):
                seen = self.seen.setdefault(log.log_id, {})
                for seq, text in shown.records.items():
                    assert seen.setdefault(seq, text) == text, (log.topic, seq)
            numbers = shown.numbers()
            self.came.setdefault(log.log_id, set()).update(numbers)
            if self.strict:
                assert len(set(numbers)) == len(numbers), f"{log.topic} has a record twice"
        for router in list(self.rig.engine.machine.routers):
            for source, dest in routing.ends(self.rig.engine.machine, router):
                self._check_route(router, source, dest, finished)

    def _check_route(self, router: Router, source: Log, dest: Log, finished: bool) -> None:
        engine = self.rig.engine
        cursor, start = routing.cursor(router, source, dest), router.starts[source.partition]
        way = engine.forwarding.ways(router.name)[source.partition]
        if finished and way.stalled is None:
            assert cursor == source.visible_seq, f"{router.name} stands at {cursor} of {source.visible_seq}"
        from_source = show(self.rig, source.topic, source.partition)
        order = {number: seq for seq, number in zip(from_source.records, from_source.numbers(), strict=True)}
        caps = engine.machine.topic(dest.topic).config.cap_records
        if router.match is None and not caps and not self.cycles and dest.topic not in self.deleted:
            passed = {number for number, seq in order.items() if start < seq <= cursor}
            never = passed - self.came.get(dest.log_id, set())
            assert not never or not finished, f"{router.name} passed over {sorted(never)[:5]}"
        if not self.strict:
            return
        at_dest = show(self.rig, dest.topic, dest.partition)
        arrived = [order[number] for number in at_dest.numbers() if number in order]
        assert arrived == sorted(arrived), f"{router.name}: out of order"
        if router.match is not None or self.deleted & {source.topic, dest.topic}:
            return
        route = None if dest.inflow is None else dest.inflow.routes.get(RouteKey(router.number, source.log_id))
        if route is not None and not start:
            assert cursor == route.forwarded_count + route.trimmed_count, (
                f"{router.name}: a loss that nobody is told of"
            )
        if finished and not {gap.reason for gap in at_dest.gaps} & {Reason.CAP, Reason.MIXED}:
            missing = {seq for seq in order.values() if start < seq <= cursor} - set(arrived)
            assert not missing, f"{router.name}: {sorted(missing)[:5]} are missing at {dest.topic}"
