from __future__ import annotations

from tests.engine.queuerig import QueueRig, Worker
from topics.core.commands import Claimer
from topics.engine.line import FOREVER_MS, Line, ticket_waiter


def test_a_line_is_in_the_order_in_which_people_came() -> None:
    line = Line("q", 0, 1)
    first, _ = ticket_waiter(Claimer("a"), 10)
    second, _ = ticket_waiter(Claimer("b"), 10)
    line.join(first)
    line.join(second)
    assert list(line.waiters) == [first, second]
    assert line.leave(first) and not line.leave(first)
    assert list(line.waiters) == [second] and not line.is_empty
    assert line.leave(second) and line.is_empty


def test_the_place_of_a_stream_is_given_up_with_it() -> None:
    line = Line("q", 0, 1)
    place, _ = ticket_waiter(Claimer("a", connection=4), FOREVER_MS)
    line.join(place)
    line.places[4] = place
    line.leave(place)
    assert line.places == {}


def test_times_to_look_again_do_not_become_more_and_more() -> None:
    """At each, the end of the window and the next delay are planned: what was planned before stands for nothing."""
    rig = QueueRig()
    rig.queue(claim_jitter_ms=100, lease_ms=60_000)
    Worker(rig, "w", 1)
    for window in range(10):
        for number in range(9):
            rig.delay(number, 10 * (number + 1))
        rig.ask("a", 9)
        for _ in range(20):
            rig.tick(10)
        assert len(rig.engine.claiming._deadlines) <= 16, f"after {window} windows"
