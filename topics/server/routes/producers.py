"""Producers that are remembered for good: which there are, and forgetting one."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from topics.core.commands import ForgetProducer
from topics.core.forget import page_of
from topics.core.names import check_topic
from topics.engine.ticket import Ticket
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PRODUCER_ID_BYTES_MAX, U64_MAX
from topics.producermodel import ForgottenProducer
from topics.server.answers import success, when_done
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.shapes import NAME, TEXT, answer, parameter
from topics.server.tenants import Tenant
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.query import Query

_ID = TEXT | {"minLength": 1, "maxLength": PRODUCER_ID_BYTES_MAX}
_PRODUCER = parameter("producer_id", _ID, "The producer that is forgotten.") | {"required": True}
_TOPIC = parameter("topic", NAME, "The topic that the producer writes records into; without it, producers of batches.")


def list_producers(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    topic, tenant = _place_of(request.principal, query)
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    machine = context.ready().engine.machine
    after = decode_cursor(query.text("cursor"))
    page = page_of(machine, topic, query.text("prefix"), after, page_size, tenant.suffix)
    producers = [replace(each, producer_id=tenant.given(each.producer_id)) for each in page.producers]
    fields: dict[str, object] = {"producers": msgspec.to_builtins(producers)}
    if page.next_after:
        fields["next_cursor"] = encode_cursor(page.next_after)
    reply(success(context, request, fields))


def forget(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    topic, tenant = _place_of(request.principal, query)
    producer_id = query.text("producer_id")

    def make(ticket: Ticket) -> Response:
        with tenant.naming([producer_id]):
            forgotten = ticket.result()
        assert isinstance(forgotten, ForgottenProducer)
        return success(context, request, msgspec.to_builtins(replace(forgotten, producer_id=producer_id)))

    with tenant.naming([producer_id]):
        ticket = context.ready().decide(ForgetProducer(tenant.stored(producer_id), topic))
    when_done(context, request, reply, ticket, make)


def _place_of(principal: Principal, query: Query) -> tuple[str | None, Tenant]:
    """The topic that is named, within the key's prefixes; or the tenant whose producers of batches are meant."""
    name = query.given(("topic",)).get("topic")
    if name is None:
        return None, Tenant.of(principal)
    check_name(principal, check_topic(name))
    return name, Tenant()


ROUTES = (
    Route(
        "GET",
        "/v0/producers",
        Scope.ADMIN,
        list_producers,
        Operation(
            "List producers",
            "The producers that the server remembers, in order of their ids. It remembers the newest epoch of each for "
            "good, so that a batch or write is not taken twice however late it is repeated; ids that begin with `~` "
            "are forgotten after a day.",
            "producers",
            parameters=(
                _TOPIC,
                parameter("prefix", TEXT, "Only ids that begin with this."),
                parameter("page_size", {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT}, "Ids a page."),
                parameter("cursor", TEXT, "Where the page begins, as the last page said."),
            ),
            responses={"200": answer("ProducerList", "Producers, by id.")},
        ),
    ),
    Route(
        "DELETE",
        "/v0/producers",
        Scope.ADMIN,
        forget,
        Operation(
            "Forget a producer",
            "Makes room for others. Nothing tells its repeated writes from new ones afterwards and no epoch of it is "
            "refused, so forget only producers that are never used again.",
            "producers",
            parameters=(_PRODUCER, _TOPIC),
            responses={"200": answer("ProducerForgotten", "Whether it was remembered.")},
        ),
    ),
)
