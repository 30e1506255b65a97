"""The checkers of queues and heaps: what is fine, and for each rule a history that they must refuse."""

from __future__ import annotations

from tests.testing.checkers.histories import Making, grant, rules
from topics.testing.checkers import History
from topics.testing.checkers.heap import check_heap
from topics.testing.checkers.leases import check_leases


def broken(history: History) -> list[str]:
    return rules(check_leases, history)


def claimed_twice(again_at: int = 150, **promises: bool) -> Making:
    """A job that is handed out up to 200, and again."""
    made = Making(**promises)
    made.claim(grant(1, "a", 100, 200))
    made.claim(grant(1, "b", again_at, again_at + 100, attempts=2))
    return made


def test_a_job_that_runs_out_is_handed_out_again() -> None:
    assert broken(claimed_twice(again_at=201).history) == []


def test_two_who_have_the_same_job() -> None:
    assert broken(claimed_twice().history) == ["live"]
    assert broken(claimed_twice(again_at=200).history) == ["live"]


def test_a_job_that_may_have_been_given_back_may_go_to_others() -> None:
    for unknown in (False, True):
        made = Making()
        made.claim(grant(1, "a", 100, 200))
        made.settle("nack", 1, "a", unknown=unknown)
        made.claim(grant(1, "b", 150, 250, attempts=2))
        assert broken(made.history) == []


def test_an_extended_lease_lasts_longer() -> None:
    made = Making()
    made.claim(grant(1, "a", 100, 200))
    made.settle("extend", 1, "a", deadlines={1: 400})
    made.claim(grant(1, "b", 300, 400, attempts=2))
    assert broken(made.history) == ["live"]


def test_a_power_loss_forgets_leases_that_are_not_durable() -> None:
    for synced, power, expected in ((False, True, []), (True, True, ["live"]), (False, False, ["live"])):
        made = Making(leases_synced=synced)
        made.claim(grant(1, "a", 100, 200))
        made.die(power=power)
        made.claim(grant(1, "b", 150, 250, attempts=2))
        assert broken(made.history) == expected


def test_a_clock_that_is_set_back_while_the_server_is_down_does_not_change_what_came_first() -> None:
    for synced, expected in ((False, []), (True, ["live"])):
        made = Making(leases_synced=synced)
        made.claim(grant(1, "a", 100, 200, attempts=2))
        made.die(power=True)
        made.claim(grant(1, "b", 96, 196, attempts=2 + synced))
        assert broken(made.history) == expected
        made.settle("ack", 1, "a")
        assert broken(made.history) == sorted([*expected, "fence"])


def test_a_clean_stop_gives_back_the_leases_of_a_heap() -> None:
    for releases, expected in ((True, []), (False, ["count", "live"])):
        made = Making(stop_releases=releases)
        made.claim(grant(1, "a", 100, 200, attempts=0))
        made.die(power=False, stopped=True)
        made.claim(grant(1, "b", 150, 250, attempts=0))
        assert broken(made.history) == expected


def test_a_lease_id_that_is_used_twice() -> None:
    made = Making()
    made.claim(grant(1, "a", 100, 200))
    made.claim(grant(1, "a", 300, 400, attempts=2))
    assert broken(made.history) == ["id"]


def test_an_acked_job_that_comes_back() -> None:
    for verb in ("ack", "complete"):
        made = Making()
        made.claim(grant(1, "a", 100, 200))
        made.settle(verb, 1, "a")
        made.claim(grant(1, "b", 300, 400, attempts=2))
        assert broken(made.history) == ["done"]


def test_an_ack_may_be_undone_where_its_class_allows_it() -> None:
    made = Making(synced=False, leases_synced=False)
    made.claim(grant(1, "a", 100, 200))
    made.settle("ack", 1, "a")
    made.die(window_ms=1000)
    made.claim(grant(1, "b", 300, 400, attempts=2))
    assert broken(made.history) == []


def test_a_job_that_two_have_acked() -> None:
    made = Making()
    made.claim(grant(1, "a", 100, 200))
    second = made.claim(grant(1, "b", 300, 400, attempts=2))
    made.settle("ack", 1, "b")
    made.settle("ack", 1, "a")
    assert "done" in broken(made.history)
    assert second.ok


def test_an_ack_that_was_sent_twice_is_one() -> None:
    made = Making()
    made.claim(grant(1, "a", 100, 200))
    made.settle("ack", 1, "a")
    made.settle("ack", 1, "a")
    assert "done" not in broken(made.history)


def test_an_ack_that_comes_too_late_and_counts() -> None:
    made = claimed_twice(again_at=300)
    made.settle("ack", 1, "a")
    assert broken(made.history) == ["fence"]


def test_an_ack_that_comes_too_late_and_is_skipped() -> None:
    made = claimed_twice(again_at=300)
    made.settle("ack", 1, "a", skipped=[1])
    assert broken(made.history) == []


def test_deliveries_are_counted() -> None:
    made = Making()
    made.claim(grant(1, "a", 100, 200, attempts=1))
    made.claim(grant(1, "b", 300, 400, attempts=1))
    assert broken(made.history) == ["count"]


def test_a_job_that_comes_too_early() -> None:
    for at, expected in ((1499, ["early"]), (1500, [])):
        made = Making()
        made.write((1, 1), asked={"delays": {1: 500}})
        made.claim(grant(1, "a", at, at + 100, born_ms=1000))
        assert broken(made.history) == expected


def test_a_job_that_was_a_dead_letter_has_waited_already() -> None:
    for item, unknown, expected in ((2, False, []), (2, True, []), (1, False, ["early"])):
        made = Making()
        made.write((1, 1), asked={"delays": {1: 500}})
        made.call("redrive", {}, None if unknown else {})
        made.claim(grant(item, "a", 1100, 1200, born_ms=1000, id=1))
        assert broken(made.history) == expected, "the job itself waits, whatever is taken back"


def test_a_job_that_is_nowhere() -> None:
    made = Making()
    made.write((1, 1), (2, 2))
    made.claim(grant(1, "a", 100, 200))
    made.settle("ack", 1, "a")
    assert broken(made.history) == []
    assert broken(made.end()) == ["lost"]
    made.call("letters", {}, {"ids": [2]})
    assert broken(made.history) == []


def test_an_ack_of_which_nobody_knows_explains_a_job_that_is_gone() -> None:
    made = Making()
    made.write((1, 1))
    made.claim(grant(1, "a", 100, 200))
    made.settle("ack", 1, "a", unknown=True)
    assert broken(made.end()) == []


def test_a_job_that_was_acked_and_is_a_dead_letter() -> None:
    made = Making()
    made.write((1, 1))
    made.claim(grant(1, "a", 100, 200))
    made.settle("ack", 1, "a")
    made.call("letters", {}, {"ids": [1]})
    assert broken(made.end()) == ["both"]


# ---- heaps


def heap(*priorities: int, rank_max: int = 1, best_is_low: bool = True) -> Making:
    """A message of each priority: its id is its place, its item `m` and that."""
    made = Making(rank_max=rank_max, best_is_low=best_is_low)
    ids = list(range(len(priorities)))
    asked = {"ids": ids, "priorities": list(priorities)}
    made.call("enqueue", asked, {"messages": [f"m{number}" for number in ids]})
    return made


def pop(made: Making, number: int, at: int = 100, attempts: int = 0) -> None:
    made.claim(grant(f"m{number}", f"{number} at {at}", at, at + 100, attempts=attempts, id=number))


def ranks(made: Making) -> list[str]:
    return rules(check_heap, made.history)


def test_the_best_comes_first() -> None:
    made = heap(5, 1)
    pop(made, 1)
    pop(made, 0)
    assert ranks(made) == []


def test_a_heap_that_promises_no_order_may_have_any() -> None:
    made = heap(5, 1, rank_max=0)
    pop(made, 0)
    pop(made, 1)
    assert ranks(made) == []


def test_a_pop_that_leaves_a_better_one() -> None:
    made = heap(5, 1)
    pop(made, 0)
    pop(made, 1)
    assert ranks(made) == ["rank"]


def test_the_best_may_be_the_highest() -> None:
    made = heap(5, 1, best_is_low=False)
    pop(made, 0)
    pop(made, 1)
    assert ranks(made) == []


def test_a_bound_allows_for_some_that_are_better() -> None:
    for rank_max, expected in ((2, ["rank"]), (3, [])):
        made = heap(5, 1, 2, rank_max=rank_max)
        for number in (0, 1, 2):
            pop(made, number)
        assert ranks(made) == expected


def test_a_message_that_was_delivered_before_says_nothing() -> None:
    made = heap(5, 1)
    pop(made, 0)
    pop(made, 1, attempts=1)
    assert ranks(made) == []


def test_a_pop_that_nobody_knows_of_may_have_had_the_better_one() -> None:
    made = heap(5, 1)
    made.call("claim", {"max": 1})
    pop(made, 0)
    pop(made, 1)
    assert ranks(made) == []


def test_a_pop_while_the_disk_is_out_of_order_says_nothing() -> None:
    made = heap(5, 1)
    pop(made, 0)
    made.die(power=False, sick_from=3)
    pop(made, 1)
    assert ranks(made) == []
