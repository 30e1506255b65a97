"""`/v1/heaps/{topic}/priorities`: how the priorities of what waits in a heap are spread.

Partitions are looked at one after the other, and everybody else gets a turn in between.
"""

from __future__ import annotations

import asyncio

from topics.core.heappriorities import Bucket, Waiting, buckets, counted, edges
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.errors import InvalidRequest
from topics.limits import HEAP_PRIORITY_BUCKETS_DEFAULT, HEAP_PRIORITY_BUCKETS_MAX, PARTITIONS_MAX
from topics.model import Mode
from topics.server.answers import later, success
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import PARTITION_NUMBER, TOPIC, answer, parameter
from topics.wire import heapanswers
from topics.wire.query import Query


def priorities(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    query = Query(request.query)
    topic = check_topic(request.params["topic"])
    bucket_count = query.whole("buckets", HEAP_PRIORITY_BUCKETS_DEFAULT, HEAP_PRIORITY_BUCKETS_MAX)
    if not bucket_count:
        expected = f"a whole number from 1 to {HEAP_PRIORITY_BUCKETS_MAX}"
        raise InvalidRequest(f"buckets must be {expected}, not 0", field="buckets", value="0", expected=expected)
    config = host.engine.heaps.info(topic).config
    number = query.whole("partition_id", None, PARTITIONS_MAX - 1)
    numbers = list(range(config.partitions)) if number is None else [number]
    later(context, request, reply, _told(context, host, request, topic, config.mode, numbers, bucket_count))


async def _told(
    context: Context, host: Host, request: Request, topic: str, mode: Mode, numbers: list[int], bucket_count: int
) -> Response:
    parts: list[Waiting] = []
    for number in numbers:
        parts.append(host.engine.heaps.waiting(topic, number))
        await asyncio.sleep(0)
    ranks = edges(parts, bucket_count)
    found: list[Bucket] = []
    if ranks:
        totals = counted(parts[0], ranks)
        for part in parts[1:]:
            totals += counted(part, ranks)
            await asyncio.sleep(0)
        found = buckets(ranks, totals, mode)
    told = {
        "topic": topic,
        "mode": mode.value.upper(),
        "ready_messages": sum(part.ready for part in parts),
        "exact": all(part.is_exact for part in parts),
        "buckets": [heapanswers.bucket(each) for each in found],
        "partitions": [heapanswers.waiting(part) for part in parts],
    }
    return success(context, request, told)


ROUTES = (
    Route(
        "GET",
        "/v1/heaps/{topic}/priorities",
        Scope.READ,
        priorities,
        Operation(
            "Spread of priorities",
            "How many ready messages have which priority: buckets of the same width, the best first, and of each "
            "partition what is next and how old the oldest message is. Costs little, however many messages wait. "
            "`exact` is false where messages that were cancelled or reprioritised a moment ago may still be counted.",
            "heaps",
            parameters=(
                TOPIC,
                parameter(
                    "buckets",
                    {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": HEAP_PRIORITY_BUCKETS_MAX,
                        "default": HEAP_PRIORITY_BUCKETS_DEFAULT,
                    },
                    "Into how many; fewer when there are fewer priorities.",
                ),
                parameter("partition_id", PARTITION_NUMBER, "One partition of it."),
            ),
            responses={"200": answer("HeapPriorities", "The buckets.")},
        ),
        name_param="topic",
        reads="topic",
    ),
)
