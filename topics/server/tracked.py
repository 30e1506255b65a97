"""An HTTP connection whose plain writes, claims and acks go on tracks.

Such a request (`track.py`) does not become an exchange. While nothing else is pending, `_plain` stands in `_pending`
for it until it is answered, so that whatever the client sends meanwhile is answered behind it. When it has to be
answered like any other request after all, an exchange takes its place.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from topics.limits import KIB
from topics.server.connections import NEVER_NS
from topics.server.exchange import Exchange
from topics.server.http import NOTHING
from topics.server.message import Reply, Request
from topics.server.requesthead import RequestHead
from topics.server.streamed import StreamedProtocol
from topics.server.track import Track, TrackOf

TRACKS_MAX: Final = 4
"""Tracks that a connection remembers: one that claims, acks and writes uses three."""
WRITTEN_BYTES_MAX: Final = 64 * KIB
"""Longer answers take the ordinary way, which looks after clients that read slowly."""


class TrackedProtocol(StreamedProtocol):
    """A `Writer`. Takes what its base takes, behind the way to find a track."""

    def __init__(self, track_of: TrackOf, *others: Any) -> None:
        super().__init__(*others)
        self._track_of = track_of
        self._tracks: tuple[Track, ...] = ()
        """The one that was learned last comes first."""
        self._plain_number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._id_bytes = self._id.encode()
        self._plain = Exchange(self, None, None)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        # They would keep the connection alive, and its key.
        del self._plain
        self._tracks = ()

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        track = self._track_of(head_bytes, head)
        if track is not None and track not in self._tracks:
            self._tracks = (track, *self._tracks[: TRACKS_MAX - 1])

    def data_received(self, data: bytes) -> None:
        for track in self._tracks:
            if (
                data.startswith(track.starts[len(data)])
                and data.endswith(track.end)
                and not (self._pending or self._deaf or self._blocked)
                and self._parser.part is NOTHING
            ):
                self._pending.append(self._plain)
                self._plain_number = self._request_count = self._request_count + 1
                self.deadline_ns = NEVER_NS
                track.take(self, data)
                return
        super().data_received(data)

    def answer_plain(self, template: bytes, seq: bytes) -> bool:
        if not self._pending:
            return True  # The connection is lost.
        if self._has_more_to_do():
            return False
        self._write_plain(template % (self._id_bytes, self._plain_number, seq, seq, seq, seq))
        return True

    def answer_body(self, ok_plain: bytes, body: bytes) -> bool:
        if not self._pending:
            return True
        if len(body) > WRITTEN_BYTES_MAX or self._has_more_to_do():
            return False
        self._write_plain(ok_plain % (self._id_bytes, self._plain_number, len(body), body))
        return True

    @property
    def is_lost(self) -> bool:
        return not self._pending or self._client_ended

    def _has_more_to_do(self) -> bool:
        """Whether the answer takes more than writing it."""
        return bool(
            len(self._pending) > 1
            or self._out
            or self._blocked
            or self._deaf
            or self._connections.draining
            or self._parser.part is not NOTHING
        )

    def _write_plain(self, answer: bytes) -> None:
        self._pending.clear()
        self.deadline_ns = self._connections.idle_deadline_ns
        self._transport.write(answer)

    def leave_track(self, head: RequestHead, body: bytes, received_ns: int) -> tuple[Request, Reply]:
        headers = {**head.headers, "content-length": str(len(body))}
        request_id = f"{self._id}-{self._plain_number}"
        request = Request(head.method, head.path, head.query, headers, body, received_ns, request_id, self._peer)
        exchange = Exchange(self, head, request)
        if self._pending:
            assert self._pending[0] is self._plain
            self._pending[0] = exchange
        return request, exchange
