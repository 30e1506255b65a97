"""Deleting records, by seq and by tag, and erasing their bytes; or counting what would go.

What only counts destroys nothing, so it is not noted in the audit log; everything else is, before it is done.
"""

from __future__ import annotations

from topics.core.commands import Delete
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.model import Deleted
from topics.server.answers import later, success, when_done
from topics.server.auditing import noted
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import TOPIC, answer, body
from topics.wire.delete import decode_delete

PATH = "/v0/topics/{topic}/delete"
ACTION = f"POST {PATH}"
"""What the audit log calls it."""


def delete(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = decode_delete(request.body)
    topic = check_topic(request.params["topic"])
    command = Delete(topic, wanted.partition, wanted.before_seq, wanted.match, wanted.dry_run)
    if wanted.dry_run:

        def make(ticket: Ticket) -> Response:
            counted = ticket.result()
            assert isinstance(counted, Deleted)
            return _deleted(context, host, request, counted)

        when_done(context, request, reply, host.decide(command), make)
        return

    async def work() -> Response:
        deleted = await (host.erase(command) if wanted.erase else host.submit(command))
        assert isinstance(deleted, Deleted)
        return _deleted(context, host, request, deleted)

    later(context, request, reply, noted(context, request, ACTION, topic, work))


def _deleted(context: Context, host: Host, request: Request, deleted: Deleted) -> Response:
    fields: dict[str, object] = {"topic": deleted.topic}
    topic = host.engine.machine.topics.get(deleted.topic)
    if topic is not None and topic.config.partitions > 1:
        fields["partition"] = deleted.partition
    for name in ("deleted", "earliest_seq", "head_seq", "count", "bytes"):
        fields[name] = getattr(deleted, name)
    for name in ("erased", "dry_run"):
        if getattr(deleted, name):
            fields[name] = True
    return success(context, request, fields)


ROUTES = (
    Route(
        "POST",
        PATH,
        Scope.DELETE,
        delete,
        Operation(
            "Delete records",
            "Removes records by seq, by tag, or by both at once, for every reader and at once. Only what is there now "
            "goes; later records with the same tag stay. With `erase` the answer waits until the bytes are gone from "
            "disk. With `dry_run` nothing goes: `deleted` is how many would.",
            "records",
            parameters=(TOPIC,),
            request_body=body("DeleteRequest"),
            responses={"200": answer("Deleted", "How many records went, and what is left.")},
        ),
        name_param="topic",
        noted=False,
    ),
)
