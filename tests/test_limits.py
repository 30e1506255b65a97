from __future__ import annotations

import re
from pathlib import Path

from topics import limits
from topics.core import block


def test_every_bound_is_final_and_positive() -> None:
    source = Path(limits.__file__).read_text()
    names = re.findall(r"^([A-Z0-9_]+): Final", source, re.MULTILINE)
    assert set(names) == {name for name in vars(limits) if name.isupper()}
    assert all(isinstance(getattr(limits, name), int) for name in names)
    assert [name for name in names if getattr(limits, name) <= 0] == ["PRIORITY_MIN"]


def test_bounds_are_asserted_against_each_other_at_import() -> None:
    source = Path(limits.__file__).read_text()
    broken = source.replace("BODY_BYTES_MAX: Final = 1 * GIB", "BODY_BYTES_MAX: Final = 5 * GIB")
    assert broken != source
    try:
        exec(compile(broken, "limits", "exec"), {})
    except AssertionError as error:
        assert "fits one block" in str(error)
    else:
        raise AssertionError("a body larger than a block was not noticed")


def test_column_bytes_are_those_of_a_block() -> None:
    columns = re.findall(r"^\s+(?:40\s+)?\w+\s+u(\d+)\[count\]", block.__doc__ or "", re.MULTILINE)
    assert sum(int(bits) // 8 for bits in columns) == limits.BLOCK_RECORD_COLUMNS_BYTES_MAX
