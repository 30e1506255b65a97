from __future__ import annotations

from topics.storage.commitlog import ALL_POSITIONS, Covered


def test_what_a_snapshot_covers_of_known_removed_and_new_logs() -> None:
    covered = Covered({1: 10, 7: 3}, next_log_id=5)
    assert [covered.upto(log_id) for log_id in (1, 2, 5, 7)] == [10, ALL_POSITIONS, 0, 3]
    assert Covered().upto(0) == 0
