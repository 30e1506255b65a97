"""A machine with routers, whose readers see everything at once; and the same machine out of its facts."""

from __future__ import annotations

import random
from typing import Any

from tests.core.rig import Rig
from topics.core import forward, routing
from topics.core.commands import DropRouter, PutRouter
from topics.core.derive import Derivation
from topics.core.facts import LogFact
from topics.core.forward import Lane, Step
from topics.core.log import Log
from topics.core.registry import META_LOG_ID
from topics.core.stretch import Cuts
from topics.routermodel import RouterConfig, RouterState


class RouterRig(Rig):
    def put(self, source: str, dest: str, name: str = "", **fields: Any) -> RouterState:
        config = RouterConfig(source=source, dest=dest, **fields)
        reply = self.step(PutRouter(name or f"{source}->{dest}", config)).reply
        assert isinstance(reply, RouterState)
        return reply

    def drop_router(self, name: str) -> Any:
        return self.step(DropRouter(name)).reply

    def show(self) -> None:
        for log in self.machine.logs.values():
            log.visible_seq = log.head_seq

    def lane(self, name: str, partition: int = 0) -> Lane:
        router = routing.find(self.machine, name)
        return Lane.of(self.machine, router, *routing.ends(self.machine, router)[partition])

    def advance(self, name: str, partition: int = 0, cuts: Cuts | None = None, lane: Lane | None = None) -> Step | None:
        """One step of a router."""
        self.show()
        found = forward.step(
            self.machine, lane or self.lane(name, partition), self.now_ms, {} if cuts is None else cuts
        )
        if found is not None and found.outcome is not None:
            self.keep(found.outcome)
        self.show()
        return found

    def run(self, name: str) -> None:
        """All steps of a router, in all its partitions."""
        for partition in range(len(routing.ends(self.machine, routing.find(self.machine, name)))):
            while self.advance(name, partition) is not None:
                pass

    def numbers(self, topic: str, partition: int = 0) -> list[Any]:
        """The data of all records, whatever gaps there are between them."""
        found: list[Any] = []
        from_seq = 0
        while True:
            page = self.page(from_seq, topic=topic, partition=partition)
            found += [record.data for record in page.records]
            if page.caught_up:
                return found
            from_seq = page.next_from_seq

    def rederived(self, seed: int = 0) -> tuple[RouterRig, Derivation]:
        """The machine again, out of its facts: those of a log in their order, logs in any."""
        other = RouterRig(self.machine.bounds)
        other.now_ms, machine = self.now_ms, other.machine

        def apply(log: Log, fact: LogFact | bytes | memoryview) -> None:
            if isinstance(fact, bytes | memoryview):
                machine.replay_log(log, True, memoryview(fact))
            else:
                log.apply(fact)

        derivation = Derivation(machine, apply)
        queues: dict[int, list[Any]] = {}
        for fact in self.facts:
            queues.setdefault(fact.log_id, []).append(fact)
        order = [fact.log_id for fact in self.facts if fact.log_id != META_LOG_ID]
        random.Random(seed).shuffle(order)
        for log_id in [META_LOG_ID] * len(queues.get(META_LOG_ID, ())) + order:
            fact = queues[log_id].pop(0)
            body = memoryview(b"".join(fact.body))
            log = machine.logs.get(log_id)
            if log_id == META_LOG_ID:
                machine.replay_meta(body)
                derivation.born()
            elif log is None:
                derivation.take_ghost(log_id, fact.appended, body)
            elif not fact.appended:
                derivation.take_fact(log, body)
            elif log_id in derivation.aside:
                derivation.take_appended(log, body)
            else:
                machine.replay_log(log, True, body)
        derivation.finish()
        for log in machine.logs.values():
            log.recount()
            log.visible_seq = log.head_seq
        return other, derivation
