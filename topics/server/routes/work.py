"""Jobs pushed to a worker: `GET /v0/topics/{topic}/work`.

All that can be wrong is refused before the stream begins, while a client can still read why.
"""

from __future__ import annotations

from topics.core.claim import check_claimer, find_queue
from topics.core.commands import Claimer
from topics.core.names import check_topic
from topics.errors import InvalidRequest
from topics.limits import (
    HEARTBEAT_MS_DEFAULT,
    HEARTBEAT_MS_MAX,
    HEARTBEAT_MS_MIN,
    NODE_BYTES_DEFAULT,
    PARTITIONS_MAX,
    U64_MAX,
)
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.routes.watch import EVENT_STREAM, STREAM_HEADERS, check_accept
from topics.server.shapes import PARTITION, TOPIC, answer, parameter
from topics.server.streaming import StreamResponse
from topics.server.work import JobStream, WorkOrder
from topics.wire.query import Query


def work(context: Context, request: Request, reply: Reply) -> None:
    engine = context.ready().engine
    topic = check_topic(request.params["topic"])
    order = _order(topic, Query(request.query))
    check_accept(request.headers.get("accept", ""))
    check_claimer(Claimer(order.node, order.max, order.lease_ms), engine.machine.bounds.node_bytes_max)
    find_queue(engine.machine, topic, order.partition, engine.now_ms())
    settings = context.settings
    reply(
        StreamResponse(
            200,
            content_type=EVENT_STREAM,
            headers=STREAM_HEADERS,
            outlet=JobStream(engine.claiming, order, context.clock, settings.slow_consumer_timeout_ms),
            buffer_bytes=settings.watch_buffer_bytes,
        )
    )


def _order(topic: str, query: Query) -> WorkOrder:
    node = query.text("node")
    if not node:
        raise InvalidRequest("node is required: the name of the worker", field="node", expected="a name")
    heartbeat_ms = query.whole("heartbeat_ms", HEARTBEAT_MS_DEFAULT, U64_MAX)
    return WorkOrder(
        topic,
        query.whole("partition", 0, PARTITIONS_MAX - 1),
        node,
        query.whole("max", 1, U64_MAX),
        query.whole("lease_ms", None, U64_MAX),
        max(HEARTBEAT_MS_MIN, min(heartbeat_ms, HEARTBEAT_MS_MAX)),
    )


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/work",
        Scope.READ | Scope.WRITE,
        work,
        Operation(
            "Have jobs pushed",
            "Server-sent events without end: each `job` is one that is now leased to this worker, with its seq as "
            "`id`. There are never more than `max` under way: the next one comes when one is completed, given back or "
            "runs out, by the same calls as for claimed jobs. When the connection ends, what was pushed on it and is "
            "not done can be claimed by others at once. An `error` event is the last one; connect again.",
            "queues",
            parameters=(
                TOPIC,
                parameter("node", {"type": "string", "minLength": 1, "maxLength": NODE_BYTES_DEFAULT}, "The worker.")
                | {"required": True},
                parameter(
                    "max",
                    {"type": "integer", "minimum": 1, "default": 1},
                    "Jobs under way at most; clamped to `TOPICS_MAX_CLAIM`.",
                ),
                parameter("lease_ms", {"type": "integer"}, "How long each lease lasts; the queue's own by default."),
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
        query_token=True,
    ),
)
