"""Who holds which jobs of a queue, a page at a time."""

from __future__ import annotations

import msgspec

from topics.core.leaseview import lease_page
from topics.core.names import check_topic
from topics.limits import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX, PARTITIONS_MAX, U64_MAX
from topics.server.answers import success
from topics.server.context import Context
from topics.server.jobanswer import is_parted
from topics.server.message import Reply, Request
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import PARTITION, TOPIC, U64, answer, parameter
from topics.wire.query import Query

LEASED, DELAYED = "leased", "delayed"


def list_leases(context: Context, request: Request, reply: Reply) -> None:
    query = Query(request.query)
    state = query.one_of("state", (LEASED, DELAYED), LEASED)
    host = context.ready()
    page = lease_page(
        host.engine.machine,
        check_topic(request.params["topic"]),
        query.whole("partition", 0, PARTITIONS_MAX - 1),
        query.whole("after", 0, U64_MAX),
        min(query.whole("limit", 0, U64_MAX) or PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX),
        host.engine.now_ms(),
        delayed=state == DELAYED,
    )
    fields = msgspec.to_builtins(page)
    if not is_parted(host, page.topic):
        del fields["partition"]
    reply(success(context, request, fields))


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/leases",
        Scope.READ,
        list_leases,
        Operation(
            "List leases",
            "Who holds which jobs of a queue, since when and until when, in order of their seqs; with `state=delayed` "
            "the jobs whose time has not come. `next_after` is there while there may be more: pass it back as `after`. "
            "A page of very many leases may be short, or empty, and go on. To take a job from whoever has it, give it "
            "back by its `node` and `lease_id`. `oldest_ready` is the job that has waited the longest of those that "
            "can be claimed.",
            "queues",
            parameters=(
                TOPIC,
                PARTITION,
                parameter("state", {"type": "string", "enum": [LEASED, DELAYED], "default": LEASED}, "Which jobs."),
                parameter("after", U64 | {"default": 0}, "Only behind this seq."),
                parameter(
                    "limit",
                    {"type": "integer", "minimum": 0, "default": PAGE_SIZE_DEFAULT},
                    f"Leases in a page; more than {PAGE_SIZE_MAX} is {PAGE_SIZE_MAX}.",
                ),
            ),
            responses={"200": answer("LeasePage", "A page of leases.")},
        ),
        name_param="topic",
        reads="topic",
    ),
)
