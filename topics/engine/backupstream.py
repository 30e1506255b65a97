"""A backup as an async stream of bytes: read on a thread, handed over on the loop, one piece at a time.

    async with BackupStream(host, gzip_level) as stream:
        async for piece in stream: …

Nothing is read ahead of whoever takes the pieces, so a slow one costs no memory. However it ends, also by cancellation
in the middle of a read, what the backup holds is let go of before the `async with` is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from topics.engine.backup import Backup
from topics.engine.host import Host
from topics.storage.archive import check_level


class BackupStream:
    def __init__(self, host: Host, gzip_level: int = 0) -> None:
        self._host = host
        self._gzip_level = check_level(gzip_level)
        self._thread = ThreadPoolExecutor(1, "backup")
        self._backup: Backup | None = None
        self._pieces: Iterator[bytes] = iter(())

    @property
    def total_bytes(self) -> int:
        """About how much comes when it is not compressed, for a progress bar."""
        return self._backup.total_bytes if self._backup is not None else 0

    async def __aenter__(self) -> Self:
        self._backup = await self._host.open_backup()
        self._pieces = self._backup.chunks(self._gzip_level)
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        piece = await asyncio.get_running_loop().run_in_executor(self._thread, next, self._pieces, b"")
        if not piece:
            raise StopAsyncIteration
        return piece

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._backup is not None:
            await self._host.end_backup(self._backup)
        # A read that was given up on is over by now, or soon: its files are let go of behind it, by the same thread.
        self._thread.submit(_close, self._pieces)
        self._thread.shutdown(wait=False)


def _close(pieces: Iterator[bytes]) -> None:
    close = getattr(pieces, "close", None)
    if close is not None:
        close()
