"""A way to a server on which a test takes some requests to itself; everything else passes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Way(ABC):
    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)

    @abstractmethod
    def wants(self, request: bytes) -> bool:
        """Whether this request is for the test."""

    @abstractmethod
    async def take(
        self,
        request: bytes,
        client: asyncio.StreamWriter,
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Do with it what the test is about; then the connection ends."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        back = asyncio.create_task(self._pass(there_reader, writer))
        try:
            while piece := await reader.read(65536):
                if self.wants(piece):
                    back.cancel()
                    await asyncio.gather(back, return_exceptions=True)
                    await self.take(piece, writer, (there_reader, there_writer))
                    return
                there_writer.write(piece)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            writer.close()
            there_writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            writer.write(piece)


@asynccontextmanager
async def leading(way: Way) -> AsyncIterator[str]:
    """Where the way begins."""
    async with await asyncio.start_server(way.serve, "127.0.0.1", 0) as listener:
        host, port = listener.sockets[0].getsockname()
        yield f"http://{host}:{port}"
