"""The link of the first start in a file that only its owner may read, for a server whose output is a log.

The link makes an admin, so it has no place in a log, which goes to collectors and is kept. The file is there while the
link works: it goes when the first user is made, when the server stops, and at the next start at the latest.
"""

from __future__ import annotations

from typing import Final

from topics.storage.fs import FileSystem

DIRECTORY: Final = "auth"
FILE: Final = "set-up-link"


class SetUpFile:
    def __init__(self, fs: FileSystem, data_dir: str) -> None:
        self._fs = fs
        self._directory = f"{data_dir}/{DIRECTORY}"
        self.path = f"{self._directory}/{FILE}"

    def write(self, link: str) -> None:
        self.remove()
        self._fs.make_dir(self._directory)
        file = self._fs.open(self.path, "create")
        try:
            # Before there is anything in it.
            self._fs.restrict(self.path)
            file.write_at(0, [f"{link}\n".encode()])
        finally:
            file.close()

    def remove(self) -> None:
        if self._fs.exists(self.path):
            self._fs.unlink(self.path)
