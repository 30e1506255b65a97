"""Statements of ours in `spark.sql`: CREATE TOPIC, CONSUME, ACK and the rest go to the server, all else to Spark.

`Front` stands in place of the session's `sql`. It looks at the first words of a text, and hands on what is Spark's as
it came. What is ours is parsed here, so that a slip of the pen is told with its place before anything is asked, and
then done by the server, at once: the DataFrame holds the rows of the answer.

    spark.sql("CONSUME FROM orders GROUP 'billing' LIMIT :n", {"n": 10}).show()
    spark.sql("ACK orders GROUP 'billing' UPTO OFFSET ?", [10])
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from topics.errors import InvalidRequest, InvalidSql, TopicsError
from topics.spark.answers import Answer, answers
from topics.spark.server import Server
from topics.sql.dialect import is_ours
from topics.sqlmodel import SqlTombstone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from topics.sql.grammar import Origin
    from topics.sql.statements import Statement

Args = dict[str, Any] | list[Any] | None
"""As `spark.sql` takes them: by name for `:name`, or in order for `?`."""
Done = Callable[[Sequence["Statement"]], None]


class RecordsLostWarning(UserWarning):
    """Records were gone before a CONSUME came to them: which ones, and why."""


class Statements:
    """Has a server run statements. `done` hears which ones it ran."""

    def __init__(self, spark: SparkSession, server: Server, done: Done) -> None:
        self._spark = spark
        self._server = server
        self._done = done

    def run(self, text: str, args: Args = None) -> list[Answer]:
        """An answer for each statement of a text. When one fails, those before it are done."""
        from topics.sql.grammar import parse_script
        from topics.sql.named import numbered

        if isinstance(args, dict):
            named = numbered(text, {name: _value(name, value) for name, value in args.items()})
            script = parse_script(text, named.values, named.tokens)
            sent, values = named.text, named.values
        else:
            sent, values = text, [_value(str(number), value) for number, value in enumerate(args or (), 1)]
            script = parse_script(text, values)
        for each in script:
            _refuse_query(*each)
        statements = [statement for statement, _ in script]
        try:
            body = self._server.sql(sent, values)
        except TopicsError as error:
            self._done(statements[: int(error.detail.get("statement", 1)) - 1])
            raise
        self._done(statements)
        return answers(self._spark, body)


class Front:
    """What `spark.sql` is while a session is connected. The server that was connected last runs the statements."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._own = vars(spark).get("sql")
        """What stood in front of the session's method before, if anything did."""
        self._below = spark.sql
        self._newest: Statements | None = None
        self._leave: dict[str, Callable[[], None]] = {}
        vars(spark)["sql"] = self

    @classmethod
    def of(cls, spark: SparkSession) -> Front | None:
        """The one that stands in front of a session, if one does."""
        found = vars(spark).get("sql")
        return found if isinstance(found, cls) else None

    def add(self, database: str, statements: Statements, leave: Callable[[], None]) -> None:
        """From now on these statements; `leave` takes away what else their server has in the session."""
        self._newest = statements
        self._leave[database] = leave

    def close(self) -> None:
        """Leave the session as it was."""
        for leave in self._leave.values():
            leave()
        del vars(self._spark)["sql"]
        if self._own is not None:
            vars(self._spark)["sql"] = self._own

    def __call__(self, sqlQuery: str, args: Args = None, **kwargs: Any) -> DataFrame:
        if self._newest is None or not is_ours(sqlQuery):
            return self._below(sqlQuery, args, **kwargs)
        if kwargs:
            raise InvalidRequest(
                f"a statement about topics has parameters, and {', '.join(kwargs)} would become part of its text: "
                "spark.sql(text, args={'name': value}) with :name, or args=[value] with ?",
                field="args",
                expected="args",
            )
        found = self._newest.run(sqlQuery, args)
        for lost in (lost for answer in found for lost in answer.tombstones):
            warnings.warn(_told(lost), RecordsLostWarning, stacklevel=2)
        return found[-1].frame


def _refuse_query(statement: Statement, origin: Origin) -> None:
    from topics.sql.place import Place, wrong
    from topics.sql.statements import Explain, Select

    inner = statement.statement if isinstance(statement, Explain) else statement
    if isinstance(inner, Select):
        place = Place(origin.start, origin.start + 1)
        said = "a query is Spark's, and goes without statements about topics beside it"
        raise wrong(origin.text, place, said, ["a spark.sql of its own"], origin.number)


def _value(name: str, value: object) -> object:
    """The value of a parameter as JSON has it; a time as text."""
    from pyspark.sql import Column

    match value:
        case Column():
            said = "a Column, which is Spark's"
        case datetime() if value.tzinfo is None:
            said = "a time without a zone"
        case date():
            return value.isoformat()
        case Mapping():
            return {each: _value(name, inner) for each, inner in value.items()}
        case list() | tuple():
            return [_value(name, inner) for inner in value]
        case _:
            return value
    raise InvalidSql(
        f"parameter {name} is {said}: give a value that JSON has, or a datetime with a time zone", parameter=name
    )


def _told(lost: SqlTombstone) -> str:
    return (
        f"records {lost.gap_from} to {lost.gap_to} of {lost.topic}, partition {lost.partition}, are lost "
        f"({lost.reason.value}) and not in the rows"
    )
