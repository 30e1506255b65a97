"""A queue's jobs by request: lease them, complete them, give them back, keep them longer.

Jobs are handed out as the engine made them, text cut from the log with the lease in it; nothing is done a job here. A
claim that waits has no task: its ticket is done when there is a job or the time is over. Somebody who asks and goes
away must not be leased anything any more, so a claim asks to be told (`Request.on_gone`).

What busy workers send all day, claims and acks without results, mostly does not come here: see `joblane.py`.
"""

from __future__ import annotations

from typing import Any

from topics.core.commands import Ack, Append, Claimer, Complete, Extend, Nack
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import InvalidRequest
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, ExtendedJobs, NackedJobs
from topics.server.answers import success, when_done
from topics.server.auth import check_config, check_name
from topics.server.context import Context
from topics.server.jobanswer import acked_texts, claimed_texts, completed_text, is_parted
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.records import append_of
from topics.server.shapes import TOPIC, answer, body
from topics.wire.queue import Product, decode_ack, decode_claim, decode_extend, decode_nack


def claim(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_claim(request.body)
    context.throttle.admit()
    claimer = Claimer(wanted.node, wanted.max, wanted.lease_ms)
    ticket = host.engine.claim(topic, claimer, wanted.partition, wanted.wait_ms)
    nothing = ClaimedJobs(topic=topic, partition=wanted.partition, node=wanted.node, ready=0)
    is_gone = False

    def make(ticket: Ticket) -> Response:
        jobs = ticket.result()
        assert isinstance(jobs, ClaimedJobs)
        (text,) = claimed_texts(context, host, [nothing if is_gone else jobs], request.received_ns)
        return Response(200, text)

    def gone() -> None:
        nonlocal is_gone
        is_gone = True
        if host.engine.claiming.cancel(topic, wanted.partition, ticket):
            ticket.resolve(nothing)

    request.on_gone = gone
    when_done(context, request, reply, ticket, make)


def ack(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_ack(request.body, context.record_limits)
    command: Ack | Complete
    if wanted.products:
        results = _results(host, request, wanted.products)
        command = Complete(topic, wanted.node, wanted.seqs, results, wanted.lease_ids, wanted.partition)
    else:
        command = Ack(topic, wanted.node, wanted.seqs, wanted.lease_ids, wanted.partition)

    def make(ticket: Ticket) -> Response:
        acked = ticket.result()
        if isinstance(acked, CompletedJobs):
            return Response(200, completed_text(context, host, acked, ticket, request.received_ns))
        assert isinstance(acked, AckedJobs)
        (text,) = acked_texts(context, host, [acked], ticket, request.received_ns)
        return Response(200, text)

    when_done(context, request, reply, host.decide(command), make)


def _results(host: Host, request: Request, products: tuple[Product, ...]) -> list[Append]:
    """The writes of an ack; each place is named once, within the key's prefixes."""
    results: list[Append] = []
    places: set[tuple[str, int]] = set()
    for index, product in enumerate(products):
        field = f"produce[{index}].topic"
        check_name(request.principal, product.topic, field)
        check_config(request.principal, product.batch.config or {})
        result = append_of(host, check_topic(product.topic, field), product.batch, None)
        if (result.topic, result.partition) in places:
            expected = "each partition of a topic once"
            raise InvalidRequest(f'produce names "{result.topic}" twice', field=field, expected=expected)
        places.add((result.topic, result.partition))
        results.append(result)
    return results


def nack(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_nack(request.body)
    command = Nack(
        topic,
        wanted.node,
        wanted.seqs,
        wanted.lease_ids,
        wanted.partition,
        wanted.delay_ms,
        wanted.undelivered,
    )

    def make(ticket: Ticket) -> Response:
        nacked = ticket.result()
        assert isinstance(nacked, NackedJobs)
        fields = {
            "nacked": nacked.nacked,
            "skipped": nacked.skipped,
            "ready": nacked.ready,
            "in_flight": nacked.in_flight,
        }
        return _settled(context, host, request, nacked, fields)

    when_done(context, request, reply, host.decide(command), make)


def extend(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    topic = check_topic(request.params["topic"])
    wanted = decode_extend(request.body)
    command = Extend(topic, wanted.node, wanted.seqs, wanted.lease_ms, wanted.lease_ids, wanted.partition)

    def make(ticket: Ticket) -> Response:
        extended = ticket.result()
        assert isinstance(extended, ExtendedJobs)
        fields = {
            "extended": extended.extended,
            "skipped": extended.skipped,
            "deadlines": extended.deadlines,
        }
        return _settled(context, host, request, extended, fields)

    when_done(context, request, reply, host.decide(command), make)


def _settled(
    context: Context,
    host: Host,
    request: Request,
    settled: NackedJobs | ExtendedJobs,
    fields: dict[str, Any],
) -> Response:
    place: dict[str, Any] = {"topic": settled.topic}
    if is_parted(host, settled.topic):
        place["partition"] = settled.partition
    return success(context, request, place | fields)


ROUTES = (
    Route(
        "POST",
        "/v0/topics/{topic}/claim",
        Scope.READ | Scope.WRITE,
        claim,
        Operation(
            "Claim jobs",
            "Leases up to `max` jobs to a worker: nobody else gets them before `deadline`. Jobs that were handed out "
            "before come first, then the others in the order they were written. Fewer than `max`, or none, is no "
            "error; with `wait_ms` the answer waits for the first one. The queue is never created by this.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("ClaimRequest"),
            responses={"200": answer("Claimed", "The jobs, each with its lease.")},
        ),
        name_param="topic",
        reads="topic",
    ),
    Route(
        "POST",
        "/v0/topics/{topic}/ack",
        Scope.WRITE,
        ack,
        Operation(
            "Complete jobs",
            "Completing a job deletes it. Jobs that are not the worker's (any more) are skipped, so repeating this is "
            "safe. With `produce` the results are written in the same commit, and then it is all or nothing: if one of "
            "the jobs is not the worker's any more, nothing happens and the answer is 409 `lease_lost`.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("AckRequest"),
            responses={"200": answer("Acked", "How many are done.")},
        ),
        name_param="topic",
    ),
    Route(
        "POST",
        "/v0/topics/{topic}/nack",
        Scope.WRITE,
        nack,
        Operation(
            "Give jobs back",
            "Others can claim them at once, or after `delay_ms`. With `delivered: false` this delivery does not count: "
            "for jobs that were claimed and that nobody has looked at.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("NackRequest"),
            responses={"200": answer("Nacked", "How many were given back.")},
        ),
        name_param="topic",
    ),
    Route(
        "POST",
        "/v0/topics/{topic}/extend",
        Scope.WRITE,
        extend,
        Operation(
            "Keep jobs longer",
            "The leases last `lease_ms` from now, whatever they were; their ids stay. This is the heartbeat of a job "
            "that takes long.",
            "queues",
            parameters=(TOPIC,),
            request_body=body("ExtendRequest"),
            responses={"200": answer("Extended", "The new deadlines.")},
        ),
        name_param="topic",
    ),
)
