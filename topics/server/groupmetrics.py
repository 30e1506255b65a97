"""What a scrape tells of consumer groups: a bounded number of them, of topics that the one who asks may see."""

from __future__ import annotations

from collections.abc import Iterator

from topics.engine.engine import Engine
from topics.server.exposition import Family, counter, gauge
from topics.server.principal import Principal

GROUPS_SHOWN_MAX = 1000
"""Positions of groups in the families by group; those of the first names, when there are more."""


def of_groups(engine: Engine, principal: Principal) -> Iterator[Family]:
    lag = gauge("topics_group_lag", "Seqs between a group's committed one and the head.")
    in_flight = gauge("topics_group_in_flight", "Seqs that consumers of a group have.")
    waiting = gauge("topics_group_waiting", "Seqs that a group is to be handed again.")
    oldest = gauge("topics_group_oldest_unacked_ms", "How old the oldest record is that a group has not acked.")
    lost = counter("topics_group_lost_total", "Seqs that a group lost before it acked them.")
    dead = counter("topics_group_dead_lettered_total", "Records that a group gave up as dead letters.")
    shown = 0
    truncated = False
    now_ms = engine.now_ms()
    for topic in engine.groups.topics():
        if not principal.may_touch(topic):
            continue
        for state in engine.groups.list(topic):
            if shown == GROUPS_SHOWN_MAX:
                truncated = True
                break
            shown += 1
            labels = (("topic", topic), ("partition", str(state.partition)), ("group", state.group))
            lag.add(state.lag, *labels)
            in_flight.add(state.in_flight, *labels)
            waiting.add(state.waiting, *labels)
            oldest.add(max(0, now_ms - state.oldest_unacked_ts) if state.oldest_unacked_ts else 0, *labels)
            lost.add(state.lost_count, *labels)
            dead.add(state.dead_lettered, *labels)
    yield from (lag, in_flight, waiting, oldest, lost, dead)
    yield gauge("topics_group_consumes_waiting", "Consumes that wait for records.", engine.groups.waiting_count())
    yield gauge("topics_group_streams", "Consumers to which records are pushed.", engine.groups.stream_count())
    doc = "Whether there are more groups than the families by group show."
    yield gauge("topics_group_metrics_truncated", doc, int(truncated))
