"""Completing jobs together with their results: the jobs are deleted and the results written, both or neither.

It is a move (`core/move.py`) out of the queue: what leaves are the jobs, what comes are the results. Unlike an ack it
takes all of its jobs or none: results of a job that somebody else has got meanwhile must not be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topics.core import config as configs
from topics.core import move, settle
from topics.core.claim import find_queue
from topics.core.commands import Append, Complete
from topics.core.delay import check_delay, delay_of
from topics.core.facts import MovePart
from topics.core.names import check_topic
from topics.core.outcome import Outcome
from topics.errors import InvalidRequest, LeaseLost, TopicNotFound
from topics.limits import RESULT_PARTS_MAX
from topics.model import CompletedJobs

if TYPE_CHECKING:
    from topics.core.machine import Machine


def complete(machine: Machine, command: Complete, now_ms: int) -> Outcome:
    """The reply lacks where the results went, which the move tells when it has landed."""
    settle.check_named(machine, command)
    if not 1 <= len(command.results) <= RESULT_PARTS_MAX:
        raise InvalidRequest(
            f"results must name 1 to {RESULT_PARTS_MAX} topics, not {len(command.results)}; without any, ack the jobs",
            field="results",
            expected=f"1 to {RESULT_PARTS_MAX}",
        )
    topic, log, queue = find_queue(machine, command.topic, command.partition, now_ms)
    held, skipped = settle.split(queue.leases, command)
    if skipped:
        gone = [seq for seq in skipped if seq not in queue.leases and seq < queue.cursor]
        raise LeaseLost(
            f'{len(skipped)} of {len(command.seqs)} jobs are not leased to "{command.node}" any more: nothing was done',
            topic=topic.name,
            skipped=skipped,
            gone=gone,
        )
    places = {(machine.topics.name_of(result.topic), result.partition) for result in command.results}
    if len(places) < len(command.results):
        raise InvalidRequest("each partition of a topic may be named once in results", field="results")
    parts = [_part(machine, result, now_ms) for result in command.results]
    begun = move.decide(machine, log, held, parts)
    state = queue.state(log)
    reply = CompletedJobs(
        topic=topic.name,
        partition=log.partition,
        acked=len(held),
        ready=state.ready,
        in_flight=state.in_flight - len(held),
    )
    return Outcome(reply, log=log, durability=topic.config.durability, moves=[begun])


def _part(machine: Machine, result: Append, now_ms: int) -> MovePart:
    """The records for one target, checked as a write to it would be."""
    if result.dedupe_key is not None:
        raise InvalidRequest("results are written once with their jobs; they take no idempotency key", field="results")
    delay = delay_of(result, now_ms)
    topic = machine.topics.get(result.topic)
    if topic is not None:
        check_delay(topic.name, topic.config, any(delay))
        target = machine.log(topic, result.partition)
        target.observe(topic.config, now_ms)
        machine.check_room(topic.name, topic.config, target, result.records)
        return move.part(machine, topic.name, result.partition, target, result.records, now_ms, delay=delay)
    config = configs.build(check_topic(result.topic), result.config or {})
    check_delay(result.topic, config, any(delay))
    if not (config.auto_create if result.create is None else result.create):
        raise TopicNotFound(f'topic "{result.topic}" does not exist and may not be created', topic=result.topic)
    machine.check_partition(result.topic, config, result.partition)
    machine.check_topic_count()
    machine.check_room(result.topic, config, None, result.records)
    return move.part(machine, result.topic, result.partition, None, result.records, now_ms, config, delay)
