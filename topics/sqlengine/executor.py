"""Running statements: parsed, allowed, and then done one after the other on the engine's loop.

Nothing is done before all of a text is understood and whoever asks may do all of it. A statement that fails ends the
text; those before it are done, and the error says in `detail.statement` which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from re import DOTALL, escape, fullmatch
from typing import assert_never

import msgspec

from topics.core.catalogview import KnownColumns
from topics.core.records import RecordLimits
from topics.engine.host import Host
from topics.errors import ScriptInterrupted, Throttled, TopicsError, Unavailable
from topics.settings import Settings
from topics.sql.grammar import Origin, parse_script
from topics.sql.needs import Need, needs
from topics.sql.pipelinestatements import CatalogStatement
from topics.sql.printing import to_text
from topics.sql.statements import (
    AckGroup,
    AddSource,
    AlterTopic,
    ClearTopic,
    Consume,
    CreateTopic,
    Describe,
    DropGroup,
    DropSource,
    DropTopic,
    Explain,
    ExtendGroup,
    Insert,
    NackGroup,
    PauseGroup,
    ResetGroup,
    Select,
    Show,
    Shown,
    Statement,
)
from topics.sql.systemcolumns import JSON, TIME, columns_of
from topics.sqlengine import catalogstatements, groupstatements, topicstatements
from topics.sqlengine.access import Access
from topics.sqlengine.aside import aside, is_long
from topics.sqlengine.result import Result, RowsText, columns, iso_time
from topics.sqlengine.selecting import Asking, Selecting, Source, tables_of
from topics.sqlengine.systemtables import Metrics, SystemTables

_SHOWN_TABLES = {
    Shown.TOPICS: "topics",
    Shown.GROUPS: "groups",
    Shown.ROUTES: "topic_routes",
    Shown.TABLES: "tables",
    Shown.PIPELINES: "pipelines",
}
_SHOWN_COLUMNS = {
    Shown.TOPICS: ("name", "alias", "type", "partitions", "records", "bytes"),
    Shown.TABLES: ("table_id", "format", "location", "location_env", "key_columns", "routes"),
    Shown.PIPELINES: ("pipeline_id", "kind", "condition", "target", "position", "lag_records", "lag_seconds"),
}
"""Of those of which a list shows less than there is; the first is the name."""


@dataclass(frozen=True, slots=True)
class _Looking:
    """What statements that only look need to know."""

    access: Access
    metrics: Metrics
    asking: Asking


class Executor:
    """All statements of one engine. `close` before the engine is."""

    def __init__(self, host: Host, settings: Settings, limits: RecordLimits) -> None:
        self._host = host
        self._limits = limits
        self._selecting = Selecting(host.engine, settings)
        self._answer_bytes = settings.sql_answer_bytes
        self._turn = 0

    async def run(
        self,
        text: str,
        parameters: Sequence[object],
        access: Access,
        metrics: Metrics = lambda: (),
        arrow: bool = False,
        done: Callable[[int], None] = lambda number: None,
    ) -> list[Result]:
        """The result of each statement of a text, in order; `arrow` when it is wanted as an Arrow stream. `done` is
        told the number of each that is done."""
        known: Mapping[str, Sequence[str]] = KnownColumns(self._host.engine.machine)
        known = dict(known) if is_long(text) else known
        script = await aside(text, partial(parse_script, text, parameters, tables=known))
        for statement, origin in script:
            with _naming(origin):
                _allow(await aside(text, partial(needs, statement)), access)
        results: list[Result] = []
        left = self._answer_bytes
        for statement, origin in script:
            try:
                with _naming(origin):
                    looking = _Looking(access, metrics, Asking(left, access.owner, arrow))
                    results.append(await self._run(statement, origin, looking))
                    left -= results[-1].answer_bytes
                    done(origin.number)
            except (Throttled, Unavailable) as error:
                if not results:
                    raise
                # Whoever is told to try again later would do what is done a second time.
                raise _interrupted(error, origin) from error
        return results

    async def close(self) -> None:
        await self._selecting.close()

    async def _run(self, statement: Statement, origin: Origin, looking: _Looking) -> Result:
        host = self._host
        if isinstance(statement, CatalogStatement):
            return await catalogstatements.run(host, statement, looking.access)
        match statement:
            case CreateTopic():
                return await topicstatements.create(host, statement)
            case AlterTopic():
                return await topicstatements.alter(host, statement)
            case AddSource():
                catalogstatements.check_route(host, statement, origin)
                return await topicstatements.add_source(host, statement)
            case DropSource():
                return await topicstatements.drop_source(host, statement)
            case DropTopic():
                return await topicstatements.drop(host, statement)
            case ClearTopic():
                return await topicstatements.clear(host, statement)
            case Insert():
                return await topicstatements.insert(host, statement, self._limits)
            case Consume():
                self._turn += 1
                return await groupstatements.consume(host, statement, self._turn)
            case AckGroup():
                return await groupstatements.ack(host, statement)
            case NackGroup():
                return await groupstatements.nack(host, statement)
            case ExtendGroup():
                return await groupstatements.extend(host, statement)
            case PauseGroup():
                return await groupstatements.pause(host, statement)
            case ResetGroup():
                return await groupstatements.reset(host, statement)
            case DropGroup():
                return await groupstatements.drop(host, statement)
            case Describe():
                await host.freshened(statement.topic)
                return topicstatements.describe(host, statement)
            case Show():
                return await self._show(statement, looking)
            case Select():
                return await self._select(statement, origin, looking)
            case Explain():
                return await self._explain(statement.statement, origin, looking)
            case _:
                assert_never(statement)

    # ---- looking

    async def _show(self, statement: Show, looking: _Looking) -> Result:
        await self._host.freshened(*self._host.fed())
        name = _SHOWN_TABLES[statement.what]
        about = columns_of(name)
        names = [column.name for column in about]
        places = [names.index(each) for each in _SHOWN_COLUMNS.get(statement.what, names)]
        shown = tuple(about[at] for at in places)
        rows: list[list[object]] = []
        text = RowsText(shown)
        async for made in SystemTables(self._host.engine).slices(name, looking.access, statement.topic):
            found = [
                [_cell(about[at].type, row[at]) for at in places]
                for row in made
                if statement.like is None or _is_like(row[places[0]], statement.like)
            ]
            if looking.asking.arrow:
                rows += found
            else:
                text.add(found)
        return Result(shown, rows) if looking.asking.arrow else Result(shown, text=text.end())

    async def _select(self, statement: Select, origin: Origin, looking: _Looking) -> Result:
        system = SystemTables(self._host.engine, looking.metrics)
        sources = []
        named = await aside(statement.text, partial(tables_of, statement))
        await self._host.freshened(*(table.name for table, _ in named if not table.system))
        if any(table.system for table, _ in named):
            await self._host.freshened(*self._host.fed())
        for table, needed in named:
            if table.system:
                made = await system.table(table.name, looking.access)
                sources.append(Source(table, needed, system=made))
            else:
                sources.append(self._selecting.source(table, needed))
        counted = None if looking.asking.explain else self._selecting.counted(statement, sources)
        return counted or await self._selecting.run(statement, sources, origin, looking.asking)

    async def _explain(self, statement: Statement, origin: Origin, looking: _Looking) -> Result:
        if isinstance(statement, Select):
            return await self._select(statement, origin, replace(looking, asking=replace(looking.asking, explain=True)))
        need = needs(statement)
        rows = [["statement", to_text(statement)], ["needs", ", ".join(sorted(need.scopes))]]
        rows += [["touches", f"{field} {name}"] for field, name in need.names]
        return Result(columns(("step", "VARCHAR"), ("detail", "VARCHAR")), rows)


@contextmanager
def _naming(origin: Origin) -> Iterator[None]:
    """What is raised inside says which statement it is about."""
    try:
        yield
    except TopicsError as error:
        error.detail.setdefault("statement", origin.number)
        raise


def _interrupted(error: TopicsError, origin: Origin) -> ScriptInterrupted:
    return ScriptInterrupted(
        f"statement {origin.number} was not done, those before it are: {error.message}; go on from there",
        statement=origin.number,
        cause=error.code,
    )


def _allow(need: Need, access: Access) -> None:
    access.need(need.scopes)
    for field, name in need.names:
        access.touch(name, field)
    if need.place:
        access.place(need.place)


def _cell(kind: str, value: object) -> object:
    if value is not None and kind == TIME:
        assert isinstance(value, int)
        return iso_time(value)
    return msgspec.Raw(str(value).encode()) if value is not None and kind == JSON else value


def _is_like(name: str, pattern: str) -> bool:
    """`%` is anything, `_` one character."""
    expression = "".join({"%": ".*", "_": "."}.get(character, escape(character)) for character in pattern)
    return fullmatch(expression, name, DOTALL) is not None
