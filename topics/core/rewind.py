"""After a crash: a router goes back to what is left of its source.

A source of class `memory` or `ephemeral` may have lost its end, and gives out the same seqs again. A router that had
come further would pass over what gets them next. So it is put back, and that has to be durable before the source takes
anything new: from its records alone nobody could tell later which of them came before the crash.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from topics.core import forward, routing
from topics.core.facts import encode
from topics.core.inflow import RouteKey
from topics.core.outcome import StoredFact
from topics.core.registry import META_LOG_ID
from topics.core.router import Router
from topics.core.routerfacts import Forwarded, RouterPut

if TYPE_CHECKING:
    from topics.core.machine import Machine


def rewind(machine: Machine, router: Router) -> list[StoredFact]:
    """Put a router back as far as its source was; the facts that say so, none when it stays where it is."""
    facts: list[StoredFact] = []
    starts = list(router.starts)
    for source, dest in routing.ends(machine, router):
        head_seq = source.head_seq
        if routing.cursor(router, source, dest) <= head_seq:
            continue
        starts[source.partition] = min(starts[source.partition], head_seq)
        if dest.inflow is not None and RouteKey(router.number, source.log_id) in dest.inflow.routes:
            fact = Forwarded(router.number, source.log_id, head_seq, first_seq=dest.next_seq)
            forward.remember(dest, fact)
            facts.append(StoredFact(dest.log_id, False, [encode(fact)]))
    if tuple(starts) != router.starts:
        router = replace(router, starts=tuple(starts))
        machine.routers.put(router)
        put = RouterPut(router.name, router.number, router.config, router.created_ms, router.starts)
        facts.append(StoredFact(META_LOG_ID, False, [encode(put)]))
    return facts
