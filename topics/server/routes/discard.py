"""Dead letters of queues and groups: where there are any, and deleting them.

A deletion is steps of the engine, one after the other. A request works for a bounded time and says how far it came; the
next one goes on from there. It looks at what was there when it began.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from topics.core.commands import Discard
from topics.core.discard import Discarded
from topics.core.names import check_topic
from topics.core.registry import Topic
from topics.engine.host import Host
from topics.limits import REDRIVE_CALL_MS_MAX, SECOND_MS
from topics.server.answers import later, success
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import EVERY_TOPIC, Operation, Route
from topics.server.shapes import TOPIC, answer, body
from topics.server.steps import next_step
from topics.wire.queue import DiscardRequest, decode_discard

SLICE = 256
"""Topics looked at before the loop gets a turn."""


def discard(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_discard(request.body)
    if wanted.source is not None:
        check_name(request.principal, check_topic(wanted.source, "source"), "source")
    later(context, request, reply, _discard(context, host, request, topic, wanted))


async def _discard(context: Context, host: Host, request: Request, topic: str, wanted: DiscardRequest) -> Response:
    loop = asyncio.get_running_loop()
    until = loop.time() + REDRIVE_CALL_MS_MAX / SECOND_MS
    await host.freshened(topic)
    done = await _step(host, topic, wanted, None)
    while not (done.done or done.deleted == wanted.limit or context.draining or loop.time() >= until):
        done = _sum(done, await _step(host, topic, wanted, done))
    fields = msgspec.structs.asdict(done)
    found = host.engine.machine.topics.get(topic)
    if found is None or found.config.partitions == 1:
        del fields["partition"]
    return success(context, request, fields)


async def _step(host: Host, topic: str, wanted: DiscardRequest, done: Discarded | None) -> Discarded:
    """The next step behind what is done."""
    step = next_step(wanted, done, 0 if done is None else done.deleted)
    reply = await host.submit_patiently(
        Discard(
            topic,
            wanted.partition,
            wanted.match,
            wanted.source,
            wanted.reason,
            *step,
            wanted.dry_run,
        )
    )
    assert isinstance(reply, Discarded)
    return reply


def _sum(done: Discarded, step: Discarded) -> Discarded:
    """Both, with the head of the first: what came later is none of this."""
    return msgspec.structs.replace(
        done,
        deleted=done.deleted + step.deleted,
        skipped=done.skipped + step.skipped,
        scanned=done.scanned + step.scanned,
        next_from_seq=step.next_from_seq,
        done=step.done,
    )


def listed(context: Context, request: Request, reply: Reply) -> None:
    later(context, request, reply, _listed(context, context.ready(), request))


async def _listed(context: Context, host: Host, request: Request) -> Response:
    """All topics are looked at, in slices: which ones have dead letters is written nowhere else."""
    registry = host.engine.machine.topics
    sources: dict[str, list[Topic]] = {}
    after = ""
    while page := registry.page(after, "", SLICE):
        after = page[-1].name
        for topic in page:
            letters = topic.config.dead_letter
            if letters is not None and request.principal.may_touch(topic.name):
                sources.setdefault(registry.name_of(letters), []).append(topic)
        await asyncio.sleep(0)
    told = [_told(host, name, found) for name, found in sorted(sources.items()) if request.principal.may_touch(name)]
    return success(context, request, {"topics": told})


def _told(host: Host, name: str, sources: list[Topic]) -> dict[str, Any]:
    found = host.engine.machine.topics.get(name)
    logs = [] if found is None else [host.engine.machine.logs[log_id] for log_id in found.log_ids()]
    states = [] if found is None else [host.engine.state(name, log.partition, touch=False) for log in logs]
    return {
        "topic": name,
        "exists": found is not None,
        "count": sum(state.count for state in states),
        "bytes": sum(state.bytes for state in states),
        "partitions": len(states),
        "last_write_ts": max((state.last_write_ts for state in states if state.last_write_ts), default=None),
        "sources": [{"topic": topic.name, "type": topic.config.type.value} for topic in sources],
    }


ROUTES = (
    Route(
        "GET",
        "/v0/dead_letters",
        Scope.READ,
        listed,
        Operation(
            "Where dead letters are",
            "Each topic that dead letters go to, how much it holds, and the topics they come from; only those that the "
            "key may touch.",
            "queues",
            responses={"200": answer("DeadLetterTopics", "The topics.")},
        ),
        reads=EVERY_TOPIC,
    ),
    Route(
        "POST",
        "/v0/topics/{topic}/dead_letters/delete",
        Scope.DELETE,
        discard,
        Operation(
            "Delete dead letters of queues",
            "Deletes dead letters out of this topic, for good. Other records stay. Works for 10 s at most; while "
            "`done` is false, ask again with `next_from_seq` as `from_seq`, and `head_seq` + 1 as `before_seq`.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("DiscardRequest", required=False),
            responses={"200": answer("Discarded", "How many went, and where it got to.")},
        ),
        name_param="topic",
        noted=False,
    ),
)
