"""A process without pandas: Arrow and DuckDB load it where it is installed, which takes longer than all the rest, and a
query process needs nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("a query process does without pandas", name=name)
        return None


def do_without_pandas() -> None:
    sys.meta_path.insert(0, _WithoutPandas())
