"""How many digits numbers have, for many numbers at once."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

_POWERS: Final = np.array([10**exponent for exponent in range(1, 20)], np.uint64)


def digit_counts(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    return (np.searchsorted(_POWERS, values, side="right") + 1).astype(np.uint32)
