"""What became of each seq of a topic, as buckets that can be drawn."""

from __future__ import annotations

import dataclasses

from topics.core.names import check_topic
from topics.core.seqmap import BUCKETS_DEFAULT, BUCKETS_MAX, seq_map
from topics.errors import InvalidRequest
from topics.limits import PARTITIONS_MAX, U64_MAX
from topics.server.answers import success
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import PARTITION, TOPIC, answer, parameter
from topics.wire.query import Query


def show_map(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    buckets = query.whole("buckets", BUCKETS_DEFAULT, U64_MAX)
    if not 1 <= buckets <= BUCKETS_MAX:
        expected = f"a whole number from 1 to {BUCKETS_MAX}"
        raise InvalidRequest(f"buckets must be {expected}, not {buckets}", field="buckets", expected=expected)
    engine = context.ready().engine
    state = engine.state(
        check_topic(request.params["topic"]), query.whole("partition", 0, PARTITIONS_MAX - 1), touch=False
    )
    log = engine.machine.log(engine.machine.topic(state.topic), state.partition)
    fields: dict[str, object] = {"topic": state.topic}
    if state.partitions > 1:
        fields |= {"partition": state.partition}
    fields |= {"earliest_seq": state.earliest_seq, "head_seq": log.head_seq, "evict_floor": state.evict_floor}
    fields["buckets"] = [dataclasses.asdict(bucket) for bucket in seq_map(log, buckets)]
    reply(success(context, request, fields))


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/map",
        Scope.READ,
        show_map,
        Operation(
            "Map of a topic's seqs",
            "What became of each seq that a partition ever gave out, in buckets of equal width: how many records are "
            "`live`, `deleted` (by somebody, or as jobs that are done), `evicted` (below the floor of a cap or a TTL, "
            "with what was deleted there before) or `lost` (in a crash or a repair), which together are all of them, "
            "and how many of them an archive has (`archived`). No record is read for it.",
            "topics",
            parameters=(
                TOPIC,
                PARTITION,
                parameter(
                    "buckets",
                    {"type": "integer", "minimum": 1, "maximum": BUCKETS_MAX, "default": BUCKETS_DEFAULT},
                    "How many at most; a topic with fewer seqs has one bucket a seq.",
                ),
            ),
            responses={"200": answer("SeqMap", "The buckets, in order.")},
        ),
        name_param="topic",
        reads="topic",
    ),
)
