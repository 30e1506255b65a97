from __future__ import annotations

import errno

import pytest

from topics.server import storagesize
from topics.server.storagesize import measure
from topics.testing import FakeDisk, FaultFs


def disk(*sizes: int) -> FaultFs:
    inner = FakeDisk()
    for directory in ("/d", "/d/wal", "/d/segments"):
        inner.make_dir(directory)
    for number, size in enumerate(sizes):
        file = inner.open(f"/d/segments/{number}", "create")
        file.write_at(0, [b"x" * size])
        file.close()
    return FaultFs(inner)


def test_a_file_that_went_meanwhile_has_no_size() -> None:
    fs = disk(10, 20, 30)
    fs.fail("open", errno.ENOENT, path="/d/segments/1")
    assert measure(fs, "/d", "/d/segments", None).hot_bytes == 40


def test_of_very_many_files_some_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storagesize, "FILES_MAX", 2)
    found = measure(disk(10, 30, 500, 500), "/d", "/d/segments", "/d/segments")
    assert (found.wal_bytes, found.hot_bytes, found.cold_bytes) == (0, 80, 80)
