"""Closing a listener without losing anybody on the doorstep."""

from __future__ import annotations

import asyncio


async def stop_listening(listener: asyncio.Server) -> None:
    """Take no more connections. Those taken already have been handed to their protocol when this returns.

    The loop of the standard library takes a connection in one turn and makes its protocol in the next. A listener that
    is closed in between forgets it: nobody answers it and nobody closes it, and its client waits.
    """
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        for listening in listener.sockets:
            loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
    listener.close()
