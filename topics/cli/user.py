"""`topics user …`: people who sign in. Add, list, disable, enable and remove them, and give them another password or
role."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli import eventloop
from topics.cli.accounts import AccountDesk, Fields, desk_at
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.errors import InvalidRequest, TopicsError
from topics.wire.account import check_password

Who = Annotated[str, Parameter(help="The e-mail or the id of the user.")]
RoleName = Literal["viewer", "operator", "admin"]
FromStdin = Annotated[
    bool, Parameter(name="--password-stdin", help="Set the password to the first line of stdin.", negative="")
]


def add(
    email: Annotated[str, Parameter(help="By which the user signs in.")],
    /,
    *,
    role: Annotated[
        RoleName, Parameter(help="What the user may do: a viewer reads, an operator writes and deletes as well.")
    ] = "viewer",
    password_stdin: FromStdin = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Add a user and print the link by which they choose a password, once, within seven days.

    For example:

        topics user add ada@example.org --role admin
    """
    screen, password = Screen(json), _password(password_stdin)

    async def work() -> Fields:
        async with desk_at(target, create=True) as desk:
            made = await desk.invite(email, role)
            try:
                return await _finished(desk, made, password)
            except TopicsError:
                # Otherwise there would be a user who has neither a password nor a link.
                await desk.drop_user(made["id"])
                raise

    _show_linked(screen, eventloop.run(work()), "added")


def ls(*, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """List users.

    For example:

        topics user ls
    """
    screen = Screen(json)

    async def work() -> list[Fields]:
        async with desk_at(target) as desk:
            return await desk.users()

    found = eventloop.run(work())
    if screen.as_json:
        screen.lines(map(msgspec.json.encode, found))
        return
    nothing = Text("no users yet; `topics user add EMAIL --role admin` adds one", style="green")
    screen.out.print(_table(found) if found else nothing, soft_wrap=not found)


def passwd(
    user: Who,
    /,
    *,
    password_stdin: FromStdin = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Print a link by which a user chooses a new password; their sessions end.

    For example:

        topics user passwd ada@example.org
    """
    screen, password = Screen(json), _password(password_stdin)

    async def work() -> Fields:
        async with desk_at(target) as desk:
            return await _finished(desk, await desk.new_link(user), password)

    _show_linked(screen, eventloop.run(work()), "a new password for")


def role(
    user: Who,
    role: Annotated[RoleName, Parameter(help="What the user may do from now on.")],
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Give a user another role; it counts at once.

    For example:

        topics user role ada@example.org operator
    """
    _change(Screen(json), target, user, f"is {role} now", role=role)


def disable(user: Who, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Keep a user from signing in, and end their sessions.

    For example:

        topics user disable ada@example.org
    """
    _change(Screen(json), target, user, "cannot sign in any more", disabled=True)


def enable(user: Who, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Let a user who was disabled sign in again.

    For example:

        topics user enable ada@example.org
    """
    _change(Screen(json), target, user, "can sign in again", disabled=False)


def rm(
    *user: Annotated[str, Parameter(help="The e-mail or the id of a user; one or several.")],
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Remove users and end their sessions. Keys that they made stay.

    For example:

        topics user rm ada@example.org
    """
    if not user:
        raise InvalidRequest("rm needs a user: name one or several; `topics user ls` lists them")
    screen = Screen(json)

    async def work() -> None:
        async with desk_at(target) as desk:
            for who in user:
                gone = await desk.drop_user(who)
                screen.show(gone, partial(Text, f"removed {printable(gone['email'])}", style="green"))

    eventloop.run(work())


SUMMARY = "People who sign in to a server: add, list, change and remove them."
COMMANDS = (add, ls, passwd, role, disable, enable, rm)


def _password(from_stdin: bool) -> str | None:
    """A password is never a flag: `ps` would show it."""
    return check_password(sys.stdin.readline().rstrip("\r\n")) if from_stdin else None


async def _finished(desk: AccountDesk, made: Fields, password: str | None) -> Fields:
    if password is not None:
        await desk.use_link(made.pop("link"), password)
        made |= {"status": "active", "link_expires_ts": None}
    return made


def _show_linked(screen: Screen, made: Fields, what: str) -> None:
    if "warning" in made:
        screen.note(made["warning"], "yellow")
    email = printable(made["email"])
    if "link" not in made:
        screen.show(made, lambda: Text(f"{what} {email}, with the password that was given", style="green"))
        return
    screen.show(made, lambda: Text(made["link"], style="bold green"))
    if not screen.as_json:
        screen.note(f"{what} {email}: they choose a password there, once, until {moment(made['link_expires_ts'])}")


def _change(
    screen: Screen, target: Target, who: str, said: str, *, role: str | None = None, disabled: bool | None = None
) -> None:
    async def work() -> Fields:
        async with desk_at(target) as desk:
            return await desk.change_user(who, role, disabled)

    changed = eventloop.run(work())
    screen.show(changed, lambda: Text(f"{printable(changed['email'])} {said}", style="green"))


def _table(found: list[Fields]) -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("email", "role", "status", "signed in", "sessions", "since"):
        table.add_column(name, overflow="fold", style="cyan" if name == "email" else "")
    for user in found:
        table.add_row(
            Text(printable(user["email"])),
            user["role"],
            Text(user["status"], style="" if user["status"] == "active" else "yellow"),
            moment(user["signed_in_ts"], "minutes"),
            str(user["session_count"]),
            moment(user["created_ts"], "minutes"),
        )
    return table
