"""`topics router …`: routers, which copy what one topic gets into another. List, put, look at and remove them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.grid import fields_grid
from topics.cli.names import router_names, topic_names
from topics.cli.pretty import moment
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.cli.topic import Yes
from topics.client import Client
from topics.client.match import Match
from topics.client.router import default_name
from topics.errors import InvalidRequest
from topics.routermodel import RouterState
from topics.wire.router import router_fields

Name = Annotated[str, Parameter(help="The router.", completer=router_names)]


def ls(
    prefix: Annotated[
        str, Parameter(help="Only names that begin with this.", show_default=False, completer=router_names)
    ] = "",
    /,
    *,
    source: Annotated[
        str, Parameter(help="Only those that take from this topic.", show_default=False, completer=topic_names)
    ] = "",
    dest: Annotated[
        str, Parameter(help="Only those that write to this topic.", show_default=False, completer=topic_names)
    ] = "",
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List routers with how much they have forwarded, how much waits, and what holds them up.

    For example:

        topics router ls
        topics router ls --source orders --json
    """
    screen = Screen(json)

    async def work(client: Client) -> None:
        table = routers_table()
        count = 0
        async for state in client.routers(prefix, source=source, dest=dest):
            count += 1
            if screen.as_json:
                screen.show(_fields(state), routers_table)
            else:
                add_router(table, state)
        if not screen.as_json:
            nothing = Text("no routers yet; `topics router put SOURCE DEST` makes one", style="green")
            screen.out.print(table if count else nothing, soft_wrap=not count)

    target.run(work)


def put(
    source: Annotated[str, Parameter(help="The topic whose records are copied.", completer=topic_names)],
    dest: Annotated[str, Parameter(help="The topic they are copied into.", completer=topic_names)],
    /,
    *,
    name: Annotated[
        str | None, Parameter(help="What it is called; SOURCE->DEST when not named.", show_default=False)
    ] = None,
    tag: Annotated[str | None, Parameter(help="Only records with this tag.", show_default=False)] = None,
    tag_prefix: Annotated[
        str | None, Parameter(help="Only records whose tag begins with this.", show_default=False)
    ] = None,
    guarantee: Annotated[
        Literal["at_least_once", "exactly_once"], Parameter(help="Whether a copy may come twice.")
    ] = "at_least_once",
    backfill: Annotated[
        bool, Parameter(negative="", show_default=False, help="Begin with the oldest record, not with the next.")
    ] = False,
    allow_cycle: Annotated[
        bool, Parameter(negative="", show_default=False, help="Let records come back to where they came from.")
    ] = False,
    preserve_node: Annotated[bool, Parameter(help="Keep who wrote a record.")] = True,
    preserve_tag: Annotated[bool, Parameter(help="Keep the tag.")] = True,
    create_dest: Annotated[bool, Parameter(help="Make DEST if it is missing.")] = True,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Copy what one topic gets into another from now on; a router of that name gets this config.

    For example:

        topics router put orders archive
        topics router put orders shop --tag-prefix public: --guarantee exactly_once --backfill
    """
    screen = Screen(json)
    match = _match(tag, tag_prefix)

    async def work(client: Client) -> RouterState:
        return await client.router(name or default_name(source, dest)).put(
            source,
            dest,
            filter=match,
            guarantee=guarantee,
            backfill=backfill,
            allow_cycle=allow_cycle,
            preserve_node=preserve_node,
            preserve_tag=preserve_tag,
            create_dest=create_dest,
        )

    state = target.run(work, create=True)
    done = "is created" if state.created else "was there and has this config now"
    screen.show({"created": state.created} | _fields(state), partial(_said, f"{state.router} {done}"))


def show(router: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Show a router: its config, how far it has come, and what holds it up.

    For example:

        topics router show 'orders->audit'
    """
    screen = Screen(json)
    state = target.run(lambda client: client.router(router).state())
    screen.show(_fields(state), lambda: _whole(state))


def rm(
    *router: Annotated[str, Parameter(help="One router or several.", completer=router_names)],
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Remove routers: they forward nothing any more, and what they have forwarded stays.

    On a terminal it says what would not be forwarded and asks. For example:

        topics router rm 'orders->audit' --yes
    """
    if not router:
        raise InvalidRequest("rm needs a router: name one or several; `topics router ls` lists them")
    screen = Screen(json)

    async def work(client: Client) -> int:
        for name in router:
            one = client.router(name)
            waiting = counted((await one.state()).lag_records, "record")
            if not await agreed(screen, f"Remove {name}, which has {waiting} still to forward?", yes=yes):
                screen.note(f"{name} is not removed", "yellow")
                return Exit.FAILED
            dropped = await one.drop()
            screen.show({"router": name, "deleted": dropped.deleted}, partial(_said, f"removed {name}"))
        return Exit.OK

    return target.run(work)


SUMMARY = "Routers, which copy what one topic gets into another: list, put, look at and remove them."
COMMANDS = (ls, put, show, rm)


def _match(tag: str | None, tag_prefix: str | None) -> Match | None:
    if tag is not None and tag_prefix is not None:
        raise InvalidRequest("--tag and --tag-prefix both name tags: give one of them", field="tag")
    if tag is not None:
        return ["tag", "Eq", tag]
    return None if tag_prefix is None else ["tag", "Glob", f"{tag_prefix}*"]


# ---- what is shown of routers


def _fields(state: RouterState) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(router_fields(state))
    return fields


def routers_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("router", "source", "dest"):
        table.add_column(name, overflow="fold", style="cyan" if name == "router" else "")
    for name in ("forwarded", "waiting", "behind"):
        table.add_column(name, justify="right")
    table.add_column("state", overflow="fold")
    return table


def add_router(table: Table, state: RouterState) -> None:
    table.add_row(
        Text(state.router),
        Text(state.config.source),
        Text(state.config.dest),
        f"{state.forwarded_total:,}",
        f"{state.lag_records:,}",
        _behind(state),
        _condition(state),
    )


def _behind(state: RouterState) -> str:
    return f"{state.lag_ms / 1000:,.1f} s" if state.lag_ms else ""


def _condition(state: RouterState) -> Text:
    if state.stalled is not None:
        return Text(f"stalled: {printable(state.stalled)}", style="bold red")
    return Text("forwards", style="green")


def _whole(state: RouterState) -> Table:
    return fields_grid(
        ("state", _condition(state)) if name == "stalled" else (name.replace("_", " "), _shown(name, value))
        for name, value in _fields(state).items()
        if value is not None or name in ("stalled", "filter")
    )


def _shown(name: str, value: object) -> Text:
    if name.endswith("_ts") and isinstance(value, int):
        return Text(moment(value, "seconds"))
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, list | tuple):
        return Text(printable(" ".join(map(str, value))))
    if isinstance(value, int):
        return Text(f"{value:,}")
    return Text("all records" if value is None else printable(str(value)), style="bold" if name == "router" else "")


def _said(text: str) -> Text:
    return Text(printable(text), style="green")
