"""Which web pages of other origins may call us: off unless origins are named.

A browser asks before (the preflight, an OPTIONS) and reads an answer only if it names the page's origin. We never allow
credentials: keys travel in `Authorization`, which a page sets itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ANY = "*"
MAX_AGE_S = 600
"""How long a browser need not ask again; what it was told may change with a restart."""

_METHODS = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
_HEADERS = b"Authorization, Content-Type, Content-Encoding, Idempotency-Key, Last-Event-ID, X-Request-Id"
_EXPOSED = b"Retry-After, Topics-Page, X-Request-Id"


@dataclass(frozen=True, slots=True)
class Cors:
    origins: frozenset[str] = frozenset()
    """`https://app.example.com`, exactly as browsers send it; `*` is any."""

    @classmethod
    def of(cls, origins: str | None) -> Cors:
        """Of the text of a setting: origins with commas between them."""
        return cls(frozenset(origin.strip() for origin in (origins or "").split(",") if origin.strip()))

    def headers(self, request_headers: Mapping[str, str]) -> bytes:
        """The lines to add to the answer."""
        if not self.origins:
            return b""
        origin = request_headers.get("origin")
        if origin is None or not self.allows(origin):
            # A cache must not hand this answer to an origin that would have got another.
            return b"Vary: Origin\r\n"
        return b"Access-Control-Allow-Origin: %b\r\nAccess-Control-Expose-Headers: %b\r\nVary: Origin\r\n" % (
            origin.encode("latin-1"),
            _EXPOSED,
        )

    def is_preflight(self, method: str, request_headers: Mapping[str, str]) -> bool:
        return (
            bool(self.origins)
            and method == "OPTIONS"
            and "origin" in request_headers
            and "access-control-request-method" in request_headers
        )

    def preflight_headers(self, request_headers: Mapping[str, str]) -> tuple[tuple[bytes, bytes], ...]:
        """What a preflight is told beside `headers`; to a foreign origin nothing, which is a no."""
        if not self.allows(request_headers["origin"]):
            return ()
        return (
            (b"Access-Control-Allow-Methods", _METHODS),
            (b"Access-Control-Allow-Headers", _HEADERS),
            (b"Access-Control-Max-Age", b"%d" % MAX_AGE_S),
        )

    def allows(self, origin: str) -> bool:
        return ANY in self.origins or origin in self.origins


NO_CORS = Cors()
