"""`/v0/groups`: the groups of all topics, a line each, over all their partitions."""

from __future__ import annotations

import asyncio
from itertools import groupby
from typing import Any

from topics.engine.host import Host
from topics.errors import TopicNotFound
from topics.groupmodel import GroupState
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, U64_MAX
from topics.server.answers import later, success
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import EVERY_TOPIC, Operation, Route
from topics.server.shapes import answer, parameter
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.query import Query

BETWEEN = "\n"
"""Between topic and group in a cursor: neither has it."""


def listed(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    query = Query(request.query)
    size = min(query.whole("page_size", PAGE_SIZE_DEFAULT, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    topic, _, group = decode_cursor(query.text("cursor")).partition(BETWEEN)
    later(context, request, reply, _listed(context, host, request, query.text("prefix"), (topic, group), size))


async def _listed(
    context: Context, host: Host, request: Request, prefix: str, after: tuple[str, str], size: int
) -> Response:
    """A topic at a time, so that many partitions hold nobody up."""
    found: list[dict[str, Any]] = []
    for topic in host.engine.groups.topics():
        if topic < after[0] or not topic.startswith(prefix) or not request.principal.may_touch(topic):
            continue
        try:
            states = host.engine.groups.list(topic)
        except TopicNotFound:
            continue
        own = (_summed(list(parts)) for _, parts in groupby(states, lambda state: state.group))
        found += [each for each in own if (topic, each["group"]) > after]
        if len(found) > size:
            break
        await asyncio.sleep(0)
    fields: dict[str, Any] = {"groups": found[:size]}
    if len(found) > size:
        fields["next_cursor"] = encode_cursor(f"{found[size - 1]['topic']}{BETWEEN}{found[size - 1]['group']}")
    return success(context, request, fields)


def _summed(states: list[GroupState]) -> dict[str, Any]:
    """A group over the partitions it came to."""
    oldest = [state.oldest_unacked_ts for state in states if state.oldest_unacked_ts is not None]
    sums = ("lag", "in_flight", "waiting", "acked_ahead", "lost_count", "dead_lettered")
    return {
        "topic": states[0].topic,
        "group": states[0].group,
        "partitions": len(states),
        **{name: sum(getattr(state, name) for state in states) for name in sums},
        "consumers": len({member.consumer for state in states for member in state.members}),
        "oldest_unacked_ts": min(oldest, default=None),
        "paused": any(state.paused for state in states),
        "protected": any(state.protected for state in states),
        "updated_ms": max(state.updated_ms for state in states),
    }


ROUTES = (
    Route(
        "GET",
        "/v0/groups",
        Scope.READ,
        listed,
        Operation(
            "List groups",
            "The groups of all topics that the key may touch, by topic and name: one line each, over the partitions "
            "that it came to. `next_cursor` is there while there are more.",
            "groups",
            parameters=(
                parameter("prefix", {"type": "string"}, "Only of topics whose names begin with this."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Groups in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "string"}, "`next_cursor` of the page before."),
            ),
            responses={"200": answer("GroupPage", "A page of groups.")},
        ),
        reads=EVERY_TOPIC,
    ),
)
