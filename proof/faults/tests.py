"""The tests there are, found by reading the test files and running nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from proof.tree import ROOT


def exists(test: str, root: Path = ROOT) -> bool:
    """Whether `tests/…/test_file.py::test_name`, perhaps with the id of a case, names a test."""
    path, _, name = test.partition("::")
    file = root / path
    return file.is_file() and name.partition("[")[0] in _names(file)


@cache
def _names(file: Path) -> frozenset[str]:
    return frozenset(_tests_in(ast.parse(file.read_text()), ""))


def _tests_in(node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[str]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _tests_in(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and child.name.startswith("test_"):
            yield f"{prefix}{child.name}"
