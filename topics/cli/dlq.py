"""`topics dlq …`: the dead letters of a heap. List and look at them, take them back, and delete them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.heap import Ids, Name, Yes
from topics.cli.heaplines import dead_line, dead_text
from topics.cli.pretty import moment
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.heapmodel import DeadMessage

Messages = Annotated[list[str] | None, Parameter(help="Dead letters by their ids; all when none are named.")]
Reason = Annotated[
    str | None, Parameter(help="Only those that died of this; a * at the end stands for anything.", show_default=False)
]
Limit = Annotated[int, Parameter(name=["--limit", "-n"], help="So many at most; 0 is all of them.", show_default=False)]


def ls(
    heap: Name,
    /,
    *,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="Dead letters at most.")] = 100,
    reason: Reason = None,
    ids: Ids = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List the dead letters of a heap, oldest first.

    For example:

        topics dlq ls tasks
    """
    screen = Screen(json)

    async def work(client: Client) -> None:
        shown = 0
        async for message in client.heap(heap).dead_letters(reason=reason):
            if shown == limit:
                screen.note(f"stopped after {counted(limit, 'dead letter')}; --limit names another number")
                return
            shown += 1
            if ids:
                screen.lines([message.message_id.encode()])
            elif screen.as_json:
                screen.lines([dead_line(message)])
            else:
                screen.out.print(dead_text(message), soft_wrap=True)
        if not shown:
            screen.note("there are none")

    target.run(work)


def show(
    heap: Name,
    message: Annotated[str, Parameter(help="A dead letter, by the id it had as a message.")],
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show a dead letter: the message as it was, why it died, and its last failures.

    For example:

        topics dlq show tasks "$(topics dlq ls tasks --limit 1 --ids)"
    """
    screen = Screen(json)
    found: DeadMessage = target.run(lambda client: client.heap(heap).dead_letter(message))
    if screen.as_json:
        screen.lines([dead_line(found)])
        return
    screen.out.print(dead_text(found), soft_wrap=True)
    for failed in found.history:
        who = f" by {failed.consumer}" if failed.consumer else ""
        text = f"{moment(failed.at_ms, 'seconds')} failed{who}: {failed.reason}"
        screen.out.print(Text(printable(text), style="dim"), soft_wrap=True)


def replay(
    heap: Name,
    messages: Messages = None,
    /,
    *,
    reason: Reason = None,
    limit: Limit = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Take dead letters back into their heap, with no attempt counted.

    For example:

        topics dlq replay tasks
        topics dlq replay tasks --reason 'timeout*' --limit 100
    """
    done = target.run(lambda client: client.heap(heap).replay(messages or (), reason=reason, limit=limit))
    said = f"{counted(done.done_count, 'dead letter')} replayed"
    said += f"; {done.skipped_count} could not go" if done.skipped_count else ""
    Screen(json).show(done, lambda: Text(said, style="green"))


def rm(
    heap: Name,
    messages: Messages = None,
    /,
    *,
    reason: Reason = None,
    limit: Limit = 0,
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Delete dead letters, for good.

    On a terminal it asks; elsewhere it needs --yes. For example:

        topics dlq rm tasks --yes
    """
    screen = Screen(json)

    async def work(client: Client) -> int:
        one = client.heap(heap)
        what = counted(len(messages), "dead letter") if messages else "the dead letters"
        if not await agreed(screen, f"Delete {what} of {heap} for good?", yes=yes, explicit=True):
            screen.note("they stay", "yellow")
            return Exit.FAILED
        done = await one.delete_dead(messages or (), reason=reason, limit=limit)
        said = f"{counted(done.done_count, 'dead letter')} deleted"
        screen.show(done, partial(Text, said, style="green"))
        return Exit.OK

    return target.run(work)


SUMMARY = "The dead letters of a heap: list and look at them, take them back, delete them."
COMMANDS = (ls, show, replay, rm)
