"""Streams that are open for somebody whose rights may end before they do: a managed key, or a session.

A request is checked when it comes; a stream would go on for as long as its client likes. So each is remembered with
whoever opened it, and is ended when that key is revoked or has expired, or that session is over. A client that comes
back is refused like any other, and told why.
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
        kept = []
        for principal, response in self._open:
            if response.is_closed:
                continue
            if response.stream is None or self._may_still(principal):
                kept.append((principal, response))
            else:
                response.stream.end(close=True)
        self._open = kept

    def _may_still(self, principal: Principal) -> bool:
        try:
            self._authenticator.still(principal)
        except Unauthorized:
            return False
        return True
