"""An HTTP connection that can carry a stream.

A stream (`streaming.py`) waits in `_openings` until it is at the front of `_pending`. There it stays, `_attached`, and
writes when it likes, until it ends. What the client sends meanwhile is held back unparsed (or, after an upgrade, is the
stream's), but read on, up to a bound, so that the client's going away is seen. A stream ends with the client's sending:
somebody who only reads on cannot be told from somebody who is gone. No deadline of ours holds for it, only its own.
"""

from __future__ import annotations

from typing import Any

from topics.server.attachment import Attachment, close_quietly
from topics.server.connections import NEVER_NS
from topics.server.exchange import Exchange
from topics.server.http import HttpProtocol
from topics.server.streaming import Stream, StreamResponse


class StreamedProtocol(HttpProtocol):
    """A `Carrier`. Takes what its base takes."""

    def __init__(self, *others: Any) -> None:
        super().__init__(*others)
        self._attached: Attachment | None = None

    # ---- opening and ending

    def begin_stream(self, exchange: Exchange, head: bytes, chunked: bool, response: StreamResponse) -> None:
        if exchange in self._pending:
            self._openings[exchange] = (head, chunked, response)
            self.answered(exchange)
        else:
            close_quietly(response)

    def _open_stream(self) -> None:
        opening = self._openings.pop(self._pending[0], None)
        if opening is None:
            return
        head, chunked, response = opening
        self._out.append(head)
        self._write()
        if not self._transport.is_closing():
            # What waits already may be more than the stream may have waiting: that is known before it is opened.
            self._transport.set_write_buffer_limits(high=response.buffer_bytes)
            self._transport.resume_reading()
        stream = Stream(self._transport, self, chunked)
        stream.full = self._write_paused
        attached = self._attached = Attachment(response, stream)
        self._blocked = True
        self.deadline_ns = NEVER_NS
        attached.open()
        self._hand_over()
        if self._client_ended:
            stream.end(close=True)
        elif self._connections.draining and not stream.ended:
            attached.stopping()

    def end_stream(self, close: bool) -> None:
        attached, self._attached = self._attached, None
        assert attached is not None
        self._pending.popleft()
        if close or not attached.stream.chunked:
            self._deaf = True
            self._lingers = True
            self._waiting.clear()
        attached.close()
        if not self._transport.is_closing():
            self._transport.set_write_buffer_limits(high=self._options.write_buffer_high_bytes)
        if self._write_paused:
            self._await_client(self._options.write_timeout_s)
        if self._pending:
            self.answered(self._pending[0])
        else:
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        attached, self._attached = self._attached, None
        if attached is not None:
            attached.close()
        while self._openings:
            close_quietly(self._openings.popitem()[1][-1])

    def eof_received(self) -> bool:
        if self._attached is None:
            return super().eof_received()
        self._client_ended = True
        self.end_stream(close=True)
        return True

    # ---- input

    def _parse(self, data: bytes) -> None:
        super()._parse(data)
        self._hand_over()

    def _hold(self, data: bytes) -> None:
        attached = self._attached
        if attached is not None and attached.duplex is not None:
            attached.received(data)
            return
        super()._hold(data)

    def _hand_over(self) -> None:
        """What came behind an upgrade is no HTTP."""
        attached = self._attached
        if attached is not None and attached.duplex is not None and self._unread:
            data, self._unread = self._unread, b""
            attached.received(data)

    def _may_unblock(self) -> bool:
        return self._attached is None and super()._may_unblock()

    # ---- room and time

    def pause_writing(self) -> None:
        if self._attached is None:
            super().pause_writing()
        else:
            self._write_paused = True
            self._attached.filled()

    def resume_writing(self) -> None:
        if self._attached is None:
            super().resume_writing()
        else:
            self._write_paused = False
            self._attached.drained()

    def expire(self) -> None:
        if self._attached is None:
            super().expire()
        else:
            self.deadline_ns = NEVER_NS
            self._attached.expired()

    def drain(self) -> None:
        if self._attached is None:
            super().drain()
        else:
            self._attached.stopping()
