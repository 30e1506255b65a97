"""`topics pipeline …`: see how pipelines are, let them rest and go on, forget them; and run them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import pipeline_names
from topics.cli.pipelinepicture import add_pipeline, pipelines_table, whole
from topics.cli.pipelinerun import run
from topics.cli.pretty import moment
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.cli.topic import Yes
from topics.client import Client
from topics.errors import InvalidRequest
from topics.limits import REPORT_LINES_MAX
from topics.pipelinemodel import PipelineState
from topics.wire.pipeline import pipeline_fields

Name = Annotated[str, Parameter(help="The pipeline; of a table's routes, routes:TABLE.", completer=pipeline_names)]
Prefix = Annotated[
    str, Parameter(help="Only names that begin with this.", show_default=False, completer=pipeline_names)
]
_STYLES = {"error": "red", "warning": "yellow", "debug": "dim"}


def ls(prefix: Prefix = "", /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """List pipelines with how they are, where, and how far behind. The routes of each table are one of them.

    For example:

        topics pipeline ls
    """
    screen = Screen(json)
    found = target.run(partial(_states, prefix))
    if screen.as_json:
        screen.lines(msgspec.json.encode(pipeline_fields(state)) for state in found)
        return
    table = pipelines_table()
    for state in found:
        add_pipeline(table, state)
    nothing = Text("no pipelines yet; `topics sql` and CREATE PIPELINE make one, see docs/PIPELINES.md", style="green")
    screen.out.print(table if found else nothing, soft_wrap=not found)


def status(
    pipeline: Annotated[
        str, Parameter(help="The pipeline; all of them when none is named.", completer=pipeline_names)
    ] = "",
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Show all about a pipeline: position, lag in records and seconds, rates, the last error, Spark's own page.

    Ends with 1 when one has failed or its runner is lost. For example:

        topics pipeline status big_orders
    """
    screen = Screen(json)

    async def work(client: Client) -> list[PipelineState]:
        return [await client.pipeline(pipeline).state()] if pipeline else await _states("", client)

    found = target.run(work)
    for number, state in enumerate(found):
        if number and not screen.as_json:
            screen.out.print()
        screen.show(pipeline_fields(state), partial(whole, state))
    return Exit.FAILED if any(state.condition in ("failed", "lost") for state in found) else Exit.OK


def logs(
    pipeline: Name,
    /,
    *,
    limit: Annotated[int, Parameter(help="As many of the last lines as this.")] = REPORT_LINES_MAX,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show the last lines that the runner of a pipeline has sent.

    For example:

        topics pipeline logs big_orders --limit 20
    """
    screen = Screen(json)
    lines = target.run(lambda client: client.pipeline(pipeline).logs(limit))
    if screen.as_json:
        screen.lines(map(msgspec.json.encode, lines))
        return
    for line in lines:
        text = Text(moment(line.ts), style="dim")
        text.append(f"  {printable(line.message)}", style=_STYLES.get(line.level, ""))
        screen.out.print(text, soft_wrap=True)


def pause(pipeline: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Let a pipeline rest: its runner stops it and keeps its position.

    For example:

        topics pipeline pause big_orders
    """
    screen = Screen(json)
    state = target.run(lambda client: client.pipeline(pipeline).pause())
    screen.show(pipeline_fields(state), partial(Text, f"{state.pipeline} is paused", style="green"))


def resume(pipeline: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Let a pipeline go on where it was paused.

    For example:

        topics pipeline resume big_orders
    """
    screen = Screen(json)
    state = target.run(lambda client: client.pipeline(pipeline).resume())
    screen.show(pipeline_fields(state), partial(Text, f"{state.pipeline} goes on", style="green"))


def drop(
    *pipeline: Annotated[str, Parameter(help="One pipeline or several.", completer=pipeline_names)],
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Forget pipelines: their runners stop them, and what they have written stays.

    On a terminal it asks first. For example:

        topics pipeline drop big_orders --yes
    """
    if not pipeline:
        raise InvalidRequest("drop needs a pipeline: name one or several; `topics pipeline ls` lists them")
    screen = Screen(json)

    async def work(client: Client) -> int:
        for name in pipeline:
            one = client.pipeline(name)
            state = await one.state()
            if not await agreed(screen, f"Drop {name}, which is {state.condition.value}?", yes=yes):
                screen.note(f"{name} is not dropped", "yellow")
                return Exit.FAILED
            screen.show(await one.drop(), partial(Text, printable(f"dropped {name}"), style="green"))
        return Exit.OK

    return target.run(work)


SUMMARY = "Pipelines, which make topics of tables, topics of topics, and tables of topics: look, pause, drop and run."
COMMANDS = (ls, status, logs, pause, resume, drop, run)


async def _states(prefix: str, client: Client) -> list[PipelineState]:
    return [state async for state in client.pipelines(prefix)]
