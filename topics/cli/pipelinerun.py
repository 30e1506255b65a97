"""`topics pipeline run`: have declared pipelines run, on this machine's Spark or another one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table

from topics.cli.exitcode import Exit
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.sparkflags import DEFAULT_SPARK, SparkFlags, server_of
from topics.cli.target import DEFAULT_TARGET, Target
from topics.spark.pipeline.checkpoints import checkpoints_for

if TYPE_CHECKING:
    from topics.spark.pipeline.runner import Ended, Runner


def run(
    names: Annotated[
        list[str], Parameter(help="Pipelines, such as `routes:chat.messages`; all when none is named.")
    ] = [],  # noqa: B006
    /,
    *,
    available_now: Annotated[
        bool, Parameter(negative="", show_default=False, help="Do what there is now, and end: for schedulers.")
    ] = False,
    checkpoints: Annotated[
        str,
        Parameter(help="Where positions are kept: a directory, or any path that Hadoop knows.", show_default=False),
    ] = "",
    location: Annotated[
        list[str],
        Parameter(
            help="Where pipelines may read tables and write: a directory or an address, and all below it. May be "
            "repeated; without one anywhere.",
            show_default=False,
            negative="",
        ),
    ] = [],  # noqa: B006
    json: JsonFlag = None,
    spark: SparkFlags = DEFAULT_SPARK,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Run the pipelines that are declared on a server, until it is stopped.

    It begins where each pipeline was, begins again what fails, and follows what is declared, changed, paused and
    dropped meanwhile. `topics pipeline status` shows how they are. Several runners share the work of one server. Ends
    with 1 when a pipeline has failed for good. For example:

        topics pipeline run --available-now
    """
    screen = Screen(json)
    url, key = server_of(target)
    # Whoever runs a Connect server has decided on its UI.
    shown = spark if spark.is_connect else replace(spark, conf=["spark.ui.enabled=true", *spark.conf])
    place = checkpoints_for(spark.master, checkpoints)
    with shown.session(target, "read", "write") as session:
        from topics.spark.pipeline.runner import Runner

        runner = Runner(
            session,
            url=url,
            key=key,
            names=names,
            checkpoints=place,
            available_now=available_now,
            locations=location,
        )
        with _ended_by_signals(runner):
            ended = runner.run()
    screen.show({"pipelines": ended}, lambda: _table(ended))
    return Exit.FAILED if any(each.error is not None for each in ended) else Exit.OK


@contextmanager
def _ended_by_signals(runner: Runner) -> Iterator[None]:
    """Ctrl-C and SIGTERM let the runner end in order: what is done stays done, and the server is told."""
    before = {number: signal.signal(number, lambda *_: runner.stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _table(ended: list[Ended]) -> Table:
    table = Table(box=None, header_style="bold")
    for head in ("pipeline", "state", "error"):
        table.add_column(head)
    for each in ended:
        style = "red" if each.error is not None else ""
        table.add_row(printable(each.pipeline), each.state.value, printable(each.error or ""), style=style)
    return table
