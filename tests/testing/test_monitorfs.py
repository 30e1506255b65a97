from __future__ import annotations

import errno

import pytest

from topics.storage.fs import File
from topics.testing import FakeDisk, FaultFs, MonitorFs


def fresh() -> tuple[MonitorFs, FaultFs]:
    disk = FakeDisk()
    disk.make_dir("/d")
    faults = FaultFs(disk)
    return MonitorFs(faults), faults


def created(monitor: MonitorFs, content: bytes = b"", *, name: str = "/d/a") -> File:
    """A file with these bytes, whose bytes and name are durable."""
    file = monitor.open(name, "create")
    file.write_at(0, [content])
    file.sync()
    monitor.sync_dir("/d")
    return file


class TestBytes:
    def test_a_write_is_durable_after_a_sync(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abc")
        file.write_at(3, [b"de", b"f"])
        assert monitor.durable_length("/d/a") == 3
        assert [monitor.is_durable("/d/a", offset, 2) for offset in (0, 1, 2, 3, 4, 5)] == [True] * 2 + [False] * 4
        file.sync()
        assert monitor.durable_length("/d/a") == 6
        assert [monitor.is_durable("/d/a", offset, 2) for offset in (0, 4, 5)] == [True, True, False]

    def test_a_rewrite_in_the_middle_leaves_the_rest_durable(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abcdef")
        file.write_at(2, [b"X"])
        assert monitor.durable_length("/d/a") == 2
        assert [monitor.is_durable("/d/a", offset, 1) for offset in range(6)] == [True, True, False, True, True, True]

    def test_a_gap_below_a_write_is_new_too(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abc")
        file.write_at(10, [b"x"])
        assert not monitor.is_durable("/d/a", 5, 1)
        file.write_at(0, [b"a"])
        assert monitor.durable_length("/d/a") == 0

    def test_changes_of_length_need_a_sync(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abcdef")
        file.allocate(8)
        file.allocate(2)
        assert (monitor.durable_length("/d/a"), monitor.is_durable("/d/a", 6, 1)) == (6, False)
        file.sync()
        assert monitor.durable_length("/d/a") == 8
        file.truncate(4)
        assert (monitor.durable_length("/d/a"), monitor.is_durable("/d/a", 4, 1)) == (4, False)
        with pytest.raises(AssertionError, match="unsynced"):
            monitor.rename("/d/a", "/d/b")

    def test_writes_made_during_a_sync_are_not_covered_by_it(self) -> None:
        disk = FakeDisk()
        disk.make_dir("/d")
        faults = FaultFs(disk)
        monitor = MonitorFs(faults)
        file = created(monitor, b"abc")
        file.write_at(3, [b"d"])
        # The rule never fires its failure; its observer runs in the middle of the sync.
        faults.skip("sync").on_fire = lambda call: file.write_at(4, [b"e"])
        file.sync()
        assert monitor.durable_length("/d/a") == 4

    def test_bytes_in_flight_are_not_durable_yet(self) -> None:
        monitor, faults = fresh()
        file = created(monitor, b"abc")
        file.write_at(3, [b"d"])
        seen = []
        faults.skip("sync").on_fire = lambda call: seen.append(monitor.durable_length("/d/a"))
        file.sync()
        assert (seen, monitor.durable_length("/d/a")) == ([3], 4)

    def test_bytes_of_a_failed_sync_are_lost_for_good(self) -> None:
        monitor, faults = fresh()
        file = created(monitor, b"abc")
        file.write_at(3, [b"def"])
        faults.fail("sync")
        with pytest.raises(OSError):
            file.sync()
        file.write_at(6, [b"ghi"])
        file.sync()
        assert monitor.durable_length("/d/a") == 3
        assert monitor.is_durable("/d/a", 6, 3)
        with pytest.raises(AssertionError, match="unsynced"):
            monitor.rename("/d/a", "/d/b")

    @pytest.mark.parametrize("keep_bytes", [0, 2])
    def test_a_failed_write_leaves_its_range_in_doubt(self, keep_bytes: int) -> None:
        monitor, faults = fresh()
        file = created(monitor, b"abcdef")
        faults.tear(keep_bytes)
        with pytest.raises(OSError):
            file.write_at(4, [b"EFGH"])
        assert monitor.durable_length("/d/a") == 4
        file.sync()
        assert monitor.durable_length("/d/a") == 6

    @pytest.mark.parametrize(("verb", "sure"), [("truncate", 2), ("allocate", 6)])
    def test_a_failed_change_of_length_leaves_the_shorter(self, verb: str, sure: int) -> None:
        monitor, faults = fresh()
        file = created(monitor, b"abcdef")
        faults.fail(verb, errno.EIO)
        with pytest.raises(OSError):
            getattr(file, verb)(2 if verb == "truncate" else 9)
        assert monitor.durable_length("/d/a") == sure
        with pytest.raises(AssertionError, match="unsynced"):
            monitor.rename("/d/a", "/d/b")


class TestNames:
    def test_a_name_is_durable_after_sync_dir(self) -> None:
        monitor, _ = fresh()
        file = monitor.open("/d/a", "create")
        file.write_at(0, [b"abc"])
        file.sync()
        assert (monitor.name_is_durable("/d/a"), monitor.durable_length("/d/a")) == (False, 0)
        assert not monitor.is_durable("/d/a", 0, 3)
        monitor.sync_dir("/d/")
        assert (monitor.name_is_durable("/d/a"), monitor.durable_length("/d/a")) == (True, 3)

    def test_another_directory_does_not_count(self) -> None:
        monitor, _ = fresh()
        monitor.make_dir("/d/sub")
        monitor.open("/d/sub/a", "create")
        monitor.sync_dir("/d")
        assert not monitor.name_is_durable("/d/sub/a")

    def test_a_failed_sync_dir_does_not_count(self) -> None:
        monitor, faults = fresh()
        monitor.open("/d/a", "create")
        faults.fail("sync_dir")
        with pytest.raises(OSError):
            monitor.sync_dir("/d")
        assert not monitor.name_is_durable("/d/a")

    def test_a_rename_needs_a_sync_dir_of_its_own_and_handles_go_along(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abc")
        monitor.rename("/d/a", "/d/b")
        assert (monitor.durable_length("/d/a"), monitor.durable_length("/d/b")) == (0, 0)
        monitor.sync_dir("/d")
        assert monitor.durable_length("/d/b") == 3
        file.write_at(0, [b"X"])
        assert monitor.durable_length("/d/b") == 0

    def test_a_name_given_back_is_as_new_as_any(self) -> None:
        monitor, _ = fresh()
        created(monitor, b"abc")
        monitor.rename("/d/a", "/d/b")
        monitor.sync_dir("/d")
        monitor.rename("/d/b", "/d/a")
        assert not monitor.name_is_durable("/d/a")

    def test_a_name_given_again_starts_anew(self) -> None:
        monitor, _ = fresh()
        monitor.allow_unlink(lambda path: True)
        created(monitor, b"abc")
        monitor.unlink("/d/a")
        monitor.open("/d/a", "create").sync()
        assert not monitor.name_is_durable("/d/a")

    def test_a_missing_file_is_not_durable(self) -> None:
        monitor, _ = fresh()
        assert (monitor.durable_length("/d/no"), monitor.is_durable("/d/no", 0, 0)) == (0, False)

    def test_files_from_before_count_as_durable(self) -> None:
        monitor, faults = fresh()
        faults.inner.open("/d/a", "create").write_at(0, [b"abc"])
        assert monitor.durable_length("/d/a") == 3
        monitor.open("/d/a", "write").write_at(3, [b"d"])
        assert monitor.durable_length("/d/a") == 3


class TestRules:
    def test_renaming_unsynced_bytes_is_refused_with_the_history(self) -> None:
        monitor, faults = fresh()
        file = created(monitor, b"abc", name="/d/a.tmp")
        file.write_at(3, [b"def"])
        with pytest.raises(AssertionError) as refusal:
            monitor.rename("/d/a.tmp", "/d/a")
        text = str(refusal.value)
        assert "rename of /d/a.tmp to /d/a with unsynced bytes" in text
        assert text.index("open /d/a.tmp to create") < text.index("sync done") < text.index("write_at 3 to 6")
        assert faults.inner.list("/d") == ["a.tmp"]
        file.sync()
        monitor.rename("/d/a.tmp", "/d/a")

    def test_unlinking_needs_a_predicate_that_allows_it_now(self) -> None:
        monitor, faults = fresh()
        created(monitor)
        with pytest.raises(AssertionError, match="unlink of /d/a, which no registered predicate allows"):
            monitor.unlink("/d/a")
        covered: set[str] = set()
        monitor.allow_unlink(lambda path: path.endswith(".tmp"))
        monitor.allow_unlink(lambda path: path in covered)
        with pytest.raises(AssertionError):
            monitor.unlink("/d/a")
        assert faults.inner.exists("/d/a")
        covered.add("/d/a")
        monitor.unlink("/d/a")
        assert not faults.inner.exists("/d/a")

    def test_assert_synced(self) -> None:
        monitor, _ = fresh()
        file = created(monitor, b"abc")
        monitor.assert_synced("/d/a", 3)
        file.write_at(3, [b"d"])
        monitor.assert_synced("/d/a", 3)
        with pytest.raises(AssertionError, match="must be durable up to 4, is up to 3; its name is durable"):
            monitor.assert_synced("/d/a", 4)
        monitor.rename(created(monitor, b"x", name="/d/b").path, "/d/c")
        with pytest.raises(AssertionError, match="its name is not durable"):
            monitor.assert_synced("/d/c", 1)

    def test_a_violation_is_kept_when_the_code_under_test_swallows_it(self) -> None:
        monitor, _ = fresh()
        created(monitor)
        monitor.assert_clean()
        with pytest.raises(AssertionError):
            monitor.unlink("/d/a")
        with pytest.raises(AssertionError, match="unlink of /d/a"):
            monitor.assert_clean()

    def test_a_lying_disk_is_seen_through_when_the_lie_is_outside(self) -> None:
        monitor = MonitorFs(FakeDisk())
        monitor.make_dir("/d")
        faults = FaultFs(monitor)
        faults.skip("sync", always=True)
        file = faults.open("/d/a", "create")
        file.write_at(0, [b"abc"])
        file.sync()
        faults.sync_dir("/d")
        with pytest.raises(AssertionError):
            monitor.assert_synced("/d/a", 3)

    def test_history_is_numbered_over_all_files(self) -> None:
        monitor, _ = fresh()
        monitor.open("/d/a", "create")
        monitor.open("/d/b", "create").write_at(0, [b"x"])
        monitor.open("/d/a", "write")
        assert monitor.history("/d/a") == ["1: open /d/a to create", "4: open /d/a to write"]
        assert monitor.history("/d/no") == []


class TestDirectories:
    def test_a_directory_is_renamed_when_all_in_it_is_durable(self) -> None:
        monitor, _ = fresh()
        monitor.make_dir("/d/new")
        file = monitor.open("/d/new/a", "create")
        file.write_at(0, [b"abc"])
        with pytest.raises(AssertionError, match="rename of /d/new to /d/old with unsynced bytes in /d/new/a"):
            monitor.rename_dir("/d/new", "/d/old")
        file.sync()
        with pytest.raises(AssertionError, match="in which the name /d/new/a is not durable"):
            monitor.rename_dir("/d/new", "/d/old")
        assert monitor.exists("/d/new/a") and len(monitor.violations) == 2
        monitor.sync_dir("/d/new")
        monitor.rename_dir("/d/new", "/d/old")
        assert monitor.is_durable("/d/old/a", 0, 3) and not monitor.exists("/d/new/a")
