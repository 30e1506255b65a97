"""A request and a response: all that passes between the wire and the handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from topics.errors import TopicsError
from topics.server.principal import EVERYBODY, Principal

JSON = b"application/json"


@dataclass(slots=True)
class Request:
    """One parsed request. Header names are lower case; of a repeated header the first counts."""

    method: str
    path: str
    """Percent-decoded, without the query. An escaped slash is part of a name, so it stays `%2F`."""
    query: str
    """As it came, still encoded."""
    headers: Mapping[str, str] = field(repr=False)
    """Not in the repr, nor the body: a key or a payload must not end up in a log."""
    body: bytes = field(repr=False)
    """Whole, and decompressed."""
    received_ns: int
    request_id: str = ""
    peer: str = ""
    """The address that the connection comes from."""
    principal: Principal = EVERYBODY
    decided: bool = False
    """Set by the handler of an append once the engine has given it its place in the log: an append behind it on its
    connection may then begin, see `intake/order.py`."""
    params: Mapping[str, str] = field(default_factory=dict)
    """What the route's path captured: `{"topic": …}`."""
    on_gone: Callable[[], None] | None = field(default=None, repr=False)
    """Set by a handler that waits: called when the client hangs up, or ends its side, before it is answered."""


@dataclass(slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = ()
    encoded: bool = False
    """Whether the body goes out as it is: whoever made it has compressed it, or has seen that it is not to be."""


Reply = Callable[[Response], None]
"""Called exactly once for each request, at any time, on the loop. The protocol keeps pipelined requests in order."""

Dispatch = Callable[[Request, Reply], None]
"""What the protocol hands each whole request to. It never raises and never blocks; an answer that is ready is given
before it returns."""

Refuse = Callable[[Request, TopicsError], Response]
"""The answer to what never got as far as the dispatch. Of such a request only what could be read is known: `method` and
`path` may be empty."""
