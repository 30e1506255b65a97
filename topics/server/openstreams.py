"""Streams that are open for somebody whose rights may end before they do: a managed key, or a session.

A request is checked when it comes; a stream would go on for as long as its client likes. So each is remembered with
whoever opened it, and is told to end when that key is revoked or has expired, or that session is over. A client that
comes back is refused like any other.
"""

from __future__ import annotations

from topics.errors import Unauthorized
from topics.server.auth import Authenticator
from topics.server.principal import Principal
from topics.server.streaming import StreamResponse


class OpenStreams:
    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._open: list[tuple[Principal, StreamResponse]] = []

    def __len__(self) -> int:
        return len(self._open)

    def add(self, principal: Principal, response: StreamResponse) -> None:
        if principal.owner:
            self._open.append((principal, response))

    def sweep(self) -> None:
        """End those that nobody may have any more, and forget those that have ended."""
        self._open = [(principal, response) for principal, response in self._open if not response.is_closed]
        for principal, response in self._open:
            try:
                self._authenticator.still(principal)
            except Unauthorized:
                response.outlet.stopping()
