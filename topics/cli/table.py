"""`topics table …`: tables by a name, whose changes become records. Register, list, look at and forget them."""

from __future__ import annotations

from functools import partial
from os import environ
from os.path import abspath
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from rich.table import Table as Grid
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import table_names
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, KEYED_TARGET, KeyedTarget, Target
from topics.client import Client
from topics.core.table import check_config
from topics.errors import InvalidRequest
from topics.tablemodel import TableConfig, TableFormat, TableState
from topics.wire.table import table_fields

Name = Annotated[str, Parameter(help="The name that the table is registered under.", completer=table_names)]


def register(
    table: Annotated[str, Parameter(help="The name to register it under, like chat.messages.")],
    /,
    *,
    delta: Annotated[str | None, Parameter(help="A Delta table: its path or address.", show_default=False)] = None,
    postgres: Annotated[
        str | None, Parameter(help="A table of PostgreSQL: an address without a password.", show_default=False)
    ] = None,
    dsn_env: Annotated[
        str | None,
        Parameter(
            help="The same, by the name of an environment variable of the runner that holds the address.",
            show_default=False,
        ),
    ] = None,
    sqlite: Annotated[str | None, Parameter(help="A table of SQLite: the file.", show_default=False)] = None,
    files: Annotated[str | None, Parameter(help="A directory of files.", show_default=False)] = None,
    format: Annotated[Literal["parquet", "json", "csv"], Parameter(help="What the files are.")] = "parquet",
    key: Annotated[
        list[str], Parameter(help="A column that identifies a row; several may be named.", show_default=False)
    ] = [],  # noqa: B006
    source: Annotated[
        str, Parameter(help="What the database itself calls the table, if otherwise.", show_default=False)
    ] = "",
    option: Annotated[list[str], Parameter(help="How Spark reads files, like header=true.", show_default=False)] = [],  # noqa: B006
    look: Annotated[bool, Parameter(help="Look at the table, and tell the server its columns.")] = True,
    json: JsonFlag = None,
    target: KeyedTarget = KEYED_TARGET,
) -> None:
    """Give a table a name that routes and pipelines know it by; one of that name is registered anew.

    The table itself is not touched. For example:

        topics table register chat.messages --sqlite ./chat.db --source messages --key id
        topics table register clicks --files ./clicks --format csv --option header=true --no-look
    """
    screen = Screen(json)
    places = {
        TableFormat.DELTA: delta,
        TableFormat.POSTGRESQL: postgres,
        TableFormat.SQLITE: sqlite,
        TableFormat(format): files,
    }
    config = msgspec.structs.replace(
        _where(places, dsn_env), key=tuple(key), source=source, options=dict(map(_option, option))
    )
    check_config(table, config)
    if look:
        config = _looked_at(screen, table, config)
    state = target.run(partial(_put, table, config), create=True)
    done = "is registered" if state.created else "was registered and is like this now"
    said = f"{state.table} {done}, with {counted(len(state.config.columns), 'known column')}"
    screen.show({"created": state.created} | _fields(state), lambda: Text(printable(said), style="green"))


def ls(
    prefix: Annotated[
        str, Parameter(help="Only names that begin with this.", show_default=False, completer=table_names)
    ] = "",
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List registered tables.

    For example:

        topics table ls
    """
    screen = Screen(json)

    async def work(client: Client) -> list[TableState]:
        return [state async for state in client.tables(prefix)]

    found = target.run(work)
    if screen.as_json:
        screen.lines(msgspec.json.encode(_fields(state)) for state in found)
        return
    nothing = Text("no tables yet; `topics table register NAME --delta PATH --key id` makes one known", style="green")
    screen.out.print(_table(found) if found else nothing, soft_wrap=not found)


def show(table: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Show how a table is registered, its columns and its routes.

    For example:

        topics table show chat.messages
    """
    screen = Screen(json)
    state = target.run(lambda client: client.table(table).state())
    screen.show(_fields(state), lambda: _whole(state))


def rm(
    *table: Annotated[str, Parameter(help="One table or several.", completer=table_names)],
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Forget registered tables. They themselves are not touched; those that routes or pipelines read stay.

    For example:

        topics table rm clicks
    """
    if not table:
        raise InvalidRequest("rm needs a table: name one or several; `topics table ls` lists them")
    screen = Screen(json)

    async def work(client: Client) -> int:
        for name in table:
            dropped = await client.table(name).drop()
            said = f"forgot {name}" if dropped.deleted else f"there is no table {name}"
            screen.show(dropped, partial(Text, printable(said), style="green" if dropped.deleted else "yellow"))
            if not dropped.deleted:
                return Exit.NOT_FOUND
        return Exit.OK

    return target.run(work)


SUMMARY = "Tables whose changes become records: register, list, look at and forget them."
COMMANDS = (register, ls, show, rm)


# ---- what was said


def _where(places: dict[TableFormat, str | None], variable: str | None) -> TableConfig:
    said = [(form, place) for form, place in places.items() if place is not None]
    if len(said) + (variable is not None) != 1:
        raise InvalidRequest(
            "say where the table is, once: --delta PATH, --postgres DSN, --dsn-env NAME, --sqlite PATH or --files PATH"
        )
    if variable is not None:
        return TableConfig(format=TableFormat.POSTGRESQL, location_env=variable)
    ((form, place),) = said
    local = form is not TableFormat.POSTGRESQL and "://" not in place
    # The runner may be started elsewhere.
    return TableConfig(format=form, location=abspath(place) if local else place)


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidRequest(f"--option={text}: expected NAME=VALUE, like header=true", field="option")
    return name, value


def _looked_at(screen: Screen, table: str, config: TableConfig) -> TableConfig:
    from topics.cli.tablecolumns import has_change_feed, look

    location = config.location or environ.get(config.location_env, "")
    if not location:
        screen.note(f"{config.location_env} is not set here, so the columns are not known to the server", "yellow")
        return config
    columns = look(table, config, location)
    if config.format is TableFormat.DELTA and not has_change_feed(location):
        screen.note(
            "this table says nothing of its changes: set delta.enableChangeDataFeed = true on it before a route reads "
            "it",
            "yellow",
        )
    return msgspec.structs.replace(config, columns=columns)


async def _put(table: str, config: TableConfig, client: Client) -> TableState:
    return await client.table(table).put(
        config.format,
        config.location,
        key=config.key,
        location_env=config.location_env,
        source=config.source,
        columns=config.columns,
        options=config.options,
    )


# ---- what is shown


def _fields(state: TableState) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(table_fields(state))
    return fields


def _place(state: TableState) -> str:
    return state.config.location or f"${state.config.location_env}"


def _table(found: list[TableState]) -> Grid:
    grid = Grid(header_style="bold", title_justify="left")
    for name in ("table", "format", "location", "key"):
        grid.add_column(name, overflow="fold", style="cyan" if name == "table" else "")
    for name in ("columns", "routes"):
        grid.add_column(name, justify="right")
    for state in found:
        config = state.config
        texts = (state.table, config.format.value, printable(_place(state)), ", ".join(config.key))
        grid.add_row(*map(Text, texts), f"{len(config.columns):,}", f"{len(state.routes):,}")
    return grid


def _whole(state: TableState) -> Grid:
    config = state.config
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    grid.add_row("table", Text(state.table, style="bold"))
    grid.add_row("format", config.format.value)
    grid.add_row("location", Text(printable(_place(state))))
    if config.source:
        grid.add_row("source", Text(printable(config.source)))
    grid.add_row("key", Text(", ".join(config.key) or "none"))
    for name, value in config.options.items():
        grid.add_row(name, Text(printable(value)))
    grid.add_row("registered", moment(state.created_ts, "seconds"))
    columns = "\n".join(f"{column.name} {column.type}" for column in config.columns)
    grid.add_row("columns", Text(printable(columns).replace("\\n", "\n") or "not known"))
    for route in state.routes:
        where = f" where {route.where}" if route.where else ""
        grid.add_row("route", Text(printable(f"{route.operation} → {route.topic} ({route.payload}){where}")))
    return grid
