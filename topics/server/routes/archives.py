"""Archives of a topic: how far each has come, told by whoever makes it."""

from __future__ import annotations

import msgspec

from topics.core.commands import DropArchive
from topics.core.names import check_archive, check_topic
from topics.engine.ticket import Ticket
from topics.model import ArchiveDropped, ArchiveState
from topics.server.answers import success, when_done
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Scope
from topics.server.route import Operation, Route
from topics.server.shapes import NAME, TOPIC, answer, body
from topics.wire.archive import archive_fields, decode_report

_ARCHIVE = TOPIC | {"name": "archive", "description": "The name of the archive.", "schema": NAME}


def report(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    name = check_topic(request.params["topic"])
    command = decode_report(name, check_archive(request.params["archive"]), request.body)

    def make(ticket: Ticket) -> Response:
        state = ticket.result()
        assert isinstance(state, ArchiveState)
        topic = host.engine.machine.topics.get(name)
        partitions = topic.config.partitions if topic is not None else 1
        return success(context, request, {"topic": name} | archive_fields(state, partitions))

    when_done(context, request, reply, host.decide(command), make)


def drop(context: Context, request: Request, reply: Reply) -> None:
    command = DropArchive(check_topic(request.params["topic"]), check_archive(request.params["archive"]))

    def make(ticket: Ticket) -> Response:
        dropped = ticket.result()
        assert isinstance(dropped, ArchiveDropped)
        return success(context, request, msgspec.to_builtins(dropped))

    when_done(context, request, reply, context.ready().decide(command), make)


def list_archives(context: Context, request: Request, reply: Reply) -> None:
    engine = context.ready().engine
    topic = engine.machine.topic(check_topic(request.params["topic"]))
    partitions = topic.config.partitions
    states = [engine.state(topic.name, partition, touch=False) for partition in range(partitions)]
    archives = [archive_fields(archive, partitions) for state in states for archive in state.archives]
    reply(success(context, request, {"topic": topic.name, "archives": archives}))


ROUTES = (
    Route(
        "GET",
        "/v0/topics/{topic}/archives",
        Scope.READ,
        list_archives,
        Operation(
            "List the archives of a topic",
            "How far each archive has come, in each partition.",
            "archives",
            parameters=(TOPIC,),
            responses={"200": answer("ArchiveList", "All archives, by partition and name.")},
        ),
        name_param="topic",
    ),
    Route(
        "PUT",
        "/v0/topics/{topic}/archives/{archive}",
        Scope.WRITE,
        report,
        Operation(
            "Report how far an archive has come",
            "The archive has every record of a partition up to `upto_seq`. With `protect_unarchived` retention takes "
            "only what all archives of the topic have. A report that is repeated or late changes nothing.",
            "archives",
            parameters=(TOPIC, _ARCHIVE),
            request_body=body("ArchiveReport"),
            responses={"200": answer("ArchiveReported", "How far the archive has come, as it is known now.")},
        ),
        name_param="topic",
    ),
    Route(
        "DELETE",
        "/v0/topics/{topic}/archives/{archive}",
        Scope.ADMIN,
        drop,
        Operation(
            "Forget an archive",
            "Retention waits for it no longer; the archive itself is not touched.",
            "archives",
            parameters=(TOPIC, _ARCHIVE),
            responses={"200": answer("ArchiveDropped", "Whether there was such an archive.")},
        ),
        name_param="topic",
    ),
)
