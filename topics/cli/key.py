"""`topics key …`: managed keys. Create, list and revoke them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli import eventloop
from topics.cli.accounts import Fields, desk_at
from topics.cli.durations import milliseconds
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.clock import SystemClock
from topics.errors import InvalidRequest

SCOPES_DEFAULT = ("read", "write")


def create(
    name: Annotated[str, Parameter(help="What the key is for.")],
    /,
    *,
    scope: Annotated[
        list[str],
        Parameter(
            help="What it may do: read, write, delete or admin; several may be named. Without one, read and write.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    prefix: Annotated[
        list[str],
        Parameter(
            help="Only names that begin with this; several may be named. Without one, every name.", show_default=False
        ),
    ] = [],  # noqa: B006
    expires: Annotated[
        str | None, Parameter(help="How long it is good for, like 90d; without one, for ever.", show_default=False)
    ] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Make a managed key and print it. It is shown now and never again.

    For example:

        topics key create ci --scope read --scope write --prefix ci. --expires 90d
    """
    screen = Screen(json)
    expires_ts = None if expires is None else SystemClock().now_ms() + milliseconds("expires", expires)

    async def work() -> Fields:
        async with desk_at(target, create=True) as desk:
            return await desk.create_key(name, scope or list(SCOPES_DEFAULT), prefix, expires_ts)

    made = eventloop.run(work())
    if "warning" in made:
        screen.note(made["warning"], "yellow")
    screen.show(made, lambda: Text(made["key"], style="bold green"))
    if not screen.as_json:
        screen.note(f"Keep it: nobody can show it again. `topics key revoke {made['id']}` ends it.")


def ls(*, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """List managed keys, without their secrets, the newest first.

    For example:

        topics key ls
    """
    screen = Screen(json)

    async def work() -> list[Fields]:
        async with desk_at(target) as desk:
            return await desk.keys()

    found = eventloop.run(work())
    if screen.as_json:
        screen.lines(map(msgspec.json.encode, found))
        return
    nothing = Text("no managed keys yet; `topics key create NAME` makes one", style="green")
    screen.out.print(_table(found) if found else nothing, soft_wrap=not found)


def revoke(
    *key: Annotated[str, Parameter(help="The id of a key, or its name where only one has it; one or several.")],
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """End managed keys at once: nothing with them is answered any more, and their streams end.

    For example:

        topics key revoke ci
    """
    if not key:
        raise InvalidRequest("revoke needs a key: name one or several; `topics key ls` shows them")
    screen = Screen(json)

    async def work() -> None:
        async with desk_at(target) as desk:
            for named in key:
                ended = await desk.revoke_key(_id_of(named, await desk.keys()))
                said = f"revoked {printable(ended['name'])} ({ended['id']})"
                screen.show(ended, partial(Text, said, style="green"))

    eventloop.run(work())


SUMMARY = "Managed keys of a server: create, list and revoke them."
COMMANDS = (create, ls, revoke)


def _id_of(named: str, keys: list[Fields]) -> str:
    """The id of the key that is meant: by its id, or by a name that one key that works has."""
    having = [key["id"] for key in keys if key["name"] == named and key["status"] == "active"]
    if len(having) > 1:
        raise InvalidRequest(
            f"{len(having)} keys have the name {named}: say which by its id, one of {', '.join(having)}", field="key"
        )
    return having[0] if having else named


def _table(found: list[Fields]) -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("id", "name", "scopes", "prefixes", "status", "made by", "made", "expires", "last used"):
        table.add_column(name, overflow="fold", style="cyan" if name == "id" else "", no_wrap=name == "id")
    for key in found:
        table.add_row(
            key["id"],
            Text(printable(key["name"])),
            ", ".join(key["scopes"]),
            Text(", ".join(key["prefixes"]) or "any"),
            Text(key["status"], style="" if key["status"] == "active" else "yellow"),
            Text(printable(key["created_by"])),
            moment(key["created_ts"], "minutes"),
            moment(key["expires_ts"], "minutes"),
            moment(key["last_used_ts"], "minutes"),
        )
    return table
