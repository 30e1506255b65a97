"""What is said of a report of coverage."""

from __future__ import annotations

import ast
from typing import Any

from proof.coverage import headings, problems, read
from proof.gaps import MODULE, Gap, page, reasons, without_reason
from proof.tree import ROOT

Missing = tuple[list[int], list[tuple[int, int]]]


def about(lines: int, branches: int, **functions: Missing) -> dict[str, Any]:
    parts = {name: {"missing_lines": rows, "missing_branches": arcs} for name, (rows, arcs) in functions.items()}
    summary = {
        "num_statements": lines,
        "covered_lines": lines - sum(len(rows) for rows, _ in functions.values()),
        "num_branches": branches,
        "covered_branches": branches - sum(len(arcs) for _, arcs in functions.values()),
    }
    return {"summary": summary, "functions": {"whole": {"missing_lines": [], "missing_branches": []}} | parts}


REPORT = {
    "files": {
        "topics/core/log.py": about(10, 4),
        "topics/sql/names.py": about(10, 10, quoted=([3, 4, 5, 9], [(2, 3), (8, -1)])),
        "topics/sql/tokens.py": about(10, 0),
        "topics/errors.py": about(5, 0, **{"": ([5], [])}),
    }
}
QUOTED = Gap("sql/names.py", "quoted", ("3-5", "9", "2->3", "8->the end"))
LOOSE = Gap("errors.py", MODULE, ("5",))


def test_each_room_is_counted_with_its_gaps() -> None:
    rooms = read(REPORT)
    assert {name: (room.branch_percent, round(room.percent, 1)) for name, room in rooms.items()} == {
        "core": (100.0, 100.0),
        "sql": (80.0, 80.0),
        "topics": (100.0, 80.0),
    }
    assert [rooms[name].gaps for name in ("core", "sql", "topics")] == [[], [QUOTED], [LOOSE]]
    assert [rooms["sql"].is_enough(goal) for goal in (80, 81)] == [True, False]
    assert not rooms["topics"].is_enough(81), "all branches are not enough"


def test_the_page_has_what_is_not_reached_and_why() -> None:
    text = "\n".join(page(headings(read(REPORT)), {"sql/names.py": {"quoted": "Nobody quotes."}}))
    assert "## core" not in text and "sql/tokens.py" not in text
    assert (
        "## sql: 80.0 % of branches, 80.0 % in all (goal 95 %)\n\n"
        "- `sql/names.py`, `quoted` (3-5, 9, 2->3, 8->the end): Nobody quotes." in text
    )
    assert "- `errors.py`, `the module` (5): **no reason is given**" in text


def test_a_reason_is_for_one_function() -> None:
    given = {"sql/names.py": {"quoted": "Nobody quotes.", MODULE: "Nobody imports it."}}
    assert without_reason([QUOTED, LOOSE], given) == [LOOSE]


def test_a_room_below_its_goal_and_a_gap_without_a_reason_are_problems() -> None:
    assert list(problems(read(REPORT), {"sql/names.py": {"quoted": "Nobody quotes."}})) == [
        "sql is below its goal of 95 %",
        "topics is below its goal of 95 %",
        "docs/proof/reasons.toml does not say why errors.py, the module, is not reached whole",
    ]
    assert not list(problems(read({"files": {"topics/core/log.py": about(10, 4)}}), {}))


def test_every_reason_is_of_a_function_that_is_there() -> None:
    for path, functions in reasons().items():
        known = {MODULE, *names(ast.parse((ROOT / "topics" / path).read_text()))}
        assert set(functions) <= known, path
        assert all(why.endswith(".") for why in functions.values()), path


def names(tree: ast.AST, within: str = "") -> list[str]:
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found += [f"{within}{node.name}", *names(node, f"{within}{node.name}.")]
        else:
            found += names(node, within)
    return found
