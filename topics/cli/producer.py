"""`topics producer …`: producers that the server remembers for good. List them, and forget one."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.heap import Yes
from topics.cli.pretty import moment
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.errors import InvalidRequest
from topics.producermodel import ProducerState

Topic = Annotated[
    str | None,
    Parameter(help="Producers of records of this topic; without it, producers of batches.", show_default=False),
]


def ls(
    *,
    topic: Topic = None,
    prefix: Annotated[str, Parameter(help="Only ids that begin with this.", show_default=False)] = "",
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List the producers that are remembered, with the time of their last use.

    For example:

        topics producer ls --topic orders
    """
    screen = Screen(json)

    async def work(client: Client) -> list[ProducerState]:
        return [producer async for producer in client.producers(topic, prefix=prefix)]

    found = target.run(work)
    if screen.as_json:
        screen.lines(map(msgspec.json.encode, found))
        return
    nothing = Text("no producers are remembered", style="green")
    screen.out.print(_table(found) if found else nothing, soft_wrap=not found)


def forget(
    *producer: Annotated[str, Parameter(help="The id of a producer that is never used again; one or several.")],
    topic: Topic = None,
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Forget producers: nothing tells their repeated writes from new ones afterwards.

    On a terminal it asks; elsewhere it needs --yes. For example:

        topics producer forget nightly-import --yes
    """
    if not producer:
        raise InvalidRequest("forget needs a producer: name one or several; `topics producer ls` lists them")
    screen = Screen(json)

    async def work(client: Client) -> int:
        names = ", ".join(producer)
        if not await agreed(
            screen, f"Forget {names}? A repeated write of theirs is then written again.", yes=yes, explicit=True
        ):
            screen.note("they stay", "yellow")
            return Exit.FAILED
        for producer_id in producer:
            done = await client.forget_producer(producer_id, topic=topic)
            said = f"{producer_id} is forgotten" if done.forgotten else f"{producer_id} was not remembered"
            screen.show(done, partial(Text, printable(said), style="green" if done.forgotten else "yellow"))
        return Exit.OK

    return target.run(work)


SUMMARY = "Producers that the server remembers, so that nothing is taken twice: list them, forget one."
COMMANDS = (ls, forget)


def _table(found: list[ProducerState]) -> Table:
    table = Table(header_style="bold", title_justify="left")
    for name in ("producer", "epoch", "sequence", "last used", "kept"):
        table.add_column(name, overflow="fold", style="cyan" if name == "producer" else "")
    for producer in found:
        table.add_row(
            Text(printable(producer.producer_id)),
            str(producer.epoch),
            "" if producer.sequence is None else str(producer.sequence),
            moment(producer.last_used_ts, "minutes"),
            "a day" if producer.one_off else "until forgotten",
        )
    return table
