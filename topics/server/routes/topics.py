"""Topics themselves: create, configure, look at, list and delete them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from topics.core.commands import Configure, Drop
from topics.core.config import as_wire
from topics.core.names import check_topic
from topics.core.registry import Registry, Topic
from topics.engine.ticket import Ticket
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PARTITIONS_MAX, U64_MAX
from topics.model import Configured, Dropped, TopicState, TopicType
from topics.server.answers import success, when_done
from topics.server.auth import check_config
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import EVERY_TOPIC, Operation, Route
from topics.server.shapes import PARTITION, TOPIC, answer, body, flag_parameter, parameter
from topics.wire.archive import archive_fields
from topics.wire.config import decode_config
from topics.wire.cursor import decode_cursor, encode_cursor
from topics.wire.query import Query

LOOKED_MAX: Final = 20_000
"""Topics that are looked at for one page of those that are wanted."""


def replace(context: Context, request: Request, reply: Reply) -> None:
    _configure(context, request, reply, merge=False)


def merge(context: Context, request: Request, reply: Reply) -> None:
    context.ready().engine.machine.topic(check_topic(request.params["topic"]))
    _configure(context, request, reply, merge=True)


def _configure(context: Context, request: Request, reply: Reply, merge: bool) -> None:
    host = context.ready()
    fields = decode_config(request.body)
    check_config(request.principal, fields)
    if_missing = not merge and Query(request.query).flag("if_missing", False)

    def make(ticket: Ticket) -> Response:
        configured = ticket.result()
        assert isinstance(configured, Configured)
        answered = {
            "topic": configured.topic,
            "created": configured.created,
            "config": as_wire(configured.config),
        }
        return success(context, request, answered, 201 if configured.created else 200)

    command = Configure(request.params["topic"], fields, merge, if_missing)
    when_done(context, request, reply, host.decide(command), make)


def drop(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    if_empty = Query(request.query).flag("if_empty", False)

    def make(ticket: Ticket) -> Response:
        dropped = ticket.result()
        assert isinstance(dropped, Dropped)
        removed = [name for name in dropped.routers if request.principal.may_touch(name)]
        fields = {"topic": dropped.topic, "deleted": dropped.deleted, "routers_removed": removed}
        return success(context, request, fields)

    command = Drop(check_topic(request.params["topic"]), if_empty)
    when_done(context, request, reply, host.decide(command), make)


def state(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    found = context.ready().engine.state(
        check_topic(request.params["topic"]),
        query.whole("partition", 0, PARTITIONS_MAX - 1),
        query.flag("touch", True),
    )
    reply(success(context, request, _state(found) | _rate(context, found.topic)))


def _state(found: TopicState) -> dict[str, object]:
    fields: dict[str, object] = {"topic": found.topic, "type": found.type.value}
    fields |= _partition(found)
    for name in ("head_seq", "earliest_seq", "next_seq", "count", "bytes"):
        fields[name] = getattr(found, name)
    fields |= {"epoch": found.epoch, "evict_floor": found.evict_floor}
    fields["config"] = as_wire(found.config)
    for name in ("effective_priority", "last_write_ts", "last_read_ts"):
        fields[name] = getattr(found, name)
    if found.stopped is not None:
        fields["stopped"] = found.stopped
    if found.holding is not None:
        fields["holding"] = msgspec.to_builtins(found.holding)
    if found.archives:
        fields["archives"] = [archive_fields(each, found.partitions) for each in found.archives]
    return fields | _queue(found)


def _summary(found: TopicState) -> dict[str, object]:
    fields: dict[str, object] = {"topic": found.topic, "type": found.type.value}
    fields |= _partition(found)
    for name in ("head_seq", "earliest_seq", "count", "bytes"):
        fields[name] = getattr(found, name)
    fields |= {"durable": found.config.durable, "effective_priority": found.effective_priority}
    return fields | {"last_write_ts": found.last_write_ts} | _queue(found)


def _rate(context: Context, topic: str) -> dict[str, object]:
    """Records that the topic got a second, in the last seconds."""
    observer = context.observer
    return {"records_per_s": 0.0 if observer is None else round(observer.sampler.rates.get(topic, 0.0), 2)}


def _queue(found: TopicState) -> dict[str, object]:
    """The jobs of a queue; nothing for a log."""
    state = found.queue
    if state is None:
        return {}
    fields: dict[str, object] = {name: getattr(state, name) for name in ("ready", "in_flight", "delayed")}
    fields["dead_lettered"] = state.dead_lettered
    if state.dead_letter_error is not None:
        fields["dead_letter_error"] = state.dead_letter_error
    return {"queue": fields}


def _partition(found: TopicState) -> dict[str, int]:
    """Who has one partition need not know that there could be more."""
    return {"partition": found.partition, "partitions": found.partitions} if found.partitions > 1 else {}


def list_topics(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    page_size = min(query.whole("page_size", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX)
    after = decode_cursor(query.text("cursor"))
    touch = query.flag("touch", False)
    full = query.flag("full", False)
    engine = context.ready().engine
    prefixes = _narrowed(request.principal.prefixes, query.text("prefix"))
    found, go_on_from = _page(engine.machine.topics, prefixes, after, page_size, _wanted(query))
    states = [engine.state(topic.name, touch=touch) for topic in found]
    shown = [_summary(each) | (_state(each) if full else {}) | _rate(context, each.topic) for each in states]
    fields: dict[str, object] = {"topics": shown}
    if go_on_from:
        fields["next_cursor"] = encode_cursor(go_on_from)
    reply(success(context, request, fields))


def _wanted(query: Query) -> Callable[[Topic], bool] | None:
    """Whether a topic fits what the query says of type and name; None when it says nothing."""
    kind, part = query.one_of("type", _TYPES), query.text("contains")
    if not kind and not part:
        return None
    return lambda topic: (not kind or topic.config.type.value == kind) and part in topic.name


def _page(
    registry: Registry, prefixes: list[str], after: str, limit: int, wanted: Callable[[Topic], bool] | None
) -> tuple[list[Topic], str]:
    """Topics behind a name that begin with one of the prefixes, in order of their names, and the name to go on from.

    That is empty when these are all. The prefixes are disjoint, so their pages follow each other. Where only some are
    wanted, so many are looked at for one page, which may then be short.
    """
    found: list[Topic] = []
    looked = 0
    for prefix in prefixes:
        more = True
        while more:
            some = registry.page(after, prefix, PAGE_SIZE_MAX if wanted else limit + 1 - len(found))
            more = wanted is not None and len(some) == PAGE_SIZE_MAX
            for topic in some:
                if wanted is None or wanted(topic):
                    if len(found) == limit:
                        return found, found[-1].name
                    found.append(topic)
            looked += len(some)
            after = some[-1].name if some else after
            if more and looked >= LOOKED_MAX:
                return found, after
    return found, ""


def _narrowed(allowed: tuple[str, ...], prefix: str) -> list[str]:
    """What `prefix` and the allowed prefixes leave, in order, none inside another."""
    if not allowed or prefix.startswith(allowed):
        return [prefix]
    kept: list[str] = []
    for each in sorted(allowed):
        if each.startswith(prefix) and not (kept and each.startswith(kept[-1])):
            kept.append(each)
    return kept


_TYPES = [kind.value for kind in TopicType]

ROUTES = (
    Route(
        "GET",
        "/v0/topics",
        Scope.READ,
        list_topics,
        Operation(
            "List topics",
            "Topics in order of their names, a page at a time; only those the key may touch. `next_cursor` is there "
            "while there may be more: with `contains` or `type` a page may be short, or empty, and go on.",
            "topics",
            parameters=(
                parameter("prefix", {"type": "string"}, "Only names that begin with this."),
                parameter("contains", {"type": "string"}, "Only names with this in them."),
                parameter("type", {"type": "string", "enum": _TYPES}, "Only topics of this type."),
                parameter(
                    "page_size",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Topics in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
                parameter("cursor", {"type": "string"}, "`next_cursor` of the page before."),
                flag_parameter("touch", False, "Whether this counts as reading the topics."),
                flag_parameter("full", False, "Whether to show of each topic all that looking at it shows."),
            ),
            responses={"200": answer("TopicList", "A page of topics.")},
        ),
        reads=EVERY_TOPIC,
    ),
    Route(
        "PUT",
        "/v0/topics/{topic}",
        Scope.ADMIN,
        replace,
        Operation(
            "Create or configure a topic",
            "Creates the topic, or makes this its whole config: fields that are not named go back to their defaults. "
            "`type` and `partitions` never change. Repeating it does nothing. With `if_missing` a topic that exists "
            "stays as it is, and `created` says whether it was made.",
            "topics",
            parameters=(TOPIC, flag_parameter("if_missing", False, "Leave a topic that exists as it is.")),
            request_body=body("TopicConfig", required=False),
            responses={
                "200": answer("Configured", "The topic existed; this is its config now."),
                "201": answer("Configured", "The topic was created."),
            },
        ),
        name_param="topic",
    ),
    Route(
        "PATCH",
        "/v0/topics/{topic}",
        Scope.ADMIN,
        merge,
        Operation(
            "Change some of a topic's config",
            "Fields that are not named stay as they are. The topic must exist.",
            "topics",
            parameters=(TOPIC,),
            request_body=body("TopicConfig", required=False),
            responses={"200": answer("Configured", "The config as it is now.")},
        ),
        name_param="topic",
    ),
    Route(
        "GET",
        "/v0/topics/{topic}",
        Scope.READ,
        state,
        Operation(
            "Look at a topic",
            "Where the log begins and ends, how much it holds, and its config.",
            "topics",
            parameters=(TOPIC, PARTITION, flag_parameter("touch", True, "Whether this counts as reading the topic.")),
            responses={"200": answer("TopicState", "The topic as it is now.")},
        ),
        name_param="topic",
        reads="topic",
    ),
    Route(
        "DELETE",
        "/v0/topics/{topic}",
        Scope.DELETE,
        drop,
        Operation(
            "Delete a topic",
            "Removes the topic with everything in it, for good, and the routers from it or to it, which "
            "`routers_removed` names. Deleting one that is not there answers `deleted: false`.",
            "topics",
            parameters=(TOPIC, flag_parameter("if_empty", False, "Refuse unless the topic holds no records.")),
            responses={"200": answer("Dropped", "Whether there was such a topic.")},
        ),
        name_param="topic",
    ),
)
