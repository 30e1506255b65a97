from __future__ import annotations

import pytest

from tests.storage.samples import read_bytes
from topics.storage import draft
from topics.storage.draft import TEMP_SUFFIX, Draft
from topics.testing import FakeDisk, FaultFs, MonitorFs


def disk_with_folder() -> FakeDisk:
    disk = FakeDisk()
    disk.make_dir("/d")
    return disk


def test_it_has_its_name_only_when_published_and_its_bytes_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "WRITE_BYTES", 10)
    monitor = MonitorFs(disk_with_folder())
    with Draft(monitor, "/d/file") as made:
        offsets = [made.append([b"%d" % number, b"abc"]) for number in range(10)]
        assert monitor.list("/d") == ["file" + TEMP_SUFFIX]
        made.seal()
        made.publish()
    assert offsets == list(range(0, 40, 4))
    assert read_bytes(monitor, "/d/file") == b"".join(b"%dabc" % number for number in range(10))
    monitor.sync_dir("/d")
    monitor.assert_synced("/d/file", 40)


def test_a_stale_draft_is_replaced() -> None:
    disk = disk_with_folder()
    stale = disk.open("/d/file" + TEMP_SUFFIX, "create")
    stale.write_at(0, [b"something longer"])
    with Draft(disk, "/d/file") as made:
        made.append([b"new"])
        made.seal()
        made.publish()
    assert read_bytes(disk, "/d/file") == b"new"


def test_a_failed_draft_is_discarded_even_when_that_fails_too() -> None:
    disk = disk_with_folder()
    with pytest.raises(KeyError), Draft(disk, "/d/file") as made:
        made.append([b"x"])
        raise KeyError("x")
    assert disk.list("/d") == []
    faulty = FaultFs(disk)
    faulty.fail("sync")
    faulty.fail("unlink")
    with pytest.raises(OSError, match="Input/output error"), Draft(faulty, "/d/file") as made:
        made.append([b"x"])
        made.seal()
    assert disk.list("/d") == ["file" + TEMP_SUFFIX]
