"""The simulated client of a WebSocket beside a server's end that is not ours."""

from __future__ import annotations

import random

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from topics.testing.sim.websocket import CLOSE, PING, PONG, TEXT, SocketReader, frame, handshake

SIZES = (0, 5, 125, 126, 4000)


@pytest.mark.parametrize("size", SIZES)
def test_what_a_client_sends_is_a_masked_frame(size: int) -> None:
    server = ServerProtocol(state=OPEN)
    server.receive_data(frame(b"x" * size, random.Random(1)) + frame(b"?", random.Random(2), PONG))
    found = [(event.opcode, bytes(event.data)) for event in server.events_received() if isinstance(event, Frame)]
    assert found == [(Opcode.TEXT, b"x" * size), (Opcode.PONG, b"?")]


def test_what_a_server_sends_is_read_however_it_comes() -> None:
    server = ServerProtocol()
    server.receive_data(handshake("/v0/ws"))
    (request,) = server.events_received()
    server.send_response(server.accept(request))  # type: ignore[arg-type]
    sizes = (*SIZES, 70_000)
    for size in sizes:
        server.send_text(b"x" * size)
    server.send_ping(b"!")
    server.send_close(1001)
    data = b"".join(server.data_to_send())
    for step in (1, 7, len(data)):
        reader = SocketReader()
        found = [each for at in range(0, len(data), step) for each in reader.feed(data[at : at + step])]
        assert reader.is_open and not reader.is_refused
        assert found[:-1] == [*((TEXT, b"x" * size) for size in sizes), (PING, b"!")]
        assert found[-1][0] == CLOSE


def test_any_other_answer_is_a_refusal() -> None:
    reader = SocketReader()
    assert list(reader.feed(b"HTTP/1.1 503 Service Unavailable\r\n\r\n{}")) == []
    assert reader.is_refused and not reader.is_open
