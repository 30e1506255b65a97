"""`topics export`: topics as Parquet files."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.sparkflags import DEFAULT_SPARK, SparkFlags, server_of
from topics.cli.target import DEFAULT_TARGET, Target


def export(
    topics: Annotated[
        str, Parameter(help="Topics with commas between, or a prefix with a `*`.", completer=topic_names)
    ],
    path: Annotated[str, Parameter(help="The directory to make.")],
    /,
    *,
    schema: Annotated[
        str, Parameter(help="The fields of the data in DDL, like 'id bigint'; or infer.", show_default=False)
    ] = "",
    since: Annotated[str, Parameter(help="Only records from this time on.", show_default=False)] = "",
    until: Annotated[str, Parameter(help="Only records before this time.", show_default=False)] = "",
    tags: Annotated[str, Parameter(help="Only these tags, or prefixes with a `*`.", show_default=False)] = "",
    history: Annotated[
        bool, Parameter(negative="", show_default=False, help="Also what is in a lake and not on the server any more.")
    ] = False,
    overwrite: Annotated[
        bool, Parameter(negative="", show_default=False, help="Put it in the place of what is there.")
    ] = (False),
    json: JsonFlag = None,
    spark: SparkFlags = DEFAULT_SPARK,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Write what is in topics into a directory of Parquet files, in parallel.

    For example:

        topics export orders ./orders.parquet --since 2026-01-01
    """
    said = {"schema": schema, "startingTimestamp": since, "endingTimestamp": until, "tags": tags}
    said |= {"history": "lake"} if history else {}
    url, key = server_of(target)
    with spark.session(target, "read") as session:
        from topics.spark.export import export as write

        options = {name: value for name, value in said.items() if value}
        told = write(session, topics, path, url=url, key=key, options=options, overwrite=overwrite)
    sentence = f"{counted(told.count, 'record')} of {topics} are in {path}"
    Screen(json).show(told, lambda: Text(printable(sentence), style="green"))
    return Exit.OK
