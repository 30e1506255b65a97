"""Where segments are: a hot directory, and a cold one that older segments move to.

A segment is looked for in the hot directory first, then in the cold one, file by file. `relocate` makes a whole,
verified, durable copy in the cold directory before it takes anything away from the hot one, so that after a crash at
any point each file is whole in at least one of the two, and an index found in the other directory than its data is
still its index. What a crash leaves behind is removed by `sweep`.

Relocating a segment and writing its marks are done by the same thread, one after the other: the copy has the marks.
"""

from __future__ import annotations

from collections.abc import Collection

from xxhash import xxh3_64

from topics.errors import Damaged
from topics.storage.draft import TEMP_SUFFIX, Draft
from topics.storage.fs import FileSystem
from topics.storage.segmentfile import data_name, index_name, number_of, verify

COPY_BYTES = 1 << 20


class Tiers:
    """Finds files of segments; `find` is what an open segment takes as its finder."""

    def __init__(self, fs: FileSystem, hot_dir: str, cold_dir: str | None = None) -> None:
        self.hot_dir = hot_dir
        self.cold_dir = cold_dir
        self._fs = fs

    def directories(self) -> list[str]:
        return [self.hot_dir] if self.cold_dir is None else [self.hot_dir, self.cold_dir]

    def find(self, name: str) -> str:
        for directory in self.directories():
            path = f"{directory}/{name}"
            if self._fs.exists(path):
                return path
        raise FileNotFoundError(f"{name} is in none of {', '.join(self.directories())}")

    def numbers(self) -> list[int]:
        """The segments that exist, ascending: those with a `.data` file."""
        names = {name for directory in self.directories() for name in self._fs.list(directory)}
        numbers = (number_of(name) for name in names)
        return sorted({number for number in numbers if number is not None and data_name(number) in names})

    def size_bytes(self, number: int) -> int:
        """What a segment takes on disk."""
        found = 0
        for name in (data_name(number), index_name(number)):
            for directory in self.directories():
                if self._fs.exists(f"{directory}/{name}"):
                    file = self._fs.open(f"{directory}/{name}", "read")
                    found += file.size()
                    file.close()
        return found

    def remove(self, number: int) -> None:
        """Take away a segment that nothing needs any more, wherever it is."""
        for directory in self.directories():
            if self._unlink(directory, [data_name(number), index_name(number)]):
                self._fs.sync_dir(directory)

    def relocate(self, number: int) -> None:
        """Move a segment to the cold directory. Raises `Damaged`, and moves nothing, when it is damaged."""
        assert self.cold_dir is not None, "a segment relocates only when there is a cold directory"
        hot_path = f"{self.hot_dir}/{data_name(number)}"
        mapping = self._fs.map(hot_path)
        try:
            verify(hot_path, mapping.view, number)
        finally:
            mapping.release()
        self._fs.make_dir(self.cold_dir)
        names = [name for name in (index_name(number), data_name(number)) if self._fs.exists(f"{self.hot_dir}/{name}")]
        for name in names:
            self._copy(name)
        self._fs.sync_dir(self.cold_dir)
        self._unlink(self.hot_dir, names)
        self._fs.sync_dir(self.hot_dir)

    def _copy(self, name: str) -> None:
        source = self._fs.map(f"{self.hot_dir}/{name}")
        try:
            with Draft(self._fs, f"{self.cold_dir}/{name}") as draft:
                for at in range(0, len(source.view), COPY_BYTES):
                    draft.append([source.view[at : at + COPY_BYTES]])
                draft.seal()
                self._compare(source.view, draft.temp_path)
                draft.publish()
        finally:
            source.release()

    def _compare(self, source: memoryview, copy_path: str) -> None:
        copy = self._fs.map(copy_path)
        try:
            same = xxh3_64(source).digest() == xxh3_64(copy.view).digest()
        finally:
            copy.release()
        if not same:
            raise Damaged(
                f"{copy_path} is not what was copied into it: the cold directory's disk is failing", file=copy_path
            )

    def sweep(self, live: Collection[int]) -> list[str]:
        """Remove what no live segment needs: drafts, other segments, and cold copies of files that are still hot.

        A file may be left from an erasure that was cut short, so its bytes are overwritten before it goes.
        Answers the paths removed.
        """
        removed = []
        hot_names = set(self._fs.list(self.hot_dir))
        for directory in self.directories():
            names = [
                name
                for name in self._fs.list(directory)
                if name.endswith(TEMP_SUFFIX)
                or ((number := number_of(name)) is not None and number not in live)
                or (directory == self.cold_dir and name in hot_names)
            ]
            for name in names:
                shred(self._fs, f"{directory}/{name}")
                removed.append(f"{directory}/{name}")
            if names:
                self._fs.sync_dir(directory)
        return removed

    def _unlink(self, directory: str, names: Collection[str]) -> bool:
        present = [name for name in names if self._fs.exists(f"{directory}/{name}")]
        for name in present:
            self._fs.unlink(f"{directory}/{name}")
        return bool(present)


def shred(fs: FileSystem, path: str) -> None:
    """Overwrite a file with zeros, durably, and unlink it; the caller syncs the directory."""
    zeros = bytes(COPY_BYTES)
    file = fs.open(path, "write")
    try:
        size_bytes = file.size()
        for at in range(0, size_bytes, COPY_BYTES):
            file.write_at(at, [zeros[: size_bytes - at]])
        file.sync()
    finally:
        file.close()
    fs.unlink(path)
