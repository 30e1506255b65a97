"""The part of the simulator that damages and repairs: what it does to a disk, and what a report lets pass."""

from __future__ import annotations

import random

from topics.engine.findings import Doubt, FsckReport, Kept, Lost, MayBeBack
from topics.engine.salvage import TOPICS_MISSING
from topics.testing.checkers.events import Fault, History, Violation
from topics.testing.fakedisk import FakeDisk
from topics.testing.sim.damage import damage
from topics.testing.sim.machine import SETTINGS
from topics.testing.sim.plan import LETTERS, QUEUES
from topics.testing.sim.repaired import cut, is_told
from topics.testing.sim.world import Copy, furnished


def report(*may_be_back: MayBeBack, lost: tuple[Lost, ...] = ()) -> FsckReport:
    return FsckReport("/data", may_be_back=list(may_be_back), lost=list(lost))


def test_a_repair_that_brings_records_back_is_refused() -> None:
    back = Violation("log.back", "fast#0: record 7 at seq 5 was deleted and is there")
    done = Violation("lease.done", "jobs#0: 5 was acked and was handed out again")
    for violation, topic in ((back, "fast"), (done, "jobs")):
        assert not is_told(report(), violation)
        assert not is_told(report(MayBeBack("other", 0, Doubt.RECORDS, 1, 9)), violation)
        assert not is_told(report(MayBeBack(topic, 0, Doubt.RECORDS, 6, 9)), violation), "of other seqs"
        assert not is_told(report(MayBeBack(topic, 0, Doubt.PROGRESS, 1, 9)), violation), "of another kind"
        assert is_told(report(MayBeBack(topic, 0, Doubt.RECORDS, 1, 9)), violation)


def test_a_repair_that_loses_records_has_to_tell() -> None:
    lost = Violation("log.lost", "safe#0: record 7 at seq 5 was answered and is told lost ((5, 5, 'damage'))")
    assert not is_told(report(), lost)
    assert is_told(report(lost=(Lost("safe", 0, 5, 5),)), lost)
    silent = Violation("log.missing", "safe#0: record 7 at seq 5 was answered, and is silently gone")
    assert not is_told(report(lost=(Lost("safe", 0, 5, 5),)), silent), "no report makes up for silence"


def test_missing_topics_are_told_by_the_note_and_known_ones_are_not() -> None:
    lost = Violation("log.missing", "fast#0: record 7 at seq 5 was answered, and is silently gone")
    noted = report()
    noted.notes = [TOPICS_MISSING]
    assert is_told(noted, lost), "the topic itself is missing"
    noted.kept = [Kept("fast", 0, 3, 1, 4)]
    assert not is_told(noted, lost), "the topic is there, and has no dead letters that could be missing"


def test_jobs_may_have_died_in_a_topic_of_letters_that_is_lost() -> None:
    lost = Violation("lease.lost", "doomed#0: job 122 was never done and is in no place")
    assert not is_told(report(lost=(Lost("jobs-dead", 0, 4, 9),)), lost)
    assert is_told(report(lost=(Lost("doomed-dead", 0, 4, 9),)), lost)


def test_letters_are_those_that_the_topics_have() -> None:
    named = {name: config["dead_letter"] for name, config in QUEUES.items() if "dead_letter" in config}
    assert {**named, "heap": "heap.dlq"} == LETTERS


def test_copy_of_a_process_that_ends_may_lack_leases() -> None:
    disk: FakeDisk = furnished().disk.fork()
    for stopped in (False, True):
        assert cut(History(), Copy(disk, 5, 9, stopped)).faults == [Fault(5, 9, stopped=stopped)]


def test_a_topic_that_may_be_missing_excuses_itself_and_its_jobs_alone() -> None:
    """The note names no topic: one that the repair kept is not missing, and one that never was is no excuse."""
    missing = FsckReport("/data", notes=[TOPICS_MISSING], kept=[Kept(name, 0, 1, 1, 1) for name in ("safe", "chores")])
    silent = Violation("log.missing", "safe#0: record 7 at seq 5 was answered, and is silently gone")
    lost = Violation("lease.lost", "chores#0: job 7 was never done and is in no place")
    gone = Violation("log.missing", "fast#0: record 7 at seq 5 was answered, and is silently gone")
    assert not is_told(missing, silent) and not is_told(missing, lost)
    assert is_told(missing, gone)


def test_dead_letters_that_are_in_doubt_excuse_lost_jobs_and_no_records() -> None:
    doubt = MayBeBack("doomed-dead", 0, Doubt.TOPIC, 0, 0)
    assert is_told(report(doubt), Violation("lease.lost", "doomed#0: job 7 was never done and is in no place"))
    assert not is_told(report(doubt), Violation("log.missing", "doomed#0: record 7 at seq 5 was answered"))
    assert not is_told(report(doubt), Violation("lease.lost", "jobs#0: job 7 was never done and is in no place"))


def test_damage_changes_one_or_two_files_and_names_them() -> None:
    kinds = set()
    for seed in range(40):
        disk: FakeDisk = furnished().disk.fork()
        before = disk.contents()
        done = damage(disk, SETTINGS.data_dir, random.Random(seed))
        after = disk.contents()
        changed = {path for path in before if after.get(path) != before[path]}
        assert changed <= {told.rpartition(" of ")[2] for told in done}
        kinds |= {told.partition(" ")[0] for told in done}
    assert kinds >= {"bit", "zeros"}
