"""The files of the audit log: full ones, cut-off lines, disks that refuse."""

from __future__ import annotations

import errno

import pytest

from tests.core.test_auditchain import chain
from topics.core.auditchain import follow, link_of
from topics.server.auditfile import AuditFile
from topics.testing import FakeDisk, FaultFs, MonitorFs


def disk() -> FakeDisk:
    fs = FakeDisk()
    fs.make_dir("/d")
    return fs


def test_a_full_file_is_renamed_and_the_chain_goes_on() -> None:
    fs, lines = disk(), chain(9)
    file = AuditFile(fs, "/d", file_bytes_max=3 * len(lines[0]))
    assert file.open() == (None, 0)
    for seq, line in enumerate(lines, 1):
        file.append(seq, [line])
    file.close()
    assert [path.rpartition("/")[2] for path in file.files()] == [
        "audit-000000000001.jsonl",
        "audit-000000000004.jsonl",
        "audit.jsonl",
    ]
    whole = [line for path in file.files() for line in file.lines(path)]
    assert whole == lines and follow(whole)[1] is None
    again = AuditFile(fs, "/d")
    assert again.open() == (link_of(lines[-1]), 0)
    assert again.lines_after(2) == lines[2:] and again.lines_after(7) == lines[7:] and again.lines_after(9) == []


def test_a_line_that_was_cut_off_is_taken_away() -> None:
    fs, lines = disk(), chain(3)
    file = AuditFile(fs, "/d")
    file.open()
    file.append(1, lines[:2])
    file.close()
    cut = fs.open("/d/audit/audit.jsonl", "write")
    cut.write_at(cut.size(), [lines[2][:40]])
    cut.close()
    again = AuditFile(fs, "/d")
    assert again.open() == (link_of(lines[1]), 40)
    again.append(3, [lines[2]])
    assert again.lines(again.path) == lines


def test_after_a_rotation_that_a_crash_cut_off_the_last_link_is_known() -> None:
    fs, lines = disk(), chain(2)
    file = AuditFile(fs, "/d", file_bytes_max=1)
    file.open()
    file.append(1, lines)
    file.close()
    fs.rename("/d/audit/audit.jsonl", "/d/audit/audit-000000000001.jsonl")
    again = AuditFile(fs, "/d")
    assert again.open() == (link_of(lines[-1]), 0)


def test_an_append_that_failed_leaves_nothing_behind() -> None:
    inner, lines = disk(), chain(3)
    fs = FaultFs(inner)
    file = AuditFile(fs, "/d")
    file.open()
    file.append(1, lines[:1])
    fs.fail("sync", errno.EIO)
    with pytest.raises(OSError):
        file.append(2, [lines[1] + b" " * 500])
    file.append(2, [lines[1]])
    file.append(3, [lines[2]])
    assert file.lines(file.path) == lines


def test_what_was_appended_survives_a_power_loss() -> None:
    fs, lines = disk(), chain(2)
    file = AuditFile(fs, "/d")
    file.open()
    file.append(1, lines)
    after = AuditFile(fs.crash("lost"), "/d")
    assert after.open() == (link_of(lines[-1]), 0)


def test_a_file_without_a_line_of_the_chain_has_no_last_link() -> None:
    fs = disk()
    fs.make_dir("/d/audit")
    file = fs.open("/d/audit/audit.jsonl", "create")
    file.write_at(0, [b"somebody emptied it\n\n"])
    file.close()
    assert AuditFile(fs, "/d").open() == (None, 0)


def test_unsynced_lines_are_on_the_disk_with_the_next_sync() -> None:
    lines = chain(4)
    for count, last in ((2, 1), (3, 1), (4, 4)):
        fs = disk()
        file = AuditFile(fs, "/d")
        file.open()
        file.append(1, lines[:1])
        for seq in (2, 3, 4)[: count - 1]:
            file.append(seq, lines[seq - 1 : seq], sync=seq == 4)
        assert file.lines(file.path) == lines[:count]
        assert AuditFile(fs.crash("lost"), "/d").open() == (link_of(lines[last - 1]), 0)


def test_lines_before_a_failed_sync_are_written_again() -> None:
    lines = chain(3)
    fs = FaultFs(disk())
    seen = MonitorFs(fs)
    file = AuditFile(seen, "/d")
    file.open()
    file.append(1, lines[:1])
    file.append(2, lines[1:2], sync=False)
    fs.fail("sync", errno.EIO)
    with pytest.raises(OSError):
        file.append(3, lines[2:])
    file.append(3, lines[2:])
    assert file.lines(file.path) == lines
    start = len(lines[0]) + 1
    writes = [line for line in seen.history(file.path) if f"write_at {start} to" in line]
    assert len(writes) == 3, "on its own, with the sync that failed, and with the one that did not"


def test_sync_alone_makes_lines_durable() -> None:
    fs, lines = disk(), chain(2)
    file = AuditFile(fs, "/d")
    file.open()
    file.append(1, lines[:1])
    file.append(2, lines[1:], sync=False)
    file.sync()
    file.sync()
    assert AuditFile(fs.crash("lost"), "/d").open() == (link_of(lines[1]), 0)


def test_close_and_rotation_sync_what_is_written() -> None:
    lines = chain(3)
    for rotates in (False, True):
        fs = disk()
        file = AuditFile(fs, "/d", file_bytes_max=2 * len(lines[0]) if rotates else 2**20)
        file.open()
        file.append(1, lines[:1])
        file.append(2, lines[1:2], sync=False)
        if rotates:
            file.append(3, lines[2:], sync=False)
        else:
            file.close()
        assert AuditFile(fs.crash("lost"), "/d").open() == (link_of(lines[1 + rotates]), 0)


def test_chain_goes_on_behind_an_empty_file() -> None:
    fs, lines = disk(), chain(2)
    file = AuditFile(fs, "/d", file_bytes_max=1)
    file.open()
    file.append(1, lines)
    file.close()
    fs.rename("/d/audit/audit.jsonl", "/d/audit/audit-000000000001.jsonl")
    fs.open("/d/audit/audit.jsonl", "create").close()
    assert AuditFile(fs, "/d").open() == (link_of(lines[-1]), 0)
