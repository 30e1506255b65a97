"""An HTTP connection whose plain writes go on a track.

A plain write (`track.py`) does not become an exchange. While nothing else is pending, `_plain` stands in `_pending` for
it until it is answered, so that whatever the client sends meanwhile is answered behind it. When it has to be answered
like any other request after all, an exchange takes its place.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from topics.server.connections import NEVER_NS
from topics.server.exchange import Exchange
from topics.server.message import Reply, Request
from topics.server.requesthead import RequestHead
from topics.server.requestparser import Part
from topics.server.streamed import StreamedProtocol
from topics.server.track import PLAIN_END, Track, TrackOf

# Looking a member up in its enum takes several times as long as comparing it.
NOTHING: Final = Part.NOTHING


class TrackedProtocol(StreamedProtocol):
    """A `Writer`. Takes what its base takes, behind the way to find a track."""

    def __init__(self, track_of: TrackOf, *others: Any) -> None:
        super().__init__(*others)
        self._track_of = track_of
        self._track: Track | None = None
        self._plain_number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._id_bytes = self._id.encode()
        self._plain = Exchange(self, None, None)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # They would keep the connection alive, and its key.
        del self._plain
        self._track = None

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        self._track = self._track_of(head_bytes, head) or self._track

    def data_received(self, data: bytes) -> None:
        track = self._track
        if (
            track is not None
            and data.startswith(track.starts[len(data)])
            and data.endswith(PLAIN_END)
            and not (self._pending or self._deaf or self._blocked)
            and self._parser.part is NOTHING
        ):
            self._pending.append(self._plain)
            self._plain_number = self._request_count = self._request_count + 1
            self.deadline_ns = NEVER_NS
            track.take(self, data)
        else:
            super().data_received(data)

    def answer_plain(self, template: bytes, seq: bytes) -> bool:
        pending = self._pending
        if not pending:
            return True  # The connection is lost.
        if (
            len(pending) > 1
            or self._out
            or self._blocked
            or self._deaf
            or self._connections.draining
            or self._parser.part is not NOTHING
        ):
            return False
        pending.clear()
        self.deadline_ns = self._connections.idle_deadline_ns
        self._transport.write(template % (self._id_bytes, self._plain_number, seq, seq, seq, seq))
        return True

    def leave_track(self, head: RequestHead, body: bytes, received_ns: int) -> tuple[Request, Reply]:
        headers = {**head.headers, "content-length": str(len(body))}
        request_id = f"{self._id}-{self._plain_number}"
        request = Request(head.method, head.path, head.query, headers, body, received_ns, request_id)
        exchange = Exchange(self, head, request)
        if self._pending:
            assert self._pending[0] is self._plain
            self._pending[0] = exchange
        return request, exchange
