"""Watch sessions: who may read them, where they go on, and when they are let go."""

from __future__ import annotations

import pytest

from topics.core.view import View
from topics.errors import InvalidRequest, NotFound, Throttled, Unauthorized
from topics.server import sessions as module
from topics.server.checkpoints import Checkpoints
from topics.server.principal import ALL_SCOPES, EVERYBODY, Principal
from topics.server.sessions import Position, Session, Sessions
from topics.testing import SimClock
from topics.wire.streamcursor import Checkpoint, Positions

VIEW = View(256, 1 << 18)
ONE, OTHER = Principal("key-1", ALL_SCOPES), Principal("key-2", ALL_SCOPES)


def position(key: str, cursor: int, epoch: int = 1) -> Position:
    return Position(
        key=key,
        topic=key,
        partition=0,
        view=VIEW,
        cursor=cursor,
        epoch=epoch,
        start_seq=0,
        start_epoch=epoch,
    )


def session(**cursors: int) -> Session:
    made = Session(ONE, 15_000)
    for key, cursor in cursors.items():
        made.add(position(key, cursor))
    return made


def places(found: Session) -> dict[str, tuple[int, int]]:
    return {key: (each.cursor, each.epoch) for key, each in found.positions.items()}


class Reader:
    def __init__(self) -> None:
        self.superseded = False

    def supersede(self) -> None:
        self.superseded = True

    def settle(self) -> None: ...


# ---- going back


def test_an_id_leads_back_and_never_forward() -> None:
    found = session(a=5, b=5)
    found.rewind(Positions({"a": 3, "b": 9, "stranger": 1}))
    assert places(found) == {"a": (3, 1), "b": (5, 1)}


def test_what_an_id_does_not_name_has_come_later() -> None:
    found = session(a=5, b=5)
    found.rewind(Positions({"a": 5}))
    assert places(found) == {"a": (5, 1), "b": (0, 1)}


def test_an_id_of_an_earlier_life_leads_back_to_it() -> None:
    found = session(a=100)
    found.positions["a"].cursor, found.positions["a"].epoch = 3, 7
    assert found.epochs([("a", 7)]) == {"a": 7} and found.epochs([("a", 1)]) == {}
    found.rewind(Positions({"a": 100}, {"a": 7}))
    assert places(found) == {"a": (3, 7)}
    found.rewind(Positions({"a": 2}, {"a": 7}))
    assert places(found) == {"a": (2, 7)}
    found.rewind(Positions({"a": 100}))
    assert places(found) == {"a": (100, 1)}


def test_who_was_not_told_of_the_end_of_a_topic_is_told_again() -> None:
    found = session(a=5, b=5)
    found.end("a")
    found.rewind(Positions({"b": 5}))
    assert places(found) == {"b": (5, 1)}
    found.rewind(Positions({"a": 4, "b": 5}))
    assert places(found) == {"a": (4, 1), "b": (5, 1)} and not found.ended


def test_what_has_ended_is_remembered_within_bounds() -> None:
    found = session()
    for number in range(module.ENDED_MAX + 5):
        found.add(position(f"t{number}", 1))
        found.end(f"t{number}")
    assert len(found.ended) == len(found.first_epochs) == module.ENDED_MAX


def test_a_checkpoint_leads_back() -> None:
    found = session(a=0, b=0)
    found.checkpoints = Checkpoints({"a": (0, 1), "b": (0, 1)})
    for key, seq in (("a", 1), ("b", 1), ("a", 2)):
        found.checkpoints.advance(key, (seq, 1))
        found.positions[key].cursor = seq
    assert found.positions_at(Checkpoint(found.name, 1)).seqs == {"a": 1, "b": 0}
    assert places(found) == {"a": (2, 1), "b": (1, 1)}, "looking is not going"
    found.rewind(Checkpoint(found.name, 2))
    assert places(found) == {"a": (1, 1), "b": (1, 1)}
    with pytest.raises(InvalidRequest, match="another session"):
        found.rewind(Checkpoint("somebody", 1))


def test_a_checkpoint_that_is_too_old_leads_back_to_the_beginning() -> None:
    found = session(a=9, b=9)
    found.checkpoints = Checkpoints({})
    found.rewind(Checkpoint(found.name, 5))
    assert places(found) == {"a": (0, 1), "b": (0, 1)}


def test_a_life_that_is_still_to_come_does_not_lead_forward() -> None:
    found = session(a=5)
    found.rewind(Positions({"a": 2}, {"a": 9}))
    assert places(found) == {"a": (5, 1)}


def test_what_is_forgotten_of_the_ended_is_no_place_to_go_back_to() -> None:
    found = session(a=0)
    found.checkpoints = Checkpoints({"a": (0, 1)})
    for number in range(module.ENDED_MAX + 1):
        found.add(position(f"t{number}", 1))
        found.checkpoints.join(f"t{number}", (0, 1))
        found.checkpoints.advance(f"t{number}", (1, 1))
        found.end(f"t{number}")
    found.checkpoints.advance("a", (4, 1))
    found.positions["a"].cursor = 4
    assert "t0" not in found.checkpoints._last and "t1" in found.checkpoints._last
    found.rewind(Checkpoint(found.name, 0))
    assert places(found)["a"] == (0, 1) and "t0" not in found.positions
    assert len(found.positions) == module.ENDED_MAX + 1


def test_a_stream_that_is_open_says_first_how_far_it_has_come() -> None:
    found = session(a=1)

    class Ahead(Reader):
        def settle(self) -> None:
            found.positions["a"].cursor = 7

    found.stream = Ahead()
    assert found.positions_at(Checkpoint(found.name, 0)) == Positions({"a": 7}, {"a": 1}), "it has no numbers yet"


# ---- who may, how many, how long


def test_a_session_is_found_by_its_wid_and_opened_by_its_key() -> None:
    sessions = Sessions(SimClock().ticks_ns, 1000, 0)
    made = session()
    sessions.add(made)
    assert sessions.find(made.wid, ONE) is made
    for stranger in (OTHER, EVERYBODY):
        with pytest.raises(Unauthorized):
            sessions.find(made.wid, stranger)
    with pytest.raises(NotFound):
        sessions.find(made.wid + "x", ONE)
    assert sessions.named(made.name, ONE) is made
    with pytest.raises(InvalidRequest):
        sessions.named(made.name, OTHER)
    assert made.wid != session().wid


def test_who_is_idle_for_too_long_is_let_go_and_who_is_read_is_not() -> None:
    clock = SimClock()
    sessions = Sessions(clock.ticks_ns, 1000, 3)
    read, idle, later = session(), session(), session()
    reader = Reader()
    for each in (read, idle):
        sessions.add(each)
    sessions.take(read, reader)
    clock.advance(999)
    sessions.add(later)
    with pytest.raises(Throttled) as full:
        sessions.check_room()
    assert full.value.detail == {"limit": "max_watch_sessions", "max": 3}
    clock.advance(1)
    sessions.check_room()
    assert len(sessions) == 2
    with pytest.raises(NotFound):
        sessions.find(idle.wid, ONE)
    clock.advance(100_000)
    assert sessions.find(read.wid, ONE) is read
    sessions.leave(read, reader)
    clock.advance(999)
    assert sessions.find(read.wid, ONE) is read, "from the end of its stream on"
    clock.advance(1)
    with pytest.raises(NotFound):
        sessions.find(read.wid, ONE)
    assert len(sessions) == 0


def test_a_second_reader_takes_over() -> None:
    sessions = Sessions(SimClock().ticks_ns, 1000, 0)
    made = session()
    sessions.add(made)
    first, second = Reader(), Reader()
    sessions.take(made, first)
    sessions.take(made, second)
    assert first.superseded and not second.superseded
    sessions.leave(made, first)
    assert made.stream is second, "the end of the first one is no news"
