"""Records of a group pushed to a consumer: `GET /v0/topics/{topic}/groups/{group}/watch`.

All that can be wrong is refused before the stream begins, while a client can still read why.
"""

from __future__ import annotations

from topics.core.groupcommands import Consume
from topics.core.groups import check_consumer, find_log
from topics.core.names import check_group, check_topic
from topics.errors import InvalidRequest
from topics.groupmodel import Start
from topics.limits import (
    GROUP_CLAIMS_PUSHED_MAX,
    GROUP_LIMIT_DEFAULT,
    HEARTBEAT_MS_DEFAULT,
    HEARTBEAT_MS_MAX,
    HEARTBEAT_MS_MIN,
    NODE_BYTES_MAX,
    PARTITIONS_MAX,
    U64_MAX,
)
from topics.server.context import Context
from topics.server.grouppush import GroupPush
from topics.server.groupschemas import GROUP
from topics.server.message import Reply, Request
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.watch import EVENT_STREAM, STREAM_HEADERS, check_accept
from topics.server.shapes import PARTITION, TOPIC, answer, parameter
from topics.server.streaming import StreamResponse
from topics.wire.group import parse_start
from topics.wire.query import Query


def watch(context: Context, request: Request, reply: Reply) -> None:
    engine = context.ready().engine
    query = Query(request.query)
    command = _command(check_topic(request.params["topic"]), check_group(request.params["group"]), query)
    heartbeat_ms = query.whole("heartbeat_ms", HEARTBEAT_MS_DEFAULT, U64_MAX)
    claims_max = query.whole("max_claims", 1, GROUP_CLAIMS_PUSHED_MAX) or 1
    check_accept(request.headers.get("accept", ""))
    check_consumer(command.consumer)
    find_log(engine.machine, command.topic, command.partition, engine.now_ms())
    settings = context.settings
    reply(
        StreamResponse(
            200,
            content_type=EVENT_STREAM,
            headers=STREAM_HEADERS,
            outlet=GroupPush(
                engine.groups,
                command,
                claims_max,
                max(HEARTBEAT_MS_MIN, min(heartbeat_ms, HEARTBEAT_MS_MAX)),
                context.clock,
                settings.slow_consumer_timeout_ms,
            ),
            buffer_bytes=settings.watch_buffer_bytes,
        )
    )


def _command(topic: str, group: str, query: Query) -> Consume:
    limit = query.whole("limit", GROUP_LIMIT_DEFAULT, U64_MAX)
    if limit < 1:
        raise InvalidRequest("limit must be 1 or more, not 0", field="limit", expected="a whole number from 1")
    return Consume(
        topic,
        group,
        query.whole("partition", 0, PARTITIONS_MAX - 1),
        _start(query),
        limit,
        query.text("consumer"),
        visibility_ms=query.whole("visibility_ms", None, U64_MAX),
        tags=query.flag("include_tags", False),
    )


def _start(query: Query) -> Start | None:
    text = query.given(["from"]).get("from")
    if text is None:
        return None
    return parse_start("from", query.whole("from", 0, U64_MAX) if text.isdecimal() else text)


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/groups/{group}/watch",
        Scope.READ | Scope.WRITE,
        watch,
        Operation(
            "Have records of a group pushed",
            "Server-sent events without end: each `batch` is one claim, as a consume would give it, with its last seq "
            "as `id`. There are never more than `max_claims` under way: the next one comes when one is acked, given "
            "back or runs out, by the same calls as for consumed records. When the connection ends, others get what "
            "was pushed on it and is not acked at once. An `error` event is the last one; connect again.",
            "groups",
            parameters=(
                TOPIC,
                GROUP,
                parameter("consumer", {"type": "string", "maxLength": NODE_BYTES_MAX}, "A name for the consumer."),
                parameter(
                    "from", {"type": "string", "default": "earliest"}, "Where the group begins, at its first contact."
                ),
                parameter(
                    "limit",
                    {"type": "integer", "minimum": 1, "default": GROUP_LIMIT_DEFAULT},
                    "Records in one batch; clamped to `TOPICS_MAX_CLAIM`.",
                ),
                parameter(
                    "max_claims",
                    {"type": "integer", "minimum": 1, "maximum": GROUP_CLAIMS_PUSHED_MAX, "default": 1},
                    "Batches under way at most.",
                ),
                parameter(
                    "visibility_ms", {"type": "integer"}, "How long each claim lasts; the topic's own by default."
                ),
                parameter("include_tags", {"type": "boolean", "default": False}, "Whether records come with tags."),
                parameter(
                    "heartbeat_ms",
                    {"type": "integer", "default": HEARTBEAT_MS_DEFAULT},
                    "How often there is a comment when there is nothing else; clamped to 1 s … 60 s.",
                ),
                PARTITION,
            ),
            responses={
                "200": {
                    "description": "The stream.",
                    "content": {"text/event-stream": {"schema": {"type": "string"}}},
                },
                "406": answer("Error", "`Accept` does not allow `text/event-stream`."),
            },
        ),
        name_param="topic",
        streams=True,
    ),
)
