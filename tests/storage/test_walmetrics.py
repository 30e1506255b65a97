from __future__ import annotations

from topics.storage.walmetrics import Histogram


def test_a_value_counts_under_the_first_bound_that_is_not_below_it() -> None:
    histogram = Histogram.of((10, 20))
    for value in (0, 10, 11, 20, 21, 1000):
        histogram.add(value)
    assert histogram.counts == [2, 2, 2]
    assert histogram.total == 1062
