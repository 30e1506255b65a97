"""Small things that have to stay beside a checkpoint: a snapshot that cannot be taken twice, a list of files seen.

They are files with numbers or random names in a directory that the driver and the tasks of a query share, on any file
system that Arrow knows. A file is whole or not there: it is written under another name first where a half of it could
be met.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pyarrow.fs as pafs

from topics.spark.lakefile import file_system


class Spool:
    def __init__(self, root: str) -> None:
        self._root = root.removeprefix("file://") if root.startswith("file:///") else root
        self._fs, self._base = file_system(self._root)

    def write(self, name: str, content: bytes) -> None:
        """A file, whole when it is there; one of that name is replaced."""
        self._fs.create_dir(self._base, recursive=True)
        hidden = self._path(f".{name}.{uuid4().hex}")
        with self._fs.open_output_stream(hidden) as sink:
            sink.write(content)
        self._fs.move(hidden, self._path(name))

    def read(self, name: str) -> bytes:
        with self._fs.open_input_stream(self._path(name)) as source:
            found: bytes = source.readall()
        return found

    def names(self, prefix: str = "") -> list[str]:
        """The files that begin so, in order."""
        found = self._fs.get_file_info(pafs.FileSelector(self._base, allow_not_found=True))
        names = [each.base_name for each in found if each.type == pafs.FileType.File]
        return sorted(name for name in names if name.startswith(prefix) and not name.startswith("."))

    def create(self, name: str) -> Any:
        """A stream into a new file, which nobody may know before it is closed."""
        self._fs.create_dir(self._base, recursive=True)
        return self._fs.open_output_stream(self._path(name))

    def open(self, name: str) -> Any:
        return self._fs.open_input_file(self._path(name))

    def delete(self, name: str) -> None:
        if self._fs.get_file_info(self._path(name)).type == pafs.FileType.File:
            self._fs.delete_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}"
