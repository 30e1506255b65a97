from __future__ import annotations

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
