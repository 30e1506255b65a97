"""Routers put and dropped, and how far each one is. See docs/ROUTERS.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from topics.core.facts import encode
from topics.core.inflow import RouteKey
from topics.core.log import Log
from topics.core.names import check_router, check_topic
from topics.core.outcome import Outcome, StoredFact
from topics.core.registry import META_LOG_ID, Topic
from topics.core.router import Router
from topics.core.routerfacts import RouterFact, RouterGone, RouterPut
from topics.core.tail import Tail
from topics.errors import (
    Damaged,
    InvalidRequest,
    RouterCycle,
    RouterNotFound,
    Throttled,
    TopicExistsIncompatible,
    TopicNotFound,
)
from topics.model import TopicConfig
from topics.routermodel import RouterConfig, RouterDropped, RouterState

if TYPE_CHECKING:
    from topics.core.commands import DropRouter, PutRouter
    from topics.core.machine import Machine


def find(machine: Machine, name: str) -> Router:
    found = machine.routers.get(name)
    if found is None:
        raise RouterNotFound(f'router "{check_router(name)}" does not exist', router=name)
    return found


def put(machine: Machine, command: PutRouter, now_ms: int) -> Outcome:
    """Everything is checked before the first topic is made for it."""
    name, config = check_router(command.router), _without_aliases(machine, command.config)
    existing = machine.routers.get(name)
    _check_ends(config)
    wanted = Router.of(name, 0, config, now_ms, ())
    _check_count(machine, existing)
    _check_graph(machine, name, config)
    missing = _check_topics(machine, config)
    facts = [machine.create(topic, TopicConfig(), now_ms)[1] for topic in missing]
    if existing is not None and _same_ends(existing.config, config):
        starts = tuple(cursors(machine, existing))
        wanted = Router(name, existing.number, config, existing.created_ms, starts, wanted.match)
        if existing.config == config:
            return Outcome(state(machine, existing, now_ms))
    else:
        starts = _starts(machine, config, now_ms)
        wanted = Router(name, machine.next_epoch, config, now_ms, starts, wanted.match)
    fact = RouterPut(name, wanted.number, config, wanted.created_ms, wanted.starts)
    apply(machine, fact)
    facts.append(StoredFact(META_LOG_ID, False, [encode(fact)]))
    return Outcome(state(machine, wanted, now_ms, created=existing is None), facts, must_sync=True)


def drop(machine: Machine, command: DropRouter) -> Outcome:
    name = check_router(command.router)
    if machine.routers.get(name) is None:
        return Outcome(RouterDropped(router=name, deleted=False))
    fact = RouterGone(name)
    apply(machine, fact)
    facts = [StoredFact(META_LOG_ID, False, [encode(fact)])]
    return Outcome(RouterDropped(router=name, deleted=True), facts, must_sync=True)


def apply(machine: Machine, fact: RouterFact) -> None:
    if isinstance(fact, RouterGone):
        machine.routers.remove(fact.router)
        return
    machine.routers.put(Router.of(fact.router, fact.number, fact.config, fact.created_ms, fact.starts))
    machine.next_epoch = max(machine.next_epoch, fact.number + 1)


def prune(machine: Machine) -> list[str]:
    """After a repair: routers whose topics are lost, or not those they were, go; their names."""
    gone = [router.name for router in machine.routers if not _fits(machine, router)]
    for name in gone:
        machine.routers.remove(name)
    return gone


def _fits(machine: Machine, router: Router) -> bool:
    source, dest = machine.topics.named(router.config.source), machine.topics.named(router.config.dest)
    return source is not None and dest is not None and source.config.partitions == len(router.starts)


# ---- how far a router is


def ends(machine: Machine, router: Router) -> list[tuple[Log, Log]]:
    """Each partition of the source, and the one of the destination that it goes to."""
    source, dest = machine.topic(router.config.source), machine.topic(router.config.dest)
    partitions = range(source.config.partitions)
    return [(machine.log(source, at), machine.log(dest, at % dest.config.partitions)) for at in partitions]


def cursor(router: Router, source: Log, dest: Log) -> int:
    """The last seq of a source log that a router is done with."""
    start = router.starts[source.partition]
    route = None if dest.inflow is None else dest.inflow.routes.get(RouteKey(router.number, source.log_id))
    return start if route is None else max(start, route.cursor)


def cursors(machine: Machine, router: Router) -> list[int]:
    return [cursor(router, source, dest) for source, dest in ends(machine, router)]


def state(machine: Machine, router: Router, now_ms: int, created: bool = False) -> RouterState:
    lag_records = lag_ms = forwarded = trimmed = 0
    reached: list[int] = []
    for source, dest in ends(machine, router):
        at = cursor(router, source, dest)
        reached.append(at)
        route = None if dest.inflow is None else dest.inflow.routes.get(RouteKey(router.number, source.log_id))
        forwarded += route.forwarded_count if route is not None else 0
        trimmed += route.trimmed_count if route is not None else 0
        if at < source.visible_seq:
            lag_records += source.visible_seq - at
            lag_ms = max(lag_ms, now_ms - _ts_behind(source, at, now_ms))
    return RouterState(
        router=router.name,
        config=router.config,
        created=created,
        created_ts=router.created_ms,
        cursors=tuple(reached),
        lag_records=lag_records,
        lag_ms=lag_ms,
        forwarded_total=forwarded,
        trimmed_total=trimmed,
    )


def _ts_behind(log: Log, seq: int, now_ms: int) -> int:
    """The time of the first record behind a seq that is there; now, when there is none or it cannot be read."""
    for run in log.parts_from(max(seq + 1, log.low)):
        first = max(seq + 1, log.low, run.first_seq)
        try:
            block, _ = run.block_of(first, 1) if isinstance(run, Tail) else run.block_at(first)
        except Damaged:
            return now_ms
        return min(now_ms, block.ts(first - block.first_seq))
    return now_ms


# ---- what may be put


def _check_ends(config: RouterConfig) -> None:
    check_topic(config.source, "source")
    check_topic(config.dest, "dest")
    if config.source == config.dest:
        raise InvalidRequest(
            f'a router leads from one topic to another: source and dest are both "{config.source}"',
            field="dest",
            expected="another topic than source",
        )


def _check_count(machine: Machine, existing: Router | None) -> None:
    most = machine.bounds.routers_max
    if existing is None and most and len(machine.routers) >= most:
        raise Throttled(
            f"there are {len(machine.routers)} routers, as many as TOPICS_MAX_ROUTERS allows",
            limit="max_routers",
            max=most,
        )


def _check_graph(machine: Machine, name: str, config: RouterConfig) -> None:
    other = machine.routers.source_of(config.dest, without=name)
    if other is not None and other != config.source:
        raise TopicExistsIncompatible(
            f'topic "{config.dest}" gets records from "{other}" already, and a topic has one source: '
            f'"{config.source}" cannot be another; write to it directly, or route to a topic of its own',
            reason="router_dest_fan_in",
            topic=config.dest,
            source=other,
        )
    cycle = None if config.allow_cycle else machine.routers.cycle_of(config.source, config.dest, without=name)
    if cycle is not None:
        raise RouterCycle(
            f"records would go around: {' -> '.join(cycle)}; if that is meant, put the router with allow_cycle true",
            cycle=cycle,
        )


def _check_topics(machine: Machine, config: RouterConfig) -> list[str]:
    """The topics that have to be made, when they may be."""
    topics, most = machine.topics, machine.bounds.topics_max
    if topics.get(config.dest) is None and not config.create_dest:
        raise TopicNotFound(
            f'topic "{config.dest}" does not exist, and create_dest is false: create it first', topic=config.dest
        )
    missing = [name for name in (config.source, config.dest) if topics.get(name) is None]
    if most and len(topics) + len(missing) > most:
        raise Throttled(
            f"there are {len(topics)} topics, {len(missing)} would have to be made, and TOPICS_MAX_TOPICS is {most}",
            limit="max_topics",
            max=most,
        )
    return missing


def _without_aliases(machine: Machine, config: RouterConfig) -> RouterConfig:
    source, dest = machine.topics.get(config.source), machine.topics.get(config.dest)
    return msgspec.structs.replace(
        config,
        source=config.source if source is None else source.name,
        dest=config.dest if dest is None else dest.name,
    )


def _same_ends(before: RouterConfig, after: RouterConfig) -> bool:
    return (before.source, before.dest) == (after.source, after.dest)


def _starts(machine: Machine, config: RouterConfig, now_ms: int) -> tuple[int, ...]:
    source: Topic = machine.topic(config.source)
    starts = []
    for log_id in source.log_ids():
        log = machine.logs[log_id]
        log.observe(source.config, now_ms)
        starts.append(log.earliest_seq() - 1 if config.backfill else log.head_seq)
    return tuple(starts)
