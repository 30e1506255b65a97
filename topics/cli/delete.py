"""`topics delete`: records, by seq or by tag, for good."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, counted
from topics.cli.selection import EVERYTHING, Selection
from topics.cli.target import DEFAULT_TARGET, Target
from topics.cli.topic import Yes
from topics.client import Client
from topics.errors import InvalidRequest


def delete(
    topic: Annotated[str, Parameter(help="Where from.", completer=topic_names)],
    /,
    *,
    before: Annotated[int | None, Parameter(help="Records below this seq.", show_default=False)] = None,
    selection: Selection = EVERYTHING,
    erase: Annotated[
        bool,
        Parameter(negative="", show_default=False, help="Return when their bytes are gone from every file, too."),
    ] = False,
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Delete records by seq, by tag, or by both at once, for good and for every reader.

    On a terminal it counts them first and asks. Records that are written later stay, also when their tag matches. For
    example:

        topics delete orders --tag order-1
        topics delete orders --before 100 --erase --yes
    """
    match = selection.match
    if before is None and match is None:
        hint = f"`topics topic rm {topic}` removes the whole topic"
        raise InvalidRequest(f"delete needs --before, --tag or --tag-prefix; {hint}", field="before")
    if before is not None and before < 0:
        raise InvalidRequest(f"--before must be a seq, 0 or more, not {before}", field="before")
    screen = Screen(json)

    async def work(client: Client) -> int:
        one = client.topic(topic)
        partitions, several = await selection.partitions(one)
        if several and before is not None and selection.partition is None:
            raise InvalidRequest(f'seqs of "{topic}" are those of a partition: name it with --partition')
        if screen.can_ask and not yes:
            found = [await one.delete(before, match=match, dry_run=True, partition=each) for each in partitions]
            many = counted(sum(each.deleted for each in found), "record")
            if not await agreed(screen, f"Delete {many} of {topic} for good?", yes=yes):
                screen.note("nothing is deleted", "yellow")
                return Exit.FAILED
        for partition in partitions:
            done = await one.delete(before, match=match, erase=erase, partition=partition)
            where = f"{topic}/{partition}" if several else topic
            bytes_too = ", and their bytes from disk" if done.erased else ""
            said = f"{counted(done.deleted, 'record')} deleted from {where}{bytes_too}; {done.count:,} left"
            screen.show(done, partial(Text, said, style="green"))
        return Exit.OK

    return target.run(work)
