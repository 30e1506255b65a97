"""How many digits numbers have."""

from __future__ import annotations

import numpy as np

from topics.core.digits import digit_counts


def test_numbers_around_every_power_of_ten() -> None:
    numbers = sorted({10**exponent + more for exponent in range(20) for more in (-1, 0, 1)})
    assert digit_counts(np.array(numbers, np.uint64)).tolist() == [len(str(number)) for number in numbers]
