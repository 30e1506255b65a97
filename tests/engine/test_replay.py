"""What a WAL says when it is read again: facts that nobody understands, and copies whose topic is gone."""

from __future__ import annotations

import pytest

from tests.core.catalogrig import table
from tests.engine.damage import disk_of, flipped
from tests.engine.rig import Rig
from tests.engine.routerrig import put
from tests.engine.test_fsck import run
from tests.engine.test_salvage import frames_of, meta_frames
from topics.core.commands import ChangeSources
from topics.core.pipelinecommands import PutTable
from topics.core.source import Operation, Source
from topics.errors import NotUnderstood
from topics.model import Reason
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
    why = f"position {victim.position} of log 1 is whole, but cannot be read: .*open the directory with that one$"
    with pytest.raises(NotUnderstood, match=why):
        rig.start()
    with pytest.raises(NotUnderstood, match=why):
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


def test_seqs_that_a_segment_tells_of_are_not_skipped_again() -> None:
    """Without a snapshot everything in the WAL is read again, also what the segments go beyond."""
    rig = Rig()
    rig.configure("odd")
    rig.write("odd", 1)
    for _ in range(2):
        rig.checkpoint()
        rig.write("odd", "lost")
        rig.crash("lost")
        rig.write("odd", "behind the gap")
    rig.checkpoint()
    rig.write("odd", "in the WAL")
    gaps = [(gap.gap_from, gap.gap_to) for gap in rig.gaps("odd")]
    assert len(gaps) == 2 and {gap.reason for gap in rig.gaps("odd")} == {Reason.RESTART}
    seqs = rig.seqs("odd")
    contents = rig.disk.kill().contents()
    rig.disk = disk_of({path: content for path, content in contents.items() if "/snapshots/" not in path})
    run(rig.disk, repair=True)
    rig.start()
    assert rig.data("odd") == [1, "behind the gap", "behind the gap", "in the WAL"] and rig.seqs("odd") == seqs
    assert [(hole.gap_from, hole.gap_to) for hole in rig.log("odd").holes if hole.gap_from < seqs[-1]] == gaps


def test_copies_whose_fact_is_lost_leave_seqs_that_nobody_gets_again() -> None:
    """The bytes of one fact about copies may have brought thousands of records."""
    rig = Rig()
    rig.configure("a", durability="fsync")
    rig.configure("b", durability="fsync")
    put(rig, "a", "b")
    rig.write("a", *range(100))
    rig.work()
    rig.write("b", 1)
    rig.write("a", *range(100))
    rig.work()
    assert rig.log("b").head_seq == 201
    rig.configure("c")
    contents = rig.disk.kill().contents()
    path = "/data/wal/0-0000000001.wal"
    lost = [found for found in frames_of(contents, path) if found.kind == Kind.FACT and found.log_id == 2][-1]
    disk = flipped(contents, path, lost.offset + 60, 1)
    report = run(disk, repair=True)
    assert [(gap.topic, gap.gap_from) for gap in report.lost] == [("b", 102)]
    rig.disk = disk
    rig.start()
    assert rig.data("b")[:101] == [*range(100), 1]
    assert rig.write("b", "next").first_seq > 201


def test_sources_of_a_topic_that_is_lost_are_told() -> None:
    rig = Rig()
    rig.configure("a", durability="fsync")
    rig.driver.do(PutTable("rows", table()))
    rig.driver.do(ChangeSources("a", (Source("rows", Operation.INSERT),)))
    rig.write("a", 1)
    contents = rig.disk.kill().contents()
    path, created = meta_frames(contents)[0]
    disk = flipped(contents, path, created.offset + 60, 1)
    report = run(disk, repair=True)
    assert "the sources of topic a are lost with the topic itself" in report.notes
    rig.disk = disk
    rig.start()
    (state,) = rig.engine.topics()
    assert rig.data(state.topic) == [1] and not list(rig.engine.machine.topics.fed())
