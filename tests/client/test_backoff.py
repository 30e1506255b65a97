from __future__ import annotations

import random

from topics.client.backoff import FIRST_MS, LONGEST_MS, Backoff


def test_waits_grow_differ_and_have_a_bound() -> None:
    backoff = Backoff(random.Random(1))
    waits = [backoff.next_s() * 1000 for _ in range(30)]
    assert waits[0] <= FIRST_MS
    assert max(waits) <= LONGEST_MS
    assert max(waits[10:]) > 10 * FIRST_MS
    assert len(set(waits)) == 30


def test_the_server_is_left_alone_for_as_long_as_it_asks() -> None:
    backoff = Backoff(random.Random(1))
    assert all(backoff.next_s(3000) >= 3 for _ in range(20))


def test_success_begins_anew() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(10):
        backoff.next_s()
    backoff.reset()
    assert backoff.next_s() * 1000 <= FIRST_MS
