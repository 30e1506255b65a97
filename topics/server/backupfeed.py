"""Feeds a backup to a client that downloads it: as fast as it is read, and not faster.

A piece is read from the disk when the one before is on its way. A client that stops reading has `STALLED_S` for what
waits for it, then the connection is dropped: a download that nobody reads must not keep files from being removed. One
that breaks off cannot be taken for a whole one, since the stream has no end and the archive no checksums.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from topics.clock import Clock
from topics.engine.backupstream import BackupStream
from topics.errors import TopicsError
from topics.server.connections import NEVER_NS, SECOND_NS
from topics.server.streaming import Stream

STALLED_S: Final = 60

log = logging.getLogger(__name__)


class BackupFeed:
    """An outlet. The backup is open when this is made, and ended when it is closed."""

    def __init__(self, backup: BackupStream, clock: Clock) -> None:
        self._backup = backup
        self._clock = clock
        self._room = asyncio.Event()
        self._room.set()
        self._stream: Stream
        """From `opened` on; what it is told after its end does nothing."""
        self._task: asyncio.Task[None] | None = None

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        if stream.full:
            self.filled()
        self._task = asyncio.get_running_loop().create_task(self._send(stream))

    def filled(self) -> None:
        self._room.clear()
        self._stream.wake_at(self._clock.ticks_ns() + STALLED_S * SECOND_NS)

    def drained(self) -> None:
        self._room.set()
        self._stream.wake_at(NEVER_NS)

    def expired(self) -> None:
        log.warning("a backup was given up: its client has read nothing for %d s", STALLED_S)
        self._stream.abort()

    def stopping(self) -> None:
        log.warning("a backup was given up: the server stops")
        self._stream.abort()

    def closed(self) -> None:
        if self._task is None:
            # Never opened: the client was gone, or wanted the head only.
            self._task = asyncio.get_running_loop().create_task(self._end())
        else:
            self._task.cancel()
        _ending.add(self._task)
        self._task.add_done_callback(_ending.discard)

    async def _send(self, stream: Stream) -> None:
        try:
            async for piece in self._backup:
                stream.send(piece)
                await self._room.wait()
            stream.end()
        except (TopicsError, OSError) as error:
            log.error("a backup broke off: %s", error)
            stream.abort()
        finally:
            await self._end()

    async def _end(self) -> None:
        await self._backup.__aexit__(None, None, None)


_ending: set[asyncio.Task[None]] = set()
"""Backups that are being ended: the loop itself would not keep them."""
