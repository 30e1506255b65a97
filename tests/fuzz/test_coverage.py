"""What is made of a report of coverage: figures a room, and a list of what is not reached."""

from __future__ import annotations

from typing import Any

from proof.coverage import gaps, read


def about(lines: int, missing: list[int], branches: int = 0, missing_branches: list[list[int]] | None = None) -> Any:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": lines - len(missing),
            "num_branches": branches,
            "covered_branches": branches - len(missing_branches or []),
        },
        "missing_lines": missing,
        "missing_branches": missing_branches or [],
    }


REPORT = {
    "files": {
        "topics/core/log.py": about(10, [3, 4, 5, 9], 4, [[7, -1]]),
        "topics/core/read.py": about(10, []),
        "topics/wire/json.py": about(5, []),
        "topics/clock.py": about(4, [2]),
    }
}


def test_a_room_has_the_sums_of_its_files() -> None:
    rooms = read(REPORT)
    assert rooms.keys() == {"core", "wire", "topics"}
    assert rooms["core"].percent == 100 * (16 + 3) / (20 + 4) and rooms["core"].branch_percent == 75
    assert rooms["wire"].percent == 100 and not rooms["wire"].gaps


def test_the_gaps_are_listed() -> None:
    text = "\n".join(gaps(read(REPORT)))
    assert "- `core/log.py`: 3-5, 9, 7->the end" in text
    assert "- `clock.py`: 2" in text and "read.py" not in text
    assert "## core: 75.0 % of branches" in text
