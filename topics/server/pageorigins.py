"""Which web pages may change something: the defence against requests that a page of another site makes (CSRF).

A browser sends some requests of any page without asking the server first: a POST without a body, a form, a WebSocket
handshake, an event stream. It says where they come from, in `Origin` and `Sec-Fetch-Site`. A request that changes
something is accepted from pages of this server, from origins that `TOPICS_CORS_ORIGINS` lists, and from programs,
which send neither header. Reads need no check: a page of another origin cannot see their answers.

A key in `Authorization` is proof enough: a page must know the key, and the browser asks before it sends that header.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from topics.core.names import shorten
from topics.errors import Forbidden
from topics.server.cors import ANY, Cors

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
"""What `Sec-Fetch-Site` says of pages of other origins; `none` is the user, at the address bar."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PageOrigins:
    cors: Cors
    keys: bool
    """Whether the server asks for keys."""

    def check_method(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise `Forbidden` when a page of another origin asks with a method that changes something."""
        if method not in SAFE_METHODS:
            self.check(headers)

    def check(self, headers: Mapping[str, str]) -> None:
        """The same of a request that changes something, whatever its method is."""
        if self.keys and "authorization" in headers:
            return
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "").strip().lower()
        if ANY in self.cors.origins or (origin is not None and self.cors.allows(origin)):
            return
        is_own = origin is None or is_same_origin(origin, headers.get("host", ""))
        if not is_own or site in FOREIGN_SITES:
            page = "another site" if origin is None else shorten(origin)
            raise Forbidden(
                f"pages of {page} may not change anything here; list their origin in TOPICS_CORS_ORIGINS",
                field="sec-fetch-site" if is_own else "origin",
                given=site if is_own else page,
            )


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an `Origin` is the server that the request's `Host` names. The scheme may be another one: a proxy may
    speak TLS for the server."""
    try:
        page = urlsplit(origin)
        default = _DEFAULT_PORTS[page.scheme]
        asked = urlsplit(f"//{host}")
        places = [(part.hostname or "", part.port or default) for part in (page, asked)]
    except (KeyError, ValueError):
        return False
    (page_name, page_port), (name, port) = places
    return bool(name) and page_name.removesuffix(".") == name.removesuffix(".") and page_port == port
