"""What is said of a report of coverage."""

from __future__ import annotations

from typing import Any

from proof.coverage import gaps, read


def about(lines: int, branches: int, missing: list[int], arcs: list[tuple[int, int]]) -> dict[str, Any]:
    summary = {
        "num_statements": lines,
        "covered_lines": lines - len(missing),
        "num_branches": branches,
        "covered_branches": branches - len(arcs),
    }
    return {"summary": summary, "missing_lines": missing, "missing_branches": arcs}


REPORT = {
    "files": {
        "topics/core/log.py": about(10, 4, [], []),
        "topics/sql/names.py": about(10, 10, [3, 4, 5, 9], [(2, 3), (8, -1)]),
        "topics/sql/tokens.py": about(10, 0, [], []),
        "topics/errors.py": about(5, 0, [5], []),
    }
}


def test_each_room_is_counted_with_its_gaps() -> None:
    rooms = read(REPORT)
    assert {name: (room.branch_percent, round(room.percent, 1)) for name, room in rooms.items()} == {
        "core": (100.0, 100.0),
        "sql": (80.0, 80.0),
        "topics": (100.0, 80.0),
    }
    assert rooms["sql"].gaps == {"sql/names.py": ["3-5", "9", "2->3", "8->the end"]}


def test_the_list_has_what_is_not_reached() -> None:
    text = "\n".join(gaps(read(REPORT)))
    assert "## core" not in text and "sql/tokens.py" not in text
    assert "## sql: 80.0 % of branches, 80.0 % in all (goal 95 %)\n\n- `sql/names.py`: 3-5, 9, 2->3, 8->the end" in text
