"""Flooders send much at once, and a quiet client beside them must hardly notice; others send bodies without a key.

A flood and the request of a quiet client reach the server in the same moment, the flood first. What the server has
written to the flooder when it answers the quiet client tells how far it went on with the flood before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.http import request_bytes
from topics.testing.sim.network import Link
from topics.testing.sim.websocket import PING, PONG, frame, handshake

if TYPE_CHECKING:
    from topics.testing.sim.world import World

REQUESTS: Final = 400
PIECES: Final = 20_000
"""Frames of a WebSocket, or chunks of a body, of a flood."""
ANSWERED_BYTES_MAX: Final = 32 << 10
"""Answers to a flood that may be written before the quiet client has its own: those of one turn."""
BODY_BYTES: Final = 1 << 20
PIECE_BYTES: Final = 32 << 10
TAKEN_BYTES_MAX: Final = 4 * PIECE_BYTES
"""What the server may take of a body from a client without a key."""
CONNECTED_MS = 50.0


class Flooder(Actor):
    pause_ms = 250.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._links: list[Link] = []

    def routine(self) -> Routine:
        kind = self.chance.choice((self._requests, self._chunks, self._frames, self._body))
        try:
            yield from kind()
        finally:
            for link in self._links:
                link.cut()
            self._links.clear()

    def _connect(self) -> Link | None:
        link = self.world.network.connect(lambda data: None)
        if link is not None:
            self._links.append(link)
        return link

    # ---- floods

    def _requests(self) -> Routine:
        """Pipelined requests without a key."""
        link = self._connect()
        yield CONNECTED_MS
        flood = request_bytes("GET", "/v0/topics", key="") * REQUESTS
        yield from self._beside(link, flood, ANSWERED_BYTES_MAX, "pipelined requests")

    def _chunks(self) -> Routine:
        """A body in chunks of one byte."""
        link = self._connect()
        yield CONNECTED_MS
        head = request_bytes("POST", "/v0/topics/nowhere/diff", headers={"Transfer-Encoding": "chunked"})
        yield from self._beside(link, head + b"1\r\nx\r\n" * PIECES + b"0\r\n\r\n", 0, "chunks")

    def _frames(self) -> Routine:
        """Frames that need no answer, and one behind them that gets one."""
        link = self._connect()
        yield CONNECTED_MS
        if link is None or link.is_cut:
            return
        link.deliver(handshake("/v0/ws"))
        yield CONNECTED_MS
        flood = frame(b"", self.chance, PONG) * PIECES + frame(b"", self.chance, PING)
        yield from self._beside(link, flood, 0, "frames")

    def _beside(self, link: Link | None, flood: bytes, most_bytes: int, what: str) -> Routine:
        quiet = self._connect()
        yield CONNECTED_MS
        if link is None or quiet is None or link.is_cut or quiet.is_cut:
            return
        self.world.notes.counts["flood"] += 1
        before_bytes = link.written_bytes
        told: list[int] = []

        def answered() -> None:
            if not told:
                told.append(link.written_bytes - before_bytes)

        quiet.on_written = answered
        link.deliver(flood)
        quiet.deliver(request_bytes("GET", "/v0/health", key=""))
        yield CONNECTED_MS
        if told and told[0] > most_bytes:
            self.world.notes.problems.append(
                f"flood: {what} were answered with {told[0]} bytes before a quiet client had its answer, "
                f"at most {most_bytes} are in order"
            )

    # ---- a body without a key

    def _body(self) -> Routine:
        link = self._connect()
        yield CONNECTED_MS
        if link is None:
            return
        self.world.notes.counts["body without a key"] += 1
        chunked = self.chance.random() < 0.5
        length = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(BODY_BYTES)}
        link.deliver(request_bytes("POST", "/v0/topics/safe", headers=length, key=""))
        piece = b"x" * PIECE_BYTES
        if chunked:
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        taken_bytes = 0
        while taken_bytes < BODY_BYTES - len(piece):
            yield 2.0
            if link.is_cut or link.is_held or link.written_bytes or link.transport.is_closing():
                return
            link.deliver(piece)
            taken_bytes += len(piece)
            if taken_bytes > TAKEN_BYTES_MAX:
                self.world.notes.problems.append(
                    f"memory: the server took {taken_bytes} bytes of a body without a key and refused nothing"
                )
                return
