"""Deleting records, by seq and by tag, and erasing their bytes; or counting what would go.

Deleting records is work with data, which the audit log does not note.
"""

from __future__ import annotations

from topics.core.commands import Delete
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.model import Deleted
from topics.server.answers import later, success, when_done
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import TOPIC, answer, body
from topics.wire.delete import decode_delete

PATH = "/v0/topics/{topic}/delete"


def delete(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    wanted = decode_delete(request.body)
    topic = check_topic(request.params["topic"])
    command = Delete(topic, wanted.partition, wanted.before_seq, wanted.match, wanted.dry_run)

    def make(ticket: Ticket) -> Response:
        deleted = ticket.result()
        assert isinstance(deleted, Deleted)
        return _deleted(context, host, request, deleted)

    if wanted.erase and not wanted.dry_run:
        later(context, request, reply, _erase(context, host, request, command))
    else:
        when_done(context, request, reply, host.decide(command), make)


async def _erase(context: Context, host: Host, request: Request, command: Delete) -> Response:
    deleted = await host.erase(command)
    assert isinstance(deleted, Deleted)
    return _deleted(context, host, request, deleted)


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
