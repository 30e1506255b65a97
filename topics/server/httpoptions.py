"""The bounds of an HTTP connection: how much it may send, how long it may take, how much may wait."""

from __future__ import annotations

from dataclasses import dataclass

from topics.limits import BODY_BYTES_DEFAULT, KIB
from topics.server.cors import NO_CORS, Cors
from topics.server.hostnames import AllowedHosts
from topics.server.pageorigins import PageOrigins


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    header_bytes_max: int = 64 * KIB
    """Of a head, and of the trailers and framing between two pieces of a body."""
    body_bytes_max: int = BODY_BYTES_DEFAULT
    """Of a body as sent, and of the same body decompressed."""
    idle_timeout_s: float = 120.0
    """Between two requests."""
    header_timeout_s: float = 10.0
    """From a head's first byte to its last."""
    body_timeout_s: float = 20.0
    body_bytes_per_s_min: int = 1 * KIB
    """A body may take `body_timeout_s`, and a second more for each so many bytes it brought."""
    write_timeout_s: float = 60.0
    """How long a client may read nothing once `write_buffer_high_bytes` of its answers wait."""
    linger_timeout_s: float = 5.0
    """How long a connection that we end may stay open, for the client to read its last answer."""
    pipeline_max: int = 64
    """Requests of one connection that are being answered at once."""
    write_buffer_high_bytes: int = 256 * KIB
    """Answers waiting for the client to read them, before no further request is taken from it."""
    gzip_bytes_min: int = 1 * KIB
    """Smaller answers are not worth compressing."""
    cors: Cors = NO_CORS
    hosts: AllowedHosts | None = None
    """Host names that requests may give; None is any."""
    pages: PageOrigins | None = None
    """Web pages that may change something; None is any."""
