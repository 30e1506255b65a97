"""What a WAL says when it is read again: facts that nobody understands, and copies whose topic is gone."""

from __future__ import annotations

import pytest

from tests.engine.damage import disk_of, flipped
from tests.engine.rig import Rig
from tests.engine.routerrig import put
from tests.engine.test_fsck import run
from tests.engine.test_salvage import frames_of, meta_frames
from topics.errors import Damaged
from topics.storage import frame
from topics.storage.frame import Kind
from topics.storage.walfile import parse_name, read_header

WAL = "/data/wal/1-0000000001.wal"


def test_a_fact_that_is_whole_and_not_understood_is_told_with_its_place() -> None:
    rig = Rig()
    rig.configure("odd", durability="fsync")
    rig.delete("odd", before_seq=1)
    rig.write("odd", 1, 2, 3)
    rig.delete("odd", before_seq=2)
    contents = rig.disk.kill().contents()
    parsed = parse_name(WAL.rpartition("/")[2])
    assert parsed is not None
    header, _ = read_header(memoryview(contents[WAL]), WAL, *parsed)
    victim = [found for found in frames_of(contents, WAL) if found.kind == Kind.FACT][-1]
    body = b"\xc1" * len(victim.body)
    rebuilt = b"".join(frame.build(victim.kind, victim.log_id, victim.position, victim.flags, [body], header.salt))
    content = bytearray(contents[WAL])
    content[victim.offset : victim.offset + len(rebuilt)] = rebuilt
    rig.disk = disk_of(contents | {WAL: bytes(content)})
    why = f"position {victim.position} of log 1 is whole, but cannot be read: .*open the directory with that one"
    with pytest.raises(Damaged, match=f"{why}.*topics fsck /data"):
        rig.start()
    with pytest.raises(Damaged, match=why):
        run(rig.disk, repair=True)
    assert rig.disk.contents()[WAL] == bytes(content), "what a newer version can read is left alone"


def test_copies_that_are_lost_with_their_topic_are_no_news() -> None:
    rig = Rig()
    rig.configure("a", durability="memory")
    put(rig, "a", "b")
    rig.write("a", "first")
    rig.work()
    assert rig.log("b").head_seq == 1
    rig.drop("b")
    rig.configure("other")
    rig.crash("lost")
    assert rig.engine.machine.topics.get("b") is None
    assert rig.data("a") == []


def test_a_router_goes_with_a_topic_that_is_lost() -> None:
    rig = Rig()
    rig.configure("a", durability="fsync")
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", 1)
    rig.work()
    contents = rig.disk.kill().contents()
    path, created = meta_frames(contents)[0]
    disk = flipped(contents, path, created.offset + 60, 1)
    report = run(disk, repair=True)
    assert any("router a->b leads from or to a topic that is lost" in note for note in report.notes)
    rig.disk = disk
    rig.start()
    assert not list(rig.engine.machine.routers)
