"""A query looked at from outside: which tables it reads, where their names stand, and what of them it can need.

DuckDB runs the text; it finds its tables under the names that `Spliced` puts there, and no others. So what sqlglot
and DuckDB may understand in different ways can lead to an error and never to a table that was not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from topics.sql.quoting import identifier

SYSTEM = "system"
TABLE_FUNCTIONS = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree"})
"""What may stand in place of a table: functions of their arguments alone."""

TABLES_MAX = 64

_CHANGES = (
    exp.DML,
    exp.DDL,
    exp.Command,
    exp.Copy,
    exp.Drop,
    exp.Alter,
    exp.Into,
    exp.Set,
    exp.Pragma,
    exp.Attach,
    exp.Detach,
    exp.Use,
    exp.Lock,
)


class NotAQuery(Exception):
    def __init__(self, message: str, at: int | None = None, expected: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.at = at
        """Where in the text."""
        self.expected = tuple(expected)


@dataclass(frozen=True, slots=True)
class TableName:
    """A table that a query reads, as it stands in the text from `start` to before `end`."""

    name: str
    """Of a system table without `system.`."""
    system: bool
    start: int
    end: int
    alias: str | None
    """None when the text gives it none."""
    node: exp.Table


def parse(text: str) -> exp.Query:
    """The tree of a query that only reads; `NotAQuery` says why it is none."""
    try:
        trees = sqlglot.parse(text, dialect="duckdb")
    except (SqlglotError, ValueError) as error:
        # Of some texts it makes parts that it then refuses itself, with a ValueError.
        raise unreadable(text, error) from error
    except RecursionError as error:
        raise NotAQuery("this query is nested too deeply", None, ["a flatter one"]) from error
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise NotAQuery("this is no query", 0, ["SELECT"])
    change = change_in(tree)
    if change is not None:
        raise NotAQuery(f"a query only reads, and {change.key.upper()} does more", None, ["SELECT"])
    tables(tree)
    return tree


def change_in(tree: exp.Query) -> exp.Expr | None:
    """What in a tree does more than read, if anything does."""
    change = next((node for node in tree.walk() if isinstance(node, _CHANGES)), None)
    return None if isinstance(change, exp.Query) else change


def tables(tree: exp.Query) -> list[TableName]:
    """Every place where a topic or a system table is named, in the order of the text."""
    found = []
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier | exp.Dot):
            _check_function(node)
        elif not is_cte(node):
            found.append(_table_name(node))
    if len(found) > TABLES_MAX:
        raise NotAQuery(f"a query names at most {TABLES_MAX} tables, and this one {len(found)}")
    return sorted(found, key=lambda table: table.start)


def plain_count(tree: exp.Query) -> str | None:
    """What the only column is called when a query is `SELECT count(*) FROM t` and nothing more; None otherwise."""
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        return None
    said = {name for name, value in tree.args.items() if value}
    table = tree.args["from_"].this if "from_" in said else None
    if (
        said != {"expressions", "from_"}
        or not isinstance(table, exp.Table)
        or set(_said(table)) - {"this", "db", "alias"}
    ):
        return None
    column = tree.expressions[0]
    counted = column.this if isinstance(column, exp.Alias) else column
    if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star) or _said(counted.this):
        return None
    return str(column.alias) if isinstance(column, exp.Alias) else "count_star()"


def _said(node: exp.Expr) -> list[str]:
    return [name for name, value in node.args.items() if value]


class Spliced:
    """A text with other names for its tables, which answer to their old ones as aliases."""

    def __init__(self, text: str, found: Sequence[TableName], names: Sequence[str]) -> None:
        self.original = text
        parts = []
        self._shifts: list[tuple[int, int]] = []
        """Where a new name is over, and how far what follows it has moved."""
        at = moved = 0
        for table, name in zip(found, names, strict=True):
            new = (
                identifier(name) if table.alias is not None else f"{identifier(name)} AS {identifier(table.node.name)}"
            )
            parts += [text[at : table.start], new]
            moved += len(new) - (table.end - table.start)
            self._shifts.append((table.end + moved, moved))
            at = table.end
        self.text = "".join([*parts, text[at:]])

    def place(self, position: int) -> int:
        """Where in the original text something stands."""
        moved = max((shift for shift in self._shifts if shift[0] <= position), default=(0, 0))[1]
        return min(max(position - moved, 0), len(self.original))


def _table_name(node: exp.Table) -> TableName:
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    start, end = parts[0].meta.get("start") if parts else None, parts[-1].meta.get("end") if parts else None
    if len(parts) != len(node.parts) or start is None or end is None:
        raise NotAQuery(f"{node.sql('duckdb')} is not understood as a table", None, ["the name of a topic"])
    system = len(parts) == 2 and not parts[0].quoted and parts[0].name.lower() == SYSTEM
    name = parts[1].name.lower() if system else ".".join(part.name for part in parts)
    return TableName(name, system, start, end + 1, node.alias or None, node)


def _check_function(node: exp.Table) -> None:
    this = node.this
    name = this.name if isinstance(this, exp.Anonymous) else this.sql_name() if isinstance(this, exp.Func) else ""
    if name.lower() not in TABLE_FUNCTIONS:
        raise NotAQuery(
            f"{name.lower() or node.sql('duckdb')} cannot stand in place of a table",
            None,
            ["the name of a topic", *sorted(TABLE_FUNCTIONS)],
        )


def is_cte(table: exp.Table) -> bool:
    """Whether a name is that of a WITH that is in force where it stands."""
    if len(table.parts) != 1:
        return False
    name = table.name.lower()
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if isinstance(parent, exp.With):
            before = parent.expressions[: parent.expressions.index(node)]
            visible = [*before, node] if parent.args.get("recursive") else before
        else:
            clause = parent.args.get("with_")
            visible = clause.expressions if clause is not None and clause is not node else []
        if any(each.alias.lower() == name for each in visible):
            return True
        node = parent
    return False


def unreadable(text: str, error: SqlglotError | ValueError) -> NotAQuery:
    errors = getattr(error, "errors", None)
    if not errors:
        return NotAQuery("this is not understood as a query", 0, ["SELECT"])
    first = errors[0]
    line, column = first.get("line") or 1, first.get("col") or 1
    lines = text.split("\n")
    before = sum(len(each) + 1 for each in lines[: line - 1])
    # The column is where the word ends.
    at = max(0, before + column - max(1, len(first.get("highlight") or "")))
    return NotAQuery(f"this is not understood as a query: {first.get('description', '').split(chr(10))[0]}", at)
