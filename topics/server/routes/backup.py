"""`GET /v0/backup`: everything, as it is at this moment, as one archive."""

from __future__ import annotations

from datetime import UTC, datetime

from topics.engine.backupstream import BackupStream
from topics.engine.host import Host
from topics.errors import Forbidden, Unavailable
from topics.server.answers import later
from topics.server.backupfeed import BackupFeed
from topics.server.context import Context
from topics.server.message import Reply, Request, Response
from topics.server.principal import Principal, Scope
from topics.server.route import Operation, Route
from topics.server.shapes import parameter
from topics.server.streaming import StreamResponse
from topics.storage.archive import GZIP_LEVEL_MAX
from topics.wire.query import Query


def backup(context: Context, request: Request, reply: Reply) -> None:
    host = context.ready()
    _check_unrestricted(request.principal)
    gzip_level = Query(request.query).whole("gzip", 0, GZIP_LEVEL_MAX)
    later(context, request, reply, _open(context, host, gzip_level))


def _check_unrestricted(principal: Principal) -> None:
    """An archive holds every topic, and cannot be made of some."""
    if principal.prefixes or principal.patterns:
        raise Forbidden(
            "a backup holds all topics, and this key may only touch some; use an admin key without prefixes",
            needed="admin",
            prefixes=list(principal.prefixes),
        )


async def _open(context: Context, host: Host, gzip_level: int) -> Response:
    stream = BackupStream(host, gzip_level)
    try:
        await stream.__aenter__()
    except OSError as error:
        # A checkpoint comes first, and that needs room.
        raise Unavailable(f"the backup cannot begin: {error}; see to the disk and try again") from error
    stamp = datetime.fromtimestamp(host.engine.now_ms() / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
    name = f"topics-{stamp}.tar" + (".gz" if gzip_level else "")
    return StreamResponse(
        200,
        content_type=b"application/gzip" if gzip_level else b"application/x-tar",
        headers=(
            (b"Content-Disposition", f'attachment; filename="{name}"'.encode()),
            (b"X-Backup-Bytes", b"%d" % stream.total_bytes),
            (b"Cache-Control", b"no-store"),
        ),
        outlet=BackupFeed(stream, context.clock),
    )


ROUTES = (
    Route(
        "GET",
        "/v0/backup",
        Scope.ADMIN,
        backup,
        Operation(
            "Back everything up",
            "One tar archive of all topics as they are at the moment of the call: all that was answered before it is "
            "in it, and nothing that was decided after it. Writers, checkpoints and retention go on. The archive ends "
            "with the SHA-256 of everything in it; `topics restore` checks them and makes a data directory of it. One "
            "backup runs at a time (429), and an erasure interrupts it: the download then breaks off. Needs a key "
            "without prefixes, as it holds every topic.",
            "operations",
            parameters=(
                parameter(
                    "gzip",
                    {"type": "integer", "minimum": 0, "maximum": GZIP_LEVEL_MAX, "default": 0},
                    "Compress the archive: 1 is fast, 9 is small, 0 does not.",
                ),
            ),
            responses={
                "200": {
                    "description": "The archive. `X-Backup-Bytes` says about how large it is without compression.",
                    "content": {
                        "application/x-tar": {"schema": {"type": "string", "format": "binary"}},
                        "application/gzip": {"schema": {"type": "string", "format": "binary"}},
                    },
                }
            },
        ),
        noted=True,
    ),
)
