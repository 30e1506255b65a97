"""Bytes that come from anywhere, saved as a file that is there whole or not at all.

They are written beside it, under a name that ends in `.tmp`, on a thread of their own; the file gets its name when the
last one is durable. Whatever ends it earlier, a full disk or a cancellation, leaves nothing behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from topics.errors import Conflict
from topics.storage.draft import Draft
from topics.storage.fs import FileSystem, RealFs


class PathLike(Protocol):
    """What `pathlib.Path` is."""

    def __fspath__(self) -> str: ...


OnBytes = Callable[[int], None]


async def save(
    path: str,
    pieces: AsyncIterable[bytes],
    on_bytes: OnBytes = lambda count: None,
    fs: FileSystem | None = None,
) -> int:
    """Save what comes under a name that is free, durably; how many bytes that are."""
    fs = fs or RealFs()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "save") as thread:
        draft = await loop.run_in_executor(thread, _begin, fs, path)
        try:
            async for piece in pieces:
                await loop.run_in_executor(thread, draft.append, [piece])
                on_bytes(len(piece))
            await loop.run_in_executor(thread, _finish, fs, draft)
        except BaseException:
            # Behind a write that may still be under way; leaving the thread waits for both.
            thread.submit(draft.discard)
            raise
    return draft.length_bytes


def _begin(fs: FileSystem, path: str) -> Draft:
    if fs.exists(path):
        raise Conflict(f"{path} is there already: name a file that is not, or move this one away", path=path)
    return Draft(fs, path)


def _finish(fs: FileSystem, draft: Draft) -> None:
    draft.seal()
    draft.publish()
    directory, _, _ = draft.path.rpartition("/")
    fs.sync_dir(directory or ("/" if draft.path.startswith("/") else "."))
