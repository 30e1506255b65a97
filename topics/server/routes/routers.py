"""Routers: put, look at, list and delete them.

A key sees and touches a router only when it may touch all three of its names: the router's own, its source and its
destination. So nobody can lead records into or out of what is not theirs, nor learn that it is there.
"""

from __future__ import annotations

from topics.core.commands import DropRouter, PutRouter
from topics.core.names import check_router
from topics.engine.engine import Engine
from topics.engine.ticket import Ticket
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, U64_MAX
from topics.routermodel import RouterConfig, RouterDropped, RouterState
from topics.server.answers import success, when_done
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.routerschemas import ROUTER
from topics.server.shapes import answer, body, flag_parameter, parameter
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.query import Query
from topics.wire.router import decode_router, router_fields, router_summary


def put(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = check_router(request.params["router"])
    config = decode_router(request.body)
    _check_topics(host.engine, request.principal, config)
    _check_existing(host.engine, request.principal, name)

    def make(ticket: Ticket) -> Response:
        state = ticket.result()
        assert isinstance(state, RouterState)
        fields = {"created": state.created} | router_fields(state)
        return success(context, request, fields, 201 if state.created else 200)

    when_done(context, request, reply, host.decide(PutRouter(name, config)), make)


def look(context: Context, request: Request, reply: Reply) -> None:
    engine = context.ready().engine
    state = engine.routing.state(check_router(request.params["router"]))
    _check_topics(engine, request.principal, state.config)
    reply(success(context, request, router_fields(state)))


def drop(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = check_router(request.params["router"])
    _check_existing(host.engine, request.principal, name)

    def make(ticket: Ticket) -> Response:
        dropped = ticket.result()
        assert isinstance(dropped, RouterDropped)
        return success(context, request, {"router": dropped.router, "deleted": dropped.deleted})

    when_done(context, request, reply, host.decide(DropRouter(name)), make)


def list_routers(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    after = decode_cursor(query.text("cursor"))
    shown = router_fields if query.flag("full", False) else router_summary
    found = _page(context.ready().engine, request.principal, query, after, page_size + 1)
    fields: dict[str, object] = {"routers": [shown(state) for state in found[:page_size]]}
    if len(found) > page_size:
        fields["next_cursor"] = encode_cursor(found[page_size - 1].router)
    reply(success(context, request, fields))


def _page(engine: Engine, principal: Principal, query: Query, after: str, limit: int) -> list[RouterState]:
    """Routers behind a name that fit the query, as far as the key may see them."""
    found: list[RouterState] = []
    more = True
    while more and len(found) < limit:
        some = engine.routing.page(
            prefix=query.text("prefix"),
            source=query.text("source") or None,
            dest=query.text("dest") or None,
            after=after,
            limit=PAGE_SIZE_MAX,
        )
        found += [state for state in some if may_see(principal, state.router, state.config)]
        more = len(some) == PAGE_SIZE_MAX
        after = some[-1].router if some else after
    return found[:limit]


# ---- whose a router is


def may_see(principal: Principal, name: str, config: RouterConfig) -> bool:
    """Whether a key may touch all names of a router."""
    return all(map(principal.may_touch, (name, config.source, config.dest)))


def _check_topics(engine: Engine, principal: Principal, config: RouterConfig) -> None:
    for field, name in (("source", config.source), ("dest", config.dest)):
        check_name(principal, name, field)
        # An alias is as good as the name of the topic that is meant, and no better.
        if (topic := engine.machine.topics.get(name)) is not None:
            check_name(principal, topic.name, field)


def _check_existing(engine: Engine, principal: Principal, name: str) -> None:
    """A router that is there is nobody's to change who may not touch its topics."""
    for state in engine.routing.page(prefix=name, limit=1):
        if state.router == name:
            _check_topics(engine, principal, state.config)


ROUTES = (
    Route(
        "GET",
        "/v0/routers",
        Scope.READ,
        list_routers,
        Operation(
            "List routers",
            "Routers in order of their names, a page at a time; only those of which the key may touch the name, the "
            "source and the destination. `next_cursor` is there while there are more.",
            "routers",
            parameters=(
                parameter("prefix", {"type": "string"}, "Only names that begin with this."),
                parameter("source", {"type": "string"}, "Only those that take from this topic."),
                parameter("dest", {"type": "string"}, "Only those that write to this topic."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Routers in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "string"}, "`next_cursor` of the page before."),
                flag_parameter("full", False, "Whether to show of each router all that looking at it shows."),
            ),
            responses={"200": answer("RouterList", "A page of routers.")},
        ),
    ),
    Route(
        "PUT",
        "/v0/routers/{router}",
        Scope.ADMIN,
        put,
        Operation(
            "Create or configure a router",
            "From now on, every record that `source` gets is copied into `dest`, after the write to `source` was "
            "answered and in its order. A router that exists gets this whole config and goes on where it is; repeating "
            "it does nothing. Missing topics are made, `dest` only with `create_dest` (else 404 `topic_not_found`). "
            "409 `router_cycle`, with the topics in `detail.cycle`, when records would come back to where they came "
            "from and `allow_cycle` does not say so; 409 `topic_exists_incompatible`, with `router_dest_fan_in` in "
            "`detail.reason`, when `dest` has another source already; 429 `throttled`, with `max_routers` in "
            "`detail.limit`, when there are too many. The key must be allowed all three names.",
            "routers",
            parameters=(ROUTER,),
            request_body=body("RouterConfig"),
            responses={
                "200": answer("RouterPut", "The router existed; this is its config now."),
                "201": answer("RouterPut", "The router was created."),
            },
        ),
        name_param="router",
    ),
    Route(
        "GET",
        "/v0/routers/{router}",
        Scope.READ,
        look,
        Operation(
            "Look at a router",
            "Its config, how much it has forwarded, how far it is behind, and why it does not go on if it does not. "
            "404 `router_not_found` when there is none.",
            "routers",
            parameters=(ROUTER,),
            responses={"200": answer("RouterState", "The router as it is now.")},
        ),
        name_param="router",
    ),
    Route(
        "DELETE",
        "/v0/routers/{router}",
        Scope.DELETE,
        drop,
        Operation(
            "Delete a router",
            "Stops forwarding at once. What was forwarded stays where it is. Deleting one that is not there answers "
            "`deleted: false`.",
            "routers",
            parameters=(ROUTER,),
            responses={"200": answer("RouterDropped", "Whether it was there.")},
        ),
        name_param="router",
    ),
)
