"""Batches that overlap: each is seen in all of its logs at one moment, in whatever order the disks sync them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.rig import SMALL, Rig
from topics.core.batch import Batch
from topics.core.commands import Publish
from topics.core.log import Log
from topics.engine.recovery import recover
from topics.engine.ticket import Ticket
from topics.engine.visibility import Pending, Visibility
from topics.errors import LogStopped
from topics.storage.wal import Wal
from topics.testing import CRASH_MODES, CrashMode, SimClock

TOPICS = ("slow", "between", "late", "quick")
"""In the shards 1, 0, 1, 0; the batches are decided in shard 0."""
EMPTY: dict[str, list[Any]] = {name: [] for name in TOPICS}
SHOWN = {"slow": ["x"], "between": ["x", "y"], "late": [], "quick": ["y"]}


def overlapping() -> tuple[Rig, Ticket, Ticket]:
    """The older batch is in a slow shard and in `between`, the younger one behind it in `between` and in `quick`."""
    rig = Rig()
    for name in TOPICS:
        rig.configure(name, durability="fsync")
    for stage, topic in (("x1", "slow"), ("x2", "between"), ("y1", "between"), ("y2", "quick"), ("z1", "quick")):
        rig.stage(stage, topic, stage[0])
    older = rig.engine.submit(Publish(("x1", "x2"), "older", 1))
    rounds(rig, 0)
    younger = rig.engine.submit(Publish(("y1", "y2"), "younger", 1))
    return rig, older, younger


def rounds(rig: Rig, shard: int, count: int = 4) -> None:
    """Let one shard write and sync, as often as a batch has steps."""
    for _ in range(count):
        rig.engine.flush()
        rig.driver.wal.work(shard)


def contents(rig: Rig) -> dict[str, list[Any]]:
    return {name: rig.data(name) for name in TOPICS}


def test_younger_batch_is_shown_nowhere_before_the_older_one() -> None:
    rig, older, younger = overlapping()
    rounds(rig, 0)
    assert contents(rig) == EMPTY and not older.done and not younger.done
    seen: list[dict[str, list[Any]]] = []
    rig.engine.on_visible = lambda log: seen.append(contents(rig))
    rounds(rig, 1)
    assert older.done and younger.done and contents(rig) == SHOWN
    assert seen == [SHOWN] * 3, "whoever is told of one log finds all of both batches in every log"
    assert rig.engine.machine.batches.stages.keys() == {"z1"} and not any(rig.log(name).hidden_from for name in TOPICS)


def test_batch_in_other_logs_does_not_wait() -> None:
    rig = Rig()
    for name in TOPICS:
        rig.configure(name, durability="fsync")
    for stage, topic in (("x1", "slow"), ("x2", "between"), ("z1", "quick")):
        rig.stage(stage, topic, stage[0])
    older = rig.engine.submit(Publish(("x1", "x2"), "older", 1))
    rounds(rig, 0)
    elsewhere = rig.engine.submit(Publish(("z1",), "elsewhere", 1))
    rounds(rig, 0)
    assert elsewhere.done and not older.done and rig.data("quick") == ["z"] and rig.data("between") == []


def test_batch_is_answered_when_it_is_shown() -> None:
    rig, older, younger = overlapping()
    answered: list[dict[str, list[Any]]] = []
    for ticket in (older, younger):
        ticket.on_done(lambda done: answered.append(contents(rig)))
    rounds(rig, 0)
    rig.work()
    assert answered == [SHOWN, SHOWN]


def test_batch_fails_with_the_one_that_it_waits_for() -> None:
    rig, older, younger = overlapping()
    rounds(rig, 0)
    rig.fs.fail("sync", path="*/wal/1-*", always=True)
    rig.work()
    behind = rig.engine.submit(Publish(("y1", "y2"), "younger", 1))
    later = rig.engine.submit(Publish(("z1",), "later", 1))
    rig.work()
    for ticket in (older, younger, behind, later):
        with pytest.raises(LogStopped):
            ticket.result()
    assert contents(rig) == EMPTY
    rig.kill()
    rig.work()
    assert contents(rig) == {**SHOWN, "quick": ["y", "z"]}


@pytest.mark.parametrize("mode", [None, *CRASH_MODES])
def test_crash_at_any_point_shows_each_batch_whole(mode: CrashMode | None) -> None:
    rig, older, younger = overlapping()
    outcomes = set()

    def look(call: object) -> None:
        fork = rig.disk.fork()
        disk = fork.kill() if mode is None else fork.crash(mode)
        engine = recover(disk, "/data", SimClock(rig.clock.now_ms()), lambda: 1, SMALL, None)
        assert isinstance(engine.wal, Wal)
        for _ in range(20):
            found = {name: engine.read(name).count for name in TOPICS}
            both = found["between"]
            assert (found["slow"], found["quick"]) in ([(0, 0)], [(1, 0), (0, 1)], [(1, 1)])[both], found
            engine.flush()
            engine.wal.work()
        outcomes.add(both)

    rig.fs.on_call = look
    rounds(rig, 0)
    rounds(rig, 1)
    assert older.done and younger.done
    look(None)
    assert {1, 2} <= outcomes <= {0, 1, 2}


def test_batches_in_front_of_each_other_are_shown_together() -> None:
    """As a recovery may leave them: each log got what it missed behind what it had."""
    shown: list[list[int]] = []
    visibility = Visibility(lambda logs: shown.append([log.log_id for log in logs]))
    left, right = Log(1, "left", 0, 1), Log(2, "right", 0, 2)
    one = visibility.hide(_batch("one"), [(left, 1, 1), (right, 2, 2)])
    other = visibility.hide(_batch("other"), [(left, 2, 2), (right, 1, 1)])
    assert (left.hidden_from, right.hidden_from) == (1, 1)
    assert visibility.settle(one) == ([], [])
    assert set(_names(visibility.settle(other)[0])) == {"one", "other"}
    assert [set(logs) for logs in shown] == [set(), {1, 2}] and left.hidden_from == 0 == right.hidden_from


def test_batch_within_another_one_is_shown_with_it() -> None:
    """A batch of several stages may have others between its parts of one log after a recovery."""
    log, elsewhere = Log(1, "t", 0, 1), Log(2, "u", 0, 2)
    visibility = Visibility(lambda logs: None)
    around = visibility.hide(_batch("around"), [(log, 1, 9)])
    within = visibility.hide(_batch("within"), [(log, 4, 5), (elsewhere, 1, 1)])
    assert visibility.settle(around) == ([], [])
    assert set(_names(visibility.settle(within)[0])) == {"around", "within"}


def test_long_chain_is_shown_in_one_go_from_its_front() -> None:
    """Each batch overlaps the one before; all but the first are durable."""
    logs = [Log(number, f"t{number}", 0, number) for number in range(1, 402)]
    visibility = Visibility(lambda logs: None)
    chain = [visibility.hide(_batch(f"{at}"), [(logs[at], 2, 2), (logs[at + 1], 1, 1)]) for at in range(len(logs) - 1)]
    for pending in reversed(chain[1:]):
        assert visibility.settle(pending) == ([], [])
    shown, failed = visibility.settle(chain[0])
    assert _names(shown) == [f"{at}" for at in range(400)] and failed == []


def _batch(name: str) -> Batch:
    return Batch(name, 1, [], 0)


def _names(shown: list[Pending]) -> list[str]:
    return [pending.batch.producer_id for pending in shown]
