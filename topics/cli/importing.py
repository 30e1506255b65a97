"""`topics import`: files into a topic."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.sparkflags import DEFAULT_SPARK, SparkFlags, server_of
from topics.cli.target import DEFAULT_TARGET, Target

COLUMNS = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())


def importing(
    path: Annotated[str, Parameter(help="A file, or a directory of files.")],
    topic: Annotated[str, Parameter(help="The topic; it is made if it is not there.", completer=topic_names)],
    /,
    *,
    format: Annotated[
        Literal["parquet", "json", "csv"] | None,
        Parameter(help="What the files are; their names say it when this does not.", show_default=False),
    ] = None,
    data: Annotated[str, Parameter(help="The column that is the data; the whole row as JSON without it.")] = "",
    tag: Annotated[str, Parameter(help="The column that is the tag.", show_default=False)] = "",
    node: Annotated[str, Parameter(help="The column that is the node.", show_default=False)] = "",
    by: Annotated[str, Parameter(help="The column whose value chooses the partition.", show_default=False)] = "",
    job: Annotated[
        str, Parameter(help="A name for this import; one of that name is done once.", show_default=False)
    ] = "",
    json: JsonFlag = None,
    spark: SparkFlags = DEFAULT_SPARK,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Append what is in Parquet, JSON lines or CSV files to a topic, in parallel, each file once.

    Done again within a day, with the same files, it adds nothing: after a failure just repeat it. For example:

        topics import ./orders.csv orders --tag customer
    """
    screen = Screen(json)
    url, key = server_of(target)
    with spark.session(target, "write") as session, screen.progress(*COLUMNS) as progress:
        from topics.spark.load import Mapped, load

        task = progress.add_task("importing", total=None)
        told = load(
            session,
            path,
            topic,
            url=url,
            key=key,
            kind=format or "",
            columns=Mapped(data, tag, node, by),
            job_id=job,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    said = f"{counted(told.count, 'row')} of {counted(told.files, 'file')} are in {topic}; the job is {told.job_id}"
    screen.show(told, lambda: Text(printable(said), style="green"))
    return Exit.OK
