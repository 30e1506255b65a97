"""`topics audit …`: the audit log of a server or a directory. Follow it, search it, and see whether it was changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import islice, takewhile
from typing import Annotated
from urllib.parse import urlencode

import msgspec
from cyclopts import Parameter
from rich.text import Text

from topics import settings as setting_table
from topics.cli import eventloop
from topics.cli.accounts import Fields, RemoteDesk, calling
from topics.cli.durations import milliseconds
from topics.cli.exitcode import Exit
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, Target, require_directory
from topics.clock import SystemClock
from topics.errors import InvalidRequest
from topics.jsontext import NOT_UNDERSTOOD
from topics.server.auditfile import AuditFile
from topics.server.auditreading import Search, verify_directory
from topics.storage.fs import RealFs

FOLLOW_S = 1.0
PAGE = 1000
_SHOWN = {"seq", "at", "action", "name", "who", "key", "outcome", "address"}
"""What a line must have to be shown."""


def tail(
    *,
    lines: Annotated[int, Parameter(name=["--lines", "-n"], help="How many of the last lines.")] = 20,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], help="Go on with what comes.", negative="")] = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show the last lines of the audit log, the newest last.

    For example:

        topics audit tail -n 50
    """
    if lines < 0:
        raise InvalidRequest(f"--lines must be 0 or more, not {lines}", field="lines", expected="0 or more")
    screen = Screen(json)

    async def work() -> None:
        # Also of none, the newest is where to go on from.
        found = await _found(target, Search(), screen.note, limit=max(lines, 1))
        shown_seq = found[0]["seq"] if found else 0
        for entry in reversed(found[:lines]):
            _print(screen, entry)
        if follow:
            await eventloop.while_read(_follow(target, screen, shown_seq))

    eventloop.run(work())


async def _follow(target: Target, screen: Screen, shown_seq: int) -> None:
    while True:
        await asyncio.sleep(FOLLOW_S)
        for entry in reversed(await _found(target, Search(), _unsaid, after_seq=shown_seq)):
            _print(screen, entry)
            shown_seq = entry["seq"]


def search(
    text: Annotated[str, Parameter(help="Anywhere in a line, in any case.", show_default=False)] = "",
    /,
    *,
    action: Annotated[str, Parameter(help="Part of the action, like sign_in.", show_default=False)] = "",
    name: Annotated[str, Parameter(help="What it was done to.", show_default=False)] = "",
    who: Annotated[str, Parameter(help="An e-mail, or the name or id of a key.", show_default=False)] = "",
    outcome: Annotated[str, Parameter(help="begun, done, or the code of an error.", show_default=False)] = "",
    since: Annotated[str | None, Parameter(help="Not older than this, like 24h.", show_default=False)] = None,
    limit: Annotated[int, Parameter(help="As many lines at most.")] = 100,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Find lines of the audit log that fit all that is asked for, the newest first.

    For example:

        topics audit search --action DELETE --since 24h
        topics audit search orders --limit 10
    """
    if limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}", field="limit", expected="1 or more")
    screen = Screen(json)
    from_ms = 0 if since is None else SystemClock().now_ms() - milliseconds("since", since)
    wanted = Search(action, name, who, outcome, text, from_ms)
    for entry in eventloop.run(_found(target, wanted, screen.note, limit=limit)):
        _print(screen, entry)


def verify(*, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> int:
    """Follow the chain of hashes through the audit log. Ends with 1 when it does not hold.

    The files are compared with their copy in the topic _audit, so lines that are missing at the end are found as well.
    With --dir that takes a directory that no server has open. Note the last hash somewhere else now and then: a chain
    that still has it was not rewritten. For example:

        topics audit verify
        topics audit verify --dir ./data
    """
    screen = Screen(json)
    verdict = eventloop.run(_verdict(target))
    said = f"intact: {counted(verdict['line_count'], 'line')}, the last is {verdict['last_seq']} {verdict['last_hash']}"
    if not verdict["intact"]:
        said = f"NOT intact after {counted(verdict['line_count'], 'line')}: {verdict['problem']}"
    if why := verdict.get("copy_not_compared"):
        screen.note(f"the files were not compared with their copy, so lines at the end may be missing: {why}")
    screen.show(verdict, lambda: Text(printable(said), style="green" if verdict["intact"] else "bold red"))
    return Exit.OK if verdict["intact"] else Exit.FAILED


SUMMARY = "The audit log: follow it, search it, and see whether anybody changed it."
COMMANDS = (tail, search, verify)


# ---- where it comes from


async def _found(
    target: Target, wanted: Search, on_bad: Callable[[str], None], *, limit: int | None = None, after_seq: int = 0
) -> list[Fields]:
    """The lines that fit, the newest first: as many as the limit at most, and only those behind a number."""
    if target.address is None:
        behind = takewhile(lambda entry: entry["seq"] > after_seq, _in_files(target, wanted, on_bad))
        return list(islice(behind, limit))
    caller = calling(target)
    caller.open()
    desk = RemoteDesk(caller)
    try:
        found: list[Fields] = []
        cursor = ""
        while limit is None or len(found) < limit:
            query = {name: value for name, value in _query(wanted).items() if value}
            query |= {"page_size": PAGE if limit is None else min(PAGE, limit - len(found))}
            query |= {"cursor": cursor} if cursor else {}
            page = await desk.call("GET", f"/v1/audit?{urlencode(query)}", repeatable=True)
            behind_it = [entry for entry in page["entries"] if entry["seq"] > after_seq]
            found += behind_it
            cursor = page.get("next_cursor", "")
            if not cursor or len(behind_it) < len(page["entries"]):
                break
        return found
    finally:
        await caller.close()


def _query(wanted: Search) -> Fields:
    fields = asdict(wanted)
    return {"from_ts" if name == "from_ms" else "to_ts" if name == "to_ms" else name: fields[name] for name in fields}


def _in_files(target: Target, wanted: Search, on_bad: Callable[[str], None]) -> Iterator[Fields]:
    assert target.dir is not None
    require_directory(target.dir)
    files = AuditFile(RealFs(), target.dir)
    for path in reversed(files.files()):
        for number, line in reversed(list(enumerate(files.lines(path), 1))):
            entry = _entry(line)
            if entry is None:
                on_bad(f"{path}, line {number} is left out: it cannot be read; `topics audit verify` says what holds")
            elif wanted.finds(entry, line):
                yield entry


def _entry(line: bytes) -> Fields | None:
    """What a line says; None when somebody made it unreadable."""
    try:
        entry = msgspec.json.decode(line)
    except NOT_UNDERSTOOD:
        return None
    return entry if isinstance(entry, dict) and entry.keys() >= _SHOWN else None


def _unsaid(text: str) -> None:
    """For what was said when the lines before were shown."""


async def _verdict(target: Target) -> Fields:
    if target.address is not None:
        caller = calling(target)
        caller.open()
        try:
            return await RemoteDesk(caller).call("GET", "/v1/audit/verify", repeatable=True)
        finally:
            await caller.close()
    assert target.dir is not None
    require_directory(target.dir)
    settings = setting_table.build(asdict(setting_table.load()) | {"data_dir": target.dir})
    verdict, unseen = await verify_directory(settings)
    fields: Fields = {
        "intact": not verdict.problem,
        "line_count": verdict.line_count,
        "first_seq": verdict.first_seq,
        "last_seq": 0 if verdict.last is None else verdict.last.seq,
        "last_hash": "" if verdict.last is None else verdict.last.hash,
    }
    fields |= {"problem": verdict.problem} if verdict.problem else {}
    return fields | ({"copy_not_compared": unseen} if unseen else {})


def _print(screen: Screen, entry: Fields) -> None:
    if screen.as_json:
        screen.lines([msgspec.json.encode(entry)])
        return
    who = entry["who"] or entry["key"] or "everybody"
    said = f"{moment(entry['at'], 'seconds')}  {entry['action']}  {entry['name']}  by {who}"
    if entry["address"]:
        said += f" from {entry['address']}"
    failed = entry["outcome"] not in ("begun", "done")
    text = Text(printable(said), style="yellow" if failed else "")
    if failed:
        text.append(f"  {printable(entry['outcome'])}", style="bold")
    screen.out.print(text, soft_wrap=True)
