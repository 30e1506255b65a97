from __future__ import annotations

import asyncio
import socket

import pytest

from tests.client.rig import GUARD_SECONDS
from tests.server.httprig import both_loops
from topics.server.listener import stop_listening


class Greeter(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport) or hasattr(transport, "write")
        transport.write(b"hello")
        transport.close()


async def everybody_is_greeted(turn_count: int) -> None:
    """Clients that connect just before the listener is closed."""
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(Greeter, "127.0.0.1", 0)
    address = listener.sockets[0].getsockname()
    callers = [socket.create_connection(address, GUARD_SECONDS) for _ in range(20)]
    # In one of these turns they are taken, and in the next one their protocols are made.
    for _ in range(turn_count):
        await asyncio.sleep(0)
    await stop_listening(listener)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, GUARD_SECONDS)
    for caller in callers:
        answer = await loop.run_in_executor(None, _answer, caller)
        assert answer in (b"hello", b"")
        caller.close()


def _answer(caller: socket.socket) -> bytes:
    """What the other side says before it ends; nothing when it never took the connection. A silence is an error."""
    try:
        return caller.recv(100)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("turn_count", range(5))
@both_loops
def test_nobody_is_forgotten_on_the_doorstep(loop: str, turn_count: int) -> None:
    if loop == "uvloop":
        uvloop = pytest.importorskip("uvloop")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(everybody_is_greeted(turn_count))
    else:
        asyncio.run(everybody_is_greeted(turn_count))
