"""Functions of Spark that reach beyond the rows they are given: into Java, or for whatever a text turns out to name.

What is stored for Spark to evaluate later, on the machine of whoever runs pipelines, has none of them.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

BEYOND: Final = frozenset({"identifier", "reflect", "try_reflect", "java_method"})


def beyond_rows(tree: exp.Expr) -> str | None:
    """The name of such a function in a tree, if there is one."""
    names = (node.name.lower() for node in tree.find_all(exp.Anonymous))
    return next((name for name in names if name in BEYOND), None)
