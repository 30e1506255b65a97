"""`topics.connect`: a client of a server elsewhere.

    async with topics.connect("http://127.0.0.1:4000", key="…") as client:
        await client.topic("orders").write({"sku": "A1"})

What is not given comes from the environment: `TOPICS_URL` and `TOPICS_API_KEY`.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from os import environ
from typing import Final

from topics.client.address import parse_address
from topics.client.caller import Caller, CallOptions
from topics.client.client import Client
from topics.client.grpcdoor import heaps_over_grpc
from topics.client.outage import OnOutage
from topics.client.remote import Remote
from topics.errors import InvalidRequest

URL_VARIABLE: Final = "TOPICS_URL"
KEY_VARIABLE: Final = "TOPICS_API_KEY"
URL_DEFAULT: Final = "http://127.0.0.1:4000"


def connect(
    url: str | None = None,
    key: str | None = None,
    *,
    timeout_ms: int = 60_000,
    connect_timeout_ms: int = 5_000,
    read_timeout_ms: int = 30_000,
    attempts_max: int = 5,
    connections_max: int = 16,
    compress: bool = False,
    ssl_context: ssl.SSLContext | None = None,
    grpc: str | Sequence[str] = (),
    grpc_ca: bytes | None = None,
    on_outage: OnOutage = lambda error: None,
) -> Client:
    """A client of the server at `url`, to be used in `async with`, or in `with` when it is `topics.sync.connect`.

    Without `url` it is TOPICS_URL, or else http://127.0.0.1:4000; without `key`, TOPICS_API_KEY, or else none. Nothing
    is sent before the first call.

    A call may take `timeout_ms` (60 s) with all its tries, making a connection `connect_timeout_ms` (5 s), the next
    byte of an answer `read_timeout_ms` (30 s). It is tried up to `attempts_max` (5) times where that is safe: what the
    server refused for now, and what is the same done twice. At most `connections_max` (16) are open for calls; those
    who wait for news have connections of their own. With `compress`, bodies are gzip both ways, for slow links.
    `ssl_context` is for an https server whose certificate the system does not know. Who reads without end
    (`follow`, `group.consume`, `heap.pop`) waits for a server that went away; `on_outage` is then called with the
    error, and with None when it is back. One that was never there is an error, after as many tries as any call has.

    With `grpc`, one or more addresses such as `127.0.0.1:4001`, heaps are reached over gRPC, at whichever of them
    answers: messages then come on a stream and go back at once when the program dies. `grpc_ca` are certificates (PEM)
    that the servers' are signed by, and make it TLS; so does `grpcs://` before an address, with those of the system. It
    takes `pip install 'topics[grpc]'`.
    """
    address = parse_address(url or environ.get(URL_VARIABLE) or URL_DEFAULT)
    options = CallOptions(
        timeout_ms=timeout_ms,
        connect_timeout_ms=connect_timeout_ms,
        read_timeout_ms=read_timeout_ms,
        attempts_max=attempts_max,
        connections_max=connections_max,
        compress=compress,
    )
    if ssl_context is not None and not address.tls:
        raise InvalidRequest(f"ssl_context is for https, and {address} is http", field="ssl_context", expected="https")
    tls = (ssl_context or ssl.create_default_context()) if address.tls else None
    key = key or environ.get(KEY_VARIABLE)
    heaps = heaps_over_grpc(grpc, key, options, grpc_ca, on_outage) if grpc else None
    return Client(Remote(Caller(address, key, options, tls), on_outage, heaps))
