"""What a query can need of a topic at all, from the conditions it puts on seq, ts, tag and partition.

Only conditions that every row of the result must meet count: those joined by AND in the WHERE of the very SELECT that
reads the table, comparing a column with a constant. Each of them is true of no row whose column is null, so it may be
applied before any plain join. Whatever is not understood narrows nothing; DuckDB applies all conditions anyway.

Times are expressions (`now() - INTERVAL 1 DAY`), which only DuckDB can evaluate: they stay text here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from topics.limits import U64_MAX
from topics.sql.query import TableName

_FLIPPED = {exp.LT: exp.GT, exp.GT: exp.LT, exp.LTE: exp.GTE, exp.GTE: exp.LTE, exp.EQ: exp.EQ}
_OPERANDS = {"this", "expression", "expressions", "low", "high"}
_SIDES = {"", "LEFT", "RIGHT", "FULL"}
_KINDS = {"", "INNER", "OUTER", "CROSS"}
_TIME_NODES = (
    exp.Literal,
    exp.Placeholder,
    exp.Cast,
    exp.DataType,
    exp.Interval,
    exp.Var,
    exp.Add,
    exp.Sub,
    exp.Neg,
    exp.Paren,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.UnixToTime,
    exp.TimestampTrunc,
)
"""What a time may be made of: nothing that could differ from row to row."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """Rows are stamped at (or after, or before) a time."""

    text: str
    """An expression for DuckDB."""
    parameters: tuple[object, ...]
    after: bool
    """Else before; the time itself counts either way."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Rows outside of this are in no result."""

    first_seq: int = 0
    last_seq: int = U64_MAX
    tag: str | None = None
    tag_prefix: bool = False
    """Whether `tag` is the beginning of tags."""
    partitions: frozenset[int] | None = None
    times: tuple[TimeBound, ...] = ()

    def __str__(self) -> str:
        """In words, for EXPLAIN."""
        words = []
        if self.first_seq > 0:
            words.append(f"seq from {self.first_seq}")
        if self.last_seq < U64_MAX:
            words.append(f"seq to {self.last_seq}")
        if self.tag is not None:
            words.append(f"tag {'beginning with' if self.tag_prefix else 'is'} {self.tag!r}")
        if self.partitions is not None:
            words.append(f"partition in {sorted(self.partitions)}")
        words += [f"ts {'from' if time.after else 'to'} {time.text}" for time in self.times]
        return "; ".join(words) or "all of it"


EVERYTHING = Narrowed()


def narrowed(tables: Sequence[TableName], parameters: Sequence[object]) -> list[Narrowed]:
    """For each table of a query what can be needed of it."""
    return [EVERYTHING if table.system else _of(table, parameters) for table in tables]


def _of(table: TableName, parameters: Sequence[object]) -> Narrowed:
    select = table.node.parent_select
    if not isinstance(select, exp.Select) or not _is_plain(select, table.node):
        return EVERYTHING
    where = select.args.get("where")
    result = EVERYTHING
    if where is None:
        return result
    alone = not select.args.get("joins") and not select.args.get("laterals")
    names = {(table.alias or table.node.name).lower()}
    for condition in _conjuncts(where.this):
        result = _Condition(names, alone, parameters).apply(condition, result)
    return result


def _is_plain(select: exp.Select, node: exp.Table) -> bool:
    """Whether the table is read by this SELECT itself, in joins for which the order of rows and filters is the same."""
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    if select.args.get("sample"):
        # It is taken before the conditions are applied.
        return False
    direct = [each.this for each in [source, *joins] if each is not None]
    if not any(each is node for each in direct):
        return False
    if node.args.get("sample") or node.args.get("pivots") or node.args.get("joins"):
        return False
    return all(
        not join.args.get("method")
        and (join.side or "").upper() in _SIDES
        and (join.kind or "").upper() in _KINDS
        and not (isinstance(join.this, exp.Table) and join.this.args.get("sample"))
        for join in joins
    )


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And):
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    elif isinstance(condition, exp.Paren):
        yield from _conjuncts(condition.this)
    else:
        yield condition


@dataclass(frozen=True, slots=True)
class _Condition:
    names: set[str]
    """What the table is called."""
    alone: bool
    """Whether a column without a table's name must be this table's."""
    parameters: Sequence[object] = field(repr=False)

    def apply(self, condition: exp.Expr, result: Narrowed) -> Narrowed:
        if any(value for name, value in condition.args.items() if name not in _OPERANDS):
            # Something more is said of it, such as NOT.
            return result
        match condition:
            case exp.Between():
                low = exp.GTE(this=condition.this, expression=condition.args["low"])
                high = exp.LTE(this=condition.this, expression=condition.args["high"])
                return self.apply(high, self.apply(low, result))
            case exp.In():
                return self._within(condition, result)
            case exp.Like() | exp.StartsWith():
                return self._beginning(condition, result)
            case exp.EQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                kind = type(condition)
                if (column := self._column(condition.this)) is not None:
                    return self._compare(column, kind, condition.expression, result)
                if (column := self._column(condition.expression)) is not None:
                    return self._compare(column, _FLIPPED[kind], condition.this, result)
        return result

    def _column(self, node: exp.Expr) -> str | None:
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return None
        ours = node.table.lower() in self.names if node.table else self.alone
        return node.name.lower() if ours else None

    def _compare(self, column: str, kind: type[exp.Expr], value: exp.Expr, result: Narrowed) -> Narrowed:
        if column == "ts":
            return self._timed(kind, value, result)
        constant = self._constant(value)
        if column == "tag" and kind is exp.EQ and isinstance(constant, str) and constant:
            return replace(result, tag=constant, tag_prefix=False)
        if not isinstance(constant, int) or isinstance(constant, bool):
            return result
        if column == "partition" and kind is exp.EQ:
            return _in_partitions(result, {constant})
        if column != "seq":
            return result
        if kind in (exp.GT, exp.GTE, exp.EQ):
            result = replace(result, first_seq=max(result.first_seq, constant + (kind is exp.GT)))
        if kind in (exp.LT, exp.LTE, exp.EQ):
            result = replace(result, last_seq=min(result.last_seq, constant - (kind is exp.LT)))
        return result

    def _timed(self, kind: type[exp.Expr], value: exp.Expr, result: Narrowed) -> Narrowed:
        if not all(isinstance(node, _TIME_NODES) or _is_now(node) for node in value.walk()):
            return result
        places = list(value.find_all(exp.Placeholder))
        values = tuple(self._parameter(place) for place in places)
        if isinstance(value, exp.Literal) and not value.is_string:
            return result
        renumbered = value.copy()
        for number, place in enumerate(renumbered.find_all(exp.Placeholder), 1):
            place.set("this", str(number))
        text = renumbered.sql(dialect="duckdb")
        times = result.times
        if kind in (exp.GT, exp.GTE, exp.EQ):
            times += (TimeBound(text, values, after=True),)
        if kind in (exp.LT, exp.LTE, exp.EQ):
            times += (TimeBound(text, values, after=False),)
        return replace(result, times=times)

    def _within(self, condition: exp.In, result: Narrowed) -> Narrowed:
        column = self._column(condition.this)
        values = [self._constant(each) for each in condition.expressions]
        whole = [each for each in values if isinstance(each, int) and not isinstance(each, bool)]
        if not whole or len(whole) < len(values):
            return result
        if column == "partition":
            return _in_partitions(result, set(whole))
        if column == "seq":
            first, last = max(result.first_seq, min(whole)), min(result.last_seq, max(whole))
            return replace(result, first_seq=first, last_seq=last)
        return result

    def _beginning(self, condition: exp.Like | exp.StartsWith, result: Narrowed) -> Narrowed:
        pattern = self._constant(condition.expression)
        if self._column(condition.this) != "tag" or not isinstance(pattern, str) or result.tag is not None:
            return result
        if isinstance(condition, exp.Like):
            # A LIKE with an ESCAPE is another kind of node.
            cut = min((at for at in (pattern.find("%"), pattern.find("_")) if at >= 0), default=len(pattern))
            pattern = pattern[:cut]
        return replace(result, tag=pattern, tag_prefix=True) if pattern else result

    def _constant(self, node: exp.Expr) -> object:
        """The value of a literal or a parameter; None when it is neither, or no whole number or string."""
        if isinstance(node, exp.Neg) and isinstance(value := self._constant(node.this), int):
            return -value
        if isinstance(node, exp.Placeholder):
            return self._parameter(node)
        if not isinstance(node, exp.Literal):
            return None
        if node.is_string:
            return node.name
        return int(node.name) if node.name.isdecimal() else None

    def _parameter(self, node: exp.Placeholder) -> object:
        number = int(node.name) if node.name.isdecimal() else 0
        return self.parameters[number - 1] if 1 <= number <= len(self.parameters) else None


def _is_now(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "now"


def _in_partitions(result: Narrowed, numbers: set[int]) -> Narrowed:
    kept = frozenset(numbers) if result.partitions is None else result.partitions & numbers
    return replace(result, partitions=kept)
