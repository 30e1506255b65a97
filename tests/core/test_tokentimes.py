from __future__ import annotations

from topics.core.tokentimes import KEPT_MAX, PRECISION, STEP_MS, TokenTimes


def test_a_token_is_as_old_as_the_second_it_was_given_in() -> None:
    times = TokenTimes()
    assert times.since_ms(1) is None
    for token, now_ms in ((5, 1000), (6, 1999), (7, 2000), (20, 9000)):
        times.note(token, now_ms)
    assert [times.since_ms(token) for token in (4, 5, 6, 7, 19, 20, 99)] == [None, 1000, 1000, 2000, 2000, 9000, 9000]


def test_of_many_the_old_ones_are_told_with_less_precision() -> None:
    times = TokenTimes()
    last = 4 * KEPT_MAX
    for second in range(last + 1):
        times.note(second, second * STEP_MS)
    for second in range(last + 1):
        since_ms = times.since_ms(second)
        assert since_ms is not None
        assert since_ms <= second * STEP_MS, "none is told as younger than it is"
        if second >= last - PRECISION:
            assert since_ms == second * STEP_MS
        assert (second * STEP_MS - since_ms - STEP_MS) * PRECISION <= last * STEP_MS - since_ms
