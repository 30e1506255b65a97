"""A server without sockets: handlers called by hand, and connections whose bytes go as far as the test lets them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec

from tests.engine.watchrig import WatchRig
from tests.server.sserig import Frame, split_frames
from topics.core.records import RecordLimits
from topics.server.context import Context
from topics.server.dispatch import Dispatcher
from topics.server.message import Request, Response
from topics.server.streaming import Stream, StreamResponse
from topics.server.table import ROUTES, Table
from topics.settings import Settings

NEVER_NS = 2**63


class Pipe:
    """The connection under one stream. What is written waits here until the client reads it."""

    def __init__(self, response: StreamResponse, full: bool = False) -> None:
        """`full` is a connection on which the client has not read the answers before the stream yet."""
        self.deadline_ns = NEVER_NS
        self.unread = bytearray()
        self.ended = False
        """Whether the server has said its last word."""
        self._response = response
        self._outlet: Any = response.outlet
        self.stream = Stream(self, self, chunked=False)  # type: ignore[arg-type]
        if full:
            self.unread += b": before\n\n" * response.buffer_bytes
            self.stream.full = True
        self._outlet.opened(self.stream)

    # ---- what the stream needs

    def write(self, data: bytes) -> None:
        self.unread += data
        if not self.stream.full and len(self.unread) > self._response.buffer_bytes:
            self.stream.full = True
            self._outlet.filled()

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def end_stream(self, close: bool) -> None:
        self.ended = True
        self._close()

    def abort(self) -> None:
        self.unread.clear()
        self.end_stream(close=True)

    # ---- what the world does

    def read(self, count: int | None = None) -> bytes:
        """The client reads."""
        taken = bytes(self.unread[:count])
        del self.unread[: len(taken)]
        if self.stream.full and len(self.unread) <= self._response.buffer_bytes // 4:
            self.stream.full = False
            self._outlet.drained()
        return taken

    def cut(self) -> None:
        """The network fails. What was not read is lost."""
        self.unread.clear()
        if not self.ended:
            self.end_stream(close=True)

    def tick(self, now_ns: int) -> None:
        if not self.ended and self.deadline_ns <= now_ns:
            self.deadline_ns = NEVER_NS
            self._outlet.expired()

    def stop(self) -> None:
        """The server drains."""
        if not self.ended:
            self._outlet.stopping()

    def _close(self) -> None:
        self.stream.detach()
        self._response.close()

    def frames(self) -> list[Frame]:
        """All that can be read now."""
        found, rest = split_frames(self.read())
        assert rest == b""
        return found


class Edge:
    """The server's handlers on an engine that is driven by hand."""

    def __init__(self, rig: WatchRig, **settings: Any) -> None:
        self.rig = rig
        self._settings = Settings(**settings)
        self.start()

    def start(self) -> None:
        """As after a restart: nothing is known but what is on disk."""
        self.rig.watch.wanted = self.rig._wanted
        self.context = Context(self._settings, RecordLimits(), self.rig.clock, self.rig.clock.now_ms())
        host: Any = SimpleNamespace(engine=self.rig.engine, fresh=lambda *topics: self.rig.engine.freshness.of(topics))
        self.context.host = host
        self._dispatch = Dispatcher(self.context, Table(ROUTES), self.context.authenticator, self.context.quota)

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Response:
        answers: list[Response] = []
        named = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        content = b"" if body is None else msgspec.json.encode(body)
        if content:
            named["content-type"] = "application/json"
        request = Request(method, path, "", named, content, self.rig.clock.ticks_ns())
        asyncio.run(self._answered(request, answers))
        (answer,) = answers
        return answer

    async def _answered(self, request: Request, answers: list[Response]) -> None:
        """Some handlers answer in slices, so that they leave the loop to others."""
        self._dispatch(request, answers.append)
        await asyncio.gather(*self.context.tasks, return_exceptions=True)
        await asyncio.sleep(0)

    def watch(self, topics: dict[str, Any], **options: Any) -> str:
        """Make a session; where its stream is."""
        answer = self.call("POST", "/v0/watch", {"topics": topics, **options})
        assert answer.status == 200, answer.body
        url = msgspec.json.decode(answer.body)["stream_url"]
        assert isinstance(url, str)
        return url

    def open(self, url: str, last_event_id: str = "", full: bool = False) -> Pipe | None:
        """A stream; None when there is no such session any more."""
        answer = self.call("GET", url, Last_Event_ID=last_event_id)
        if not isinstance(answer, StreamResponse):
            assert answer.status == 404, answer.body
            return None
        return Pipe(answer, full)
