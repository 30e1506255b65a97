"""What is refused of a group, where it can begin, and who is paused."""

from __future__ import annotations

import pytest

from tests.core.grouprig import GroupRig
from tests.core.rig import frozen
from topics.core import consume as consuming
from topics.core import groups, groupsettle
from topics.core.commands import Command
from topics.core.groupcommands import AckGroup, Consume, DropGroup, ExtendGroup, NackGroup, PauseGroup, ResetGroup
from topics.core.groupfacts import GroupAcked, GroupDropped, GroupPaused
from topics.errors import GroupNotFound, InvalidRequest, Throttled, TopicsError
from topics.groupmodel import AckedGroup, GroupBatch, PausedGroup, at_seq, at_ts

REFUSED: dict[str, tuple[Command, type[TopicsError], str]] = {
    "ack of a claim, no group": (AckGroup("t", "none", 1, claim_id="claim_1"), GroupNotFound, "consume, ack or reset"),
    "nack, not in this partition": (NackGroup("parts", "g", 1, partition=1), GroupNotFound, "in partition 1"),
    "ack, bad group": (AckGroup("t", "-x", 1), InvalidRequest, "group"),
    "nack, no group": (NackGroup("t", "none", 1), GroupNotFound, "has no position in topic"),
    "pause, no group": (PauseGroup("t", "none"), GroupNotFound, 'has no group "none"'),
    "consume, negative time": (Consume("t", "g", visibility_ms=-1), InvalidRequest, "visibility_ms"),
    "extend, negative time": (ExtendGroup("t", "g", 1, visibility_ms=-1), InvalidRequest, "visibility_ms"),
    "consume, long consumer": (Consume("t", "g", consumer="c" * 2000), InvalidRequest, "at most 1024 bytes"),
    "ack, long consumer": (AckGroup("t", "g", 1, consumer="c" * 2000), InvalidRequest, "at most 1024 bytes"),
    "consume, from before the beginning": (Consume("t", "new", start=at_seq(-1)), InvalidRequest, "seq must not be"),
    "reset, to before the beginning": (ResetGroup("t", "g", at_ts(-1)), InvalidRequest, "ts must not be negative"),
    "ack, negative": (AckGroup("t", "g", -1), InvalidRequest, "upto_seq must not be negative"),
    "ack, from behind the end": (AckGroup("t", "g", 1, from_seq=2), InvalidRequest, "from_seq must not be behind"),
    "nack, from before the beginning": (NackGroup("t", "g", 1, from_seq=-1), InvalidRequest, "from_seq"),
    "nack, of whom": (NackGroup("t", "g"), InvalidRequest, "upto_seq, consumer or claim_id"),
    "nack, negative delay": (NackGroup("t", "g", 1, delay_ms=-1), InvalidRequest, "delay_ms must not be negative"),
}


@pytest.fixture
def rig() -> GroupRig:
    rig = GroupRig()
    rig.configure("t", visibility_ms=100)
    rig.configure("parts", partitions=2)
    rig.write_numbers(1, 2, 3)
    for topic in ("t", "parts"):
        rig.step(Consume(topic, "g", limit=1, consumer="a"))
    return rig


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_command_says_why_and_changes_nothing(rig: GroupRig, name: str) -> None:
    command, kind, message = REFUSED[name]
    before = frozen(rig.machine)
    with pytest.raises(kind, match=message) as refused:
        rig.step(command)
    assert frozen(rig.machine) == before
    assert kind is GroupNotFound or refused.value.detail["expected"]


def test_only_so_many_groups_read_a_log(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUPS_MAX", 2)
    rig.step(ResetGroup("t", "second", at_seq(1)))
    before = frozen(rig.machine)
    for command in (Consume("t", "third"), ResetGroup("t", "third", at_seq(1))):
        with pytest.raises(Throttled, match="drop one that is not needed") as refused:
            rig.step(command)
        assert (refused.value.detail["limit"], refused.value.detail["max"]) == ("groups", 2)
    assert frozen(rig.machine) == before
    rig.step(DropGroup("t", "second"))
    rig.step(ResetGroup("t", "third", at_seq(1)))


@pytest.mark.parametrize(
    ("upto", "since", "committed", "acked"), [(2, 0, 2, 2), (99, 0, 3, 3), (0, 0, 0, 0), (3, 3, 0, 1)]
)
def test_ack_of_an_unknown_group_creates_it_and_commits(
    rig: GroupRig, upto: int, since: int, committed: int, acked: int
) -> None:
    outcome = rig.step(AckGroup("t", "new", upto, from_seq=since, consumer="a"))
    reply = outcome.reply
    assert isinstance(reply, AckedGroup)
    assert (reply.committed_seq, reply.acked, reply.head_seq) == (committed, acked, 3)
    assert outcome.must_sync and outcome.group_created, "where a group begins is safe before it is answered"
    replayed = rig.replayed()
    groups_now = [each.group("new") for each in (rig, replayed)]
    assert [
        (group.start_seq, group.committed, group.next_seq, group.updated_ms)
        for group in groups_now
        if group is not None
    ] == [(1, committed, min(upto, 3) + 1, rig.now_ms)] * 2
    for each in (rig, replayed):
        batch = each.step(Consume("t", "new", limit=1)).reply
        assert isinstance(batch, GroupBatch)
        assert batch.first_seq == (0 if committed == 3 else committed + 1)


def test_ack_of_an_unknown_group_begins_with_the_earliest_record(rig: GroupRig) -> None:
    rig.delete("t", 2, None)
    outcome = rig.step(AckGroup("t", "new", 2))
    group = rig.group("new")
    assert group is not None and (group.start_seq, group.committed) == (2, 2)
    assert isinstance(outcome.reply, AckedGroup) and outcome.reply.acked == 1
    again = rig.step(AckGroup("t", "new", 3))
    assert not again.group_created and isinstance(again.reply, AckedGroup) and again.reply.committed_seq == 3


def test_ack_creates_no_group_beyond_the_maximum(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUPS_MAX", 1)
    before = frozen(rig.machine)
    with pytest.raises(Throttled, match="drop one that is not needed"):
        rig.step(AckGroup("t", "new", 1))
    assert frozen(rig.machine) == before


def test_only_so_many_ranges_are_out_at_once(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "GROUP_RANGES_MAX", 2)
    rig.step(Consume("t", "g", limit=1, consumer="b"))
    before = frozen(rig.machine)
    with pytest.raises(Throttled, match="has 2 ranges out") as refused:
        rig.step(Consume("t", "g", limit=1))
    assert refused.value.detail["limit"] == "group_ranges" and frozen(rig.machine) == before
    rig.step(AckGroup("t", "g", 1, consumer="a"))
    batch = rig.step(Consume("t", "g", limit=1)).reply
    assert isinstance(batch, GroupBatch) and batch.first_seq == 3


def test_parts_are_not_cut_into_ever_more_of_them(rig: GroupRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groupsettle, "GROUP_RANGES_MAX", 0)
    group = rig.group()
    assert group is not None
    before = frozen(list(group.ranges)), len(rig.facts)
    for command in (AckGroup("t", "g", 1, from_seq=1), NackGroup("t", "g", 1, from_seq=1)):
        with pytest.raises(Throttled, match="ack without from_seq"):
            rig.step(command)
    assert (frozen(list(group.ranges)), len(rig.facts)) == before
    rig.step(AckGroup("t", "g", 1))
    assert group.committed == 1


def test_a_group_begins_where_a_time_did() -> None:
    rig = GroupRig()
    first_ms = rig.now_ms
    for number in range(3):
        rig.write_numbers(number)
        rig.now_ms += 10
    seen = {}
    for ts in (0, first_ms + 1, first_ms + 10, first_ms + 20, first_ms + 21):
        rig.step(ResetGroup("t", "g", at_ts(ts)))
        batch = rig.step(Consume("t", "g")).reply
        assert isinstance(batch, GroupBatch)
        seen[ts - first_ms if ts else 0] = [record.seq for record in batch.records]
    assert seen == {0: [1, 2, 3], 1: [2, 3], 10: [2, 3], 20: [3], 21: []}


def test_a_paused_group_rests_in_all_partitions() -> None:
    rig = GroupRig()
    rig.configure("t", partitions=2)
    for partition in range(2):
        rig.write({"data": 1}, topic="t", partition=partition)
        rig.step(ResetGroup("t", "g", at_seq(1), partition))
    assert rig.step(PauseGroup("t", "g")).reply == PausedGroup(topic="t", group="g", paused=True)
    for each in (rig, rig.replayed()):
        for partition in range(2):
            batch = each.step(Consume("t", "g", partition)).reply
            assert isinstance(batch, GroupBatch) and batch.paused and not batch.count
    rig.step(PauseGroup("t", "g", False))
    batch = rig.step(Consume("t", "g", 1)).reply
    assert isinstance(batch, GroupBatch) and batch.count == 1


def test_facts_of_a_group_that_is_not_known_make_none() -> None:
    """A repair may have lost how it began."""
    rig = GroupRig()
    rig.write_numbers(1)
    log = rig.log()
    for fact in (GroupAcked("lost", [(1, 1)], rig.now_ms), GroupPaused("lost", True), GroupDropped("lost")):
        assert log.groups.apply(fact, log, rig.now_ms) == 0
    assert len(log.groups) == 0 and not log.holds.groups
