"""Keeps the cursors of one follower in a store: what is done with is saved, soon after and never before.

`done` notes how far the reader is. The first note after a save starts the time of `commit_ms`, at whose end all notes
are saved at once; with 0 each note is saved before the next event. A save that fails is raised at the next note: a
follower does not run on without its place being kept.
"""

from __future__ import annotations

import asyncio

from topics.client.cursors import Cursor, CursorStore, parse_cursor_name
from topics.limits import SECOND_MS


class Keeper:
    def __init__(self, store: CursorStore, commit_ms: int) -> None:
        self._store = store
        self._commit_s = commit_ms / SECOND_MS
        self._cursors: dict[str, Cursor] = {}
        self._dirty = False
        self._saving = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def load(self) -> dict[str, Cursor]:
        """Where the follower was when it was last saved."""
        self._cursors = dict(await self._store.load())
        return dict(self._cursors)

    async def done(self, name: str, cursor: Cursor) -> None:
        """The reader is done with everything up to this cursor."""
        self._raise_failure()
        self._cursors[name] = cursor
        self._dirty = True
        if not self._commit_s:
            await self._save()
        elif self._timer is None:
            self._timer = asyncio.create_task(self._save_later())

    async def forget(self, topic: str) -> None:
        """The topic is gone, and the cursors of its partitions with it."""
        gone = [name for name in self._cursors if parse_cursor_name(name)[0] == topic]
        for name in gone:
            del self._cursors[name]
        if gone:
            self._dirty = True
            await self._save()

    async def close(self) -> None:
        """Save what is not saved yet."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            await asyncio.gather(timer, return_exceptions=True)
        await self._save()

    async def _save_later(self) -> None:
        await asyncio.sleep(self._commit_s)
        await self._save()
        self._timer = None

    async def _save(self) -> None:
        """Save all notes, one save at a time. What a cancelled one has not saved is still to be saved."""
        async with self._saving:
            if not self._dirty:
                return
            self._dirty = False
            try:
                await self._store.save(dict(self._cursors))
            except BaseException:
                self._dirty = True
                raise

    def _raise_failure(self) -> None:
        if self._timer is not None and self._timer.done():
            timer, self._timer = self._timer, None
            timer.result()
