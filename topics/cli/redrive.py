"""`topics redrive`: records appended again in bulk, through a filter and a transform."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.sparkflags import DEFAULT_SPARK, SparkFlags, server_of
from topics.cli.target import DEFAULT_TARGET, Target
from topics.errors import InvalidRequest

COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())


def redrive(
    source: Annotated[str, Parameter(help="The topic to read.", completer=topic_names)],
    /,
    *,
    use_spark: Annotated[
        bool, Parameter(name="--spark", negative="", show_default=False, help="Run it with Spark; has to be said.")
    ] = False,
    to: Annotated[
        str,
        Parameter(
            help="The topic to append to; without it dead letters go where they came from.",
            show_default=False,
            completer=topic_names,
        ),
    ] = "",
    where: Annotated[str, Parameter(help="An SQL condition over seq, ts, tag, data, value.…", show_default=False)] = "",
    transform: Annotated[str, Parameter(help="An SQL expression for the new data.", show_default=False)] = "",
    schema: Annotated[
        str, Parameter(help="The fields of the data in DDL, so that `value.field` is known.", show_default=False)
    ] = "",
    from_seq: Annotated[int, Parameter(help="The first seq of each partition.")] = 1,
    rate: Annotated[int, Parameter(help="So many a second at most; 0 is no limit.")] = 0,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False, help="Only say how many.")] = False,
    job: Annotated[str, Parameter(help="A job that did not end: do what is left of it.", show_default=False)] = "",
    json: JsonFlag = None,
    spark: SparkFlags = DEFAULT_SPARK,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Append records of a topic again, in bulk, each once. They also stay where they are.

    `topics queue redrive` moves dead letters one by one on the server; this is for many, with a filter and a transform.
    The job's name is said at the beginning: with `--job` it is ended after a failure, and nothing is done twice. For
    example:

        topics redrive jobs.dead --spark --to jobs --where "tag IS NULL" --dry-run
    """
    if not use_spark:
        raise InvalidRequest(
            "say --spark to run this with Spark; `topics queue redrive` moves dead letters without it",
            field="spark",
            expected="--spark",
        )
    screen = Screen(json)
    url, key = server_of(target)
    scopes = ("read",) if dry_run else ("read", "write")
    with spark.session(target, *scopes) as session, screen.progress(*COLUMNS) as progress:
        from topics.spark.redrive import Wanted, begin
        from topics.spark.redrive import redrive as run

        wanted = Wanted(source, to, where, transform, schema, from_seq)
        name = job or begin(source, url, key)
        screen.note(f"job {name}")
        task = progress.add_task("appending", total=None)
        told = run(
            session,
            wanted,
            url=url,
            key=key,
            job_id=name,
            dry_run=dry_run,
            rate=rate,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    said = f"{counted(told.count, 'record')} of {told.scanned:,} {'would be' if dry_run else 'are'} appended again"
    lost = f"; {told.lost:,} were lost before" if told.lost else ""
    screen.show(told, lambda: Text(printable(said + lost), style="yellow" if told.lost else "green"))
    return Exit.OK
