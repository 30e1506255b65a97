"""Cursors in a file: where a follower is, across restarts.

    async for event in orders.follow(cursors=topics.FileCursors("billing.cursors")):
        ...

Saving writes a new file beside the old one, syncs it and gives it the old one's name, so a crash at any moment leaves
one of the two whole. The content is a small JSON object that people can read and edit: `{"orders": {"seq": 17, …}}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from os.path import basename, dirname

import msgspec

from topics.client.cursors import Cursor
from topics.errors import Damaged
from topics.jsontext import NOT_UNDERSTOOD
from topics.limits import U64_MAX
from topics.savefile import PathLike
from topics.storage.fs import FileSystem, RealFs

_decoder = msgspec.json.Decoder(dict[str, Cursor])


class FileCursors:
    """Keeps the cursors of one follower in a file. Two followers need two files."""

    def __init__(self, path: str | PathLike, file_system: FileSystem | None = None) -> None:
        self._path = path if isinstance(path, str) else path.__fspath__()
        self._fs: FileSystem = file_system or RealFs()
        self._saving = asyncio.Lock()

    async def load(self) -> Mapping[str, Cursor]:
        """What was saved last; empty when there is no file yet."""
        return await asyncio.to_thread(self._load)

    async def save(self, cursors: Mapping[str, Cursor]) -> None:
        """Replace the file. It is durable when this returns."""
        async with self._saving:
            work = asyncio.ensure_future(asyncio.to_thread(self._save, dict(cursors)))
            try:
                await asyncio.shield(work)
            except asyncio.CancelledError:
                # A thread cannot be stopped, and the next save must not meet it.
                await asyncio.wait([work])
                raise

    def _load(self) -> Mapping[str, Cursor]:
        if not self._fs.exists(self._path):
            return {}
        file = self._fs.open(self._path, "read")
        try:
            text = file.read_at(0, file.size())
        finally:
            file.close()
        try:
            cursors = _decoder.decode(text)
        except NOT_UNDERSTOOD as error:
            raise self._damaged(str(error)) from None
        for name, cursor in cursors.items():
            if not (0 <= cursor.seq <= U64_MAX and 0 <= cursor.epoch <= U64_MAX):
                raise self._damaged(f"the numbers of {name!r} must be from 0 to {U64_MAX}")
        return cursors

    def _damaged(self, why: str) -> Damaged:
        message = f"{self._path} does not hold cursors: {why}; correct it, or remove it to begin anew"
        return Damaged(message, file=self._path)

    def _save(self, cursors: Mapping[str, Cursor]) -> None:
        directory = dirname(self._path) or "."
        fresh = f"{directory}/.{basename(self._path)}.new"
        self._fs.make_dir(directory)
        if self._fs.exists(fresh):
            self._fs.unlink(fresh)
        file = self._fs.open(fresh, "create")
        try:
            file.write_at(0, [msgspec.json.format(msgspec.json.encode(cursors), indent=1), b"\n"])
            file.sync()
        finally:
            file.close()
        self._fs.rename(fresh, f"{directory}/{basename(self._path)}")
        self._fs.sync_dir(directory)
