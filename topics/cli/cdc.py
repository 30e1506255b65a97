"""`topics cdc …`: have PostgreSQL and SQLite keep the changes of a table, so that routes can read them."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cdc.opening import opened
from topics.cdc.outbox import Captured
from topics.cli.exitcode import Exit
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.errors import InvalidRequest
from topics.pipelinemodel import routes_name

Database = Annotated[
    str, Parameter(help="A database: postgresql://… or host=… dbname=…, or the path of a SQLite file.")
]
TableName = Annotated[str, Parameter(help="The table, as the database calls it, like chat.messages.")]
_ID = re.compile(r"id (\d+)")
"""How a runner says how far it is in an outbox."""


def install(
    database: Database,
    /,
    *,
    table: TableName,
    key: Annotated[
        list[str], Parameter(help="A column that identifies a row; the primary key when none is named.")
    ] = [],  # noqa: B006
    json: JsonFlag = None,
) -> None:
    """Keep each change of a table in an outbox beside it, by triggers, within the transaction that makes it.

    Again does nothing, or brings the triggers up to date with the table. For example:

        topics cdc install ./chat.db --table messages
    """
    screen = Screen(json)
    with opened(database) as outbox:
        changed = outbox.install(table, key)
        (found,) = outbox.status(table)
    said = f"{found.table} is captured from now on" if changed else f"{found.table} was captured already"
    screen.show({"changed": changed} | _fields(found), partial(Text, printable(said), style="green"))


def uninstall(database: Database, /, *, table: TableName, json: JsonFlag = None) -> int:
    """Capture a table no more: its triggers go, what waits for it goes, and with the last table the outbox.

    For example:

        topics cdc uninstall ./chat.db --table messages
    """
    screen = Screen(json)
    with opened(database) as outbox:
        done = outbox.uninstall(table)
    said = f"{table} is not captured any more" if done else f"{table} was not captured"
    screen.show({"table": table, "removed": done}, partial(Text, printable(said), style="green" if done else "yellow"))
    return Exit.OK


def status(
    database: Database,
    /,
    *,
    table: Annotated[str | None, Parameter(help="One table; all that are captured when none is named.")] = None,
    json: JsonFlag = None,
) -> int:
    """Show which tables are captured, by which key, and what waits in the outbox. Ends with 1 when something is wrong.

    For example:

        topics cdc status ./chat.db
    """
    screen = Screen(json)
    with opened(database) as outbox:
        found = outbox.status(table)
    if screen.as_json:
        screen.lines(msgspec.json.encode(_fields(each)) for each in found)
    else:
        nothing = Text("no table is captured; `topics cdc install` begins", style="green")
        screen.out.print(_table(found) if found else nothing, soft_wrap=not found)
    return Exit.FAILED if any(each.problem is not None for each in found) else Exit.OK


def prune(
    database: Database,
    /,
    *,
    table: TableName,
    registered: Annotated[
        str | None, Parameter(help="The name it is registered under, if that is another.", show_default=False)
    ] = None,
    upto: Annotated[
        int | None, Parameter(help="Up to and with this id, whatever has been read.", show_default=False)
    ] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Remove changes from an outbox that every route has read: the server knows how far they are.

    For example:

        topics cdc prune ./chat.db --table messages --upto 1000
    """
    screen = Screen(json)
    last = upto if upto is not None else target.run(partial(_read_upto, registered or table))
    with opened(database) as outbox:
        removed = outbox.prune(table, last)
    said = f"{counted(removed, 'change')} of {table} removed, up to {last}"
    screen.show({"table": table, "upto": last, "removed": removed}, partial(Text, printable(said), style="green"))


SUMMARY = "Changes of PostgreSQL's and SQLite's tables: install, look at, prune and remove what captures them."
COMMANDS = (install, uninstall, status, prune)


async def _read_upto(table: str, client: Client) -> int:
    """The lowest id that a route of a table has come to; an error when one has not said."""
    routes = (await client.table(table).state()).routes
    state = await client.pipeline(routes_name(table)).state()
    reported = {} if state.report is None else {(each.topic, each.operation): each for each in state.report.routes}
    found = []
    for route in routes:
        progress = reported.get((route.topic, route.operation))
        place = None if progress is None or progress.number != route.number else _ID.fullmatch(progress.position)
        if place is None:
            raise InvalidRequest(
                f"the route of {table} to {route.topic} has not said how far it is: run it first, or say --upto",
                field="upto",
                expected="an id",
            )
        found.append(int(place[1]))
    return min(found)


def _fields(found: Captured) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(found)
    return fields


def _table(found: list[Captured]) -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("table", "key"):
        table.add_column(name, overflow="fold", style="cyan" if name == "table" else "")
    for name in ("waiting", "last id"):
        table.add_column(name, justify="right")
    table.add_column("oldest")
    table.add_column("state", overflow="fold")
    for each in found:
        good = "captured" if each.installed else "not captured"
        state = Text(printable(each.problem or good), style="red" if each.problem else "green")
        oldest = moment(each.oldest_ms, "seconds") if each.oldest_ms is not None else ""
        counts = (f"{each.change_count:,}", f"{each.last_id:,}")
        table.add_row(Text(printable(each.table)), Text(", ".join(each.key)), *counts, oldest, state)
    return table
