"""The opening of a WebSocket: the handshake, and who may.

A key is needed, but no scope: each command needs its own. A browser cannot send a key here, and no token is taken from
the address, so a web page gets in only where there are no keys at all; there, as with every other request of a page,
its origin must be the server's own or one of `TOPICS_CORS_ORIGINS`.
"""

from __future__ import annotations

from websockets.datastructures import Headers
from websockets.exceptions import InvalidUpgrade
from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request as Handshake
from websockets.server import ServerProtocol

from topics.errors import InvalidRequest, UpgradeRequired
from topics.server.context import Context
from topics.server.message import Reply, Request
from topics.server.principal import NO_SCOPE
from topics.server.route import Operation, Route
from topics.server.shapes import answer as json_answer
from topics.server.streaming import Upgrade
from topics.server.ws import WebSocket

VERSION = "13"
SWITCHING_PROTOCOLS = 101

_Lines = tuple[tuple[bytes, bytes], ...]


def open_socket(context: Context, request: Request, reply: Reply) -> None:
    context.ready()
    headers, extensions = _shake_hands(request, context.settings.ws_compression)
    socket = WebSocket(context, request.principal, request.request_id, extensions)
    buffer_bytes = context.settings.watch_buffer_bytes
    reply(Upgrade(SWITCHING_PROTOCOLS, headers=headers, outlet=socket, buffer_bytes=buffer_bytes))


def _shake_hands(request: Request, compression: bool) -> tuple[_Lines, list[Extension]]:
    """The headers of the answer, and what was agreed on."""
    if request.headers.get("sec-websocket-version", VERSION) != VERSION:
        raise UpgradeRequired(f"only version {VERSION} of the WebSocket protocol is spoken", expected=VERSION)
    factories = [ServerPerMessageDeflateFactory(compress_settings={"level": 1})] if compression else []
    negotiation = ServerProtocol(extensions=factories)
    answer = negotiation.accept(Handshake(request.path, Headers(request.headers), request.method))
    if answer.status_code != SWITCHING_PROTOCOLS:
        error = negotiation.handshake_exc
        expected = "a WebSocket handshake"
        if isinstance(error, InvalidUpgrade):
            raise UpgradeRequired("here is a WebSocket: connect with a WebSocket client", expected=expected)
        raise InvalidRequest(f"this is no WebSocket handshake: {error}", expected=expected)
    lines = ((name.encode(), value.encode()) for name, value in answer.headers.raw_items() if name != "Date")
    return tuple(lines), list(negotiation.extensions)


ROUTES = (
    Route(
        "GET",
        "/v0/ws",
        NO_SCOPE,
        open_socket,
        Operation(
            "Open a WebSocket",
            "Subscribe and publish over one connection. Messages are JSON objects with an `op`; clients send "
            "`subscribe`, `unsubscribe`, `publish` and `ping`, and get `subscribed`, `unsubscribed`, `ack`, `pong`, "
            "`record`, `caught_up`, `tombstone`, `topic_deleted` and `error`. Any key may connect; each command needs "
            "its scope: `read` to subscribe, `write` to publish, and `admin` to publish with a `config`.",
            "watch",
            responses={
                "101": {"description": "The connection is a WebSocket from here on."},
                "426": json_answer("Error", "The request is no WebSocket handshake."),
            },
        ),
        keyed=True,
        streams=True,
    ),
)
