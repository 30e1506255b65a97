"""Bringing dead letters back: steps of the engine, one after the other, no faster than asked for.

A request works for a bounded time and says how far it came; the next one goes on from there. It looks at what was there
when it began: a job that fails again meanwhile, and is a dead letter again, waits for another time.
"""

from __future__ import annotations

import asyncio

import msgspec

from topics.core.commands import Redrive
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.errors import Forbidden
from topics.limits import REDRIVE_CALL_MS_MAX, REDRIVE_STEP, SECOND_MS
from topics.model import Redriven
from topics.server.answers import later, success
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.shapes import TOPIC, answer, body
from topics.server.steps import next_step
from topics.wire.queue import RedriveRequest, decode_redrive

STEPS_PER_SECOND = 10
"""How often a redrive that is held to a rate moves something."""


def redrive(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_redrive(request.body)
    _check_names(request.principal, wanted)
    later(context, request, reply, _redrive(context, host, request, topic, wanted))


def _check_names(principal: Principal, wanted: RedriveRequest) -> None:
    """A key that may touch some names only has to say which queue it writes to."""
    for field, name in (("destination", wanted.destination), ("source", wanted.source)):
        if name is not None:
            check_name(principal, check_topic(name, field), field)
    if principal.prefixes and wanted.destination is None and wanted.source is None:
        raise Forbidden(
            "this key may touch some names only, and dead letters may come from any queue: name one in source or "
            "destination",
            field="source",
            expected="source or destination",
        )


async def _redrive(context: Context, host: Host, request: Request, topic: str, wanted: RedriveRequest) -> Response:
    loop = asyncio.get_running_loop()
    began = loop.time()
    rate = wanted.rate_per_second
    await host.freshened(topic)
    done = await _step(host, topic, wanted, None)
    while _goes_on(context, wanted, done, loop.time() - began):
        if rate is not None:
            await asyncio.sleep(began + done.moved / rate - loop.time())
            if not _goes_on(context, wanted, done, loop.time() - began):
                break
        done = _sum(done, await _step(host, topic, wanted, done))
    fields = msgspec.structs.asdict(done)
    found = host.engine.machine.topics.get(topic)
    if found is None or found.config.partitions == 1:
        del fields["partition"]
    return success(context, request, fields)


def _goes_on(context: Context, wanted: RedriveRequest, done: Redriven, elapsed_s: float) -> bool:
    full = wanted.limit is not None and done.moved >= wanted.limit
    return not (done.done or full or context.draining or elapsed_s * SECOND_MS >= REDRIVE_CALL_MS_MAX)


async def _step(host: Host, topic: str, wanted: RedriveRequest, done: Redriven | None) -> Redriven:
    """The next step behind what is done."""
    most = REDRIVE_STEP
    if wanted.rate_per_second is not None:
        most = min(most, -(-wanted.rate_per_second // STEPS_PER_SECOND))
    step = next_step(wanted, done, 0 if done is None else done.moved, most)
    reply = await host.submit_patiently(
        Redrive(
            topic,
            wanted.partition,
            wanted.destination,
            wanted.match,
            wanted.source,
            wanted.reason,
            *step,
            wanted.dry_run,
        )
    )
    assert isinstance(reply, Redriven)
    return reply


def _sum(done: Redriven, step: Redriven) -> Redriven:
    """Both, with the head of the first: what came later is none of this redrive."""
    return msgspec.structs.replace(
        done,
        moved=done.moved + step.moved,
        skipped=done.skipped + step.skipped,
        scanned=done.scanned + step.scanned,
        next_from_seq=step.next_from_seq,
        done=step.done,
    )


ROUTES = (
    Route(
        "POST",
        "/v0/topics/{topic}/redrive",
        Scope.READ | Scope.WRITE,
        redrive,
        Operation(
            "Bring dead letters back",
            "Moves dead letters out of this topic, back to the queues they came from or to `destination`, each in one "
            "commit: never in neither place, never in both. Other records stay. Works for 10 s at most; while `done` "
            "is false, ask again with `next_from_seq` as `from_seq`, and `head_seq` + 1 as `before_seq` to leave out "
            "what failed again meanwhile.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("RedriveRequest", required=False),
            responses={"200": answer("Redriven", "How many went, and where it got to.")},
        ),
        name_param="topic",
    ),
)
