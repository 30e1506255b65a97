"""`topics lake …`: history in Delta tables. Archive topics, see how far that is, and look after the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.durations import milliseconds
from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.partitions import every_topic
from topics.cli.screen import JsonFlag, Screen, counted, printable, sized
from topics.cli.sparkflags import DEFAULT_SPARK, SparkFlags, require_lake, server_of
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.errors import InvalidRequest
from topics.settings import Unit, parse_number

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from topics.spark.lakecare import LakeState

Location = Annotated[str, Parameter(help="The lake: a directory, or an address like s3://bucket/lake.")]
Names = Annotated[list[str], Parameter(help="Topics, or prefixes with a `*` behind; all when none is named.")]
LOOK_S = 1
FORGET_MS = 10_000


def archive(
    location: Location,
    topics: Names = [],  # noqa: B006
    /,
    *,
    available_now: Annotated[
        bool, Parameter(negative="", show_default=False, help="Archive what there is now, and end.")
    ] = False,
    every: Annotated[str, Parameter(help="How often to commit, like 10s or 5min.")] = "10s",
    name: Annotated[str, Parameter(help="What the server calls this archive.")] = "lake",
    layout: Annotated[str, Parameter(help="Directories by `topic,date`, `topic` or `date`; fixed at creation.")] = (
        "topic,date"
    ),
    json: JsonFlag = None,
    spark: SparkFlags = DEFAULT_SPARK,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Copy topics into a Delta table, each record once, and go on as they grow.

    It goes on where it was, also after a crash. The server is told how far it is: with `protect_unarchived` on a topic
    retention waits for it. For example:

        topics lake archive ./lake orders --available-now
    """
    screen = Screen(json)
    (url, key), every_ms = server_of(target), milliseconds("every", every)
    with spark.session(target, "read", "write") as session:
        from topics.spark.archive import archive as begin

        query = begin(
            session,
            location,
            ",".join(topics) or "*",
            url=url,
            key=key,
            name=name,
            layout=layout,
            available_now=available_now,
            every_ms=every_ms,
        )
        try:
            _watch(screen, query)
        except KeyboardInterrupt:
            query.stop()
            raise
    found = _state(location)
    screen.show(found, lambda: Text(printable(_said(found)), style="green"))
    return Exit.OK


def _watch(screen: Screen, query: StreamingQuery) -> None:
    """Until the query ends; when it fails, this raises what Spark says of it."""
    with screen.progress("{task.description}", "{task.completed} batches", "{task.fields[told]}") as progress:
        task = progress.add_task("archiving", total=None, told="")
        while not query.awaitTermination(LOOK_S):
            last = query.lastProgress
            if last is not None:
                progress.update(task, completed=last.batchId + 1, told=f"{last.processedRowsPerSecond:,.0f} ranges/s")


def status(
    location: Location,
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Show what a lake holds, and how far behind the server's topics it is.

    For example:

        topics lake status ./lake
    """
    screen = Screen(json)
    found = _state(location)
    behind = target.run(_behind) if target.address is not None else {}
    if screen.as_json:
        rows = [{"topic": row.topic, "files": row.files, "count": row.count, "bytes": row.bytes,
                 "first_date": row.first_date, "last_date": row.last_date, "behind": behind.get(row.topic)}
                for row in found.topics]  # fmt: skip
        screen.show({"location": found.location, "version": found.version, "topics": rows}, Table)
    else:
        screen.out.print(_table(found, behind))
    return Exit.OK


def ls(location: Location, /, *, json: JsonFlag = None) -> int:
    """List the topics in a lake, without asking a server.

    For example:

        topics lake ls ./lake
    """
    screen = Screen(json)
    found = _state(location)
    screen.show(found, lambda: _table(found, {}))
    return Exit.OK


async def _behind(client: Client) -> dict[str, int]:
    """How many seqs the slowest archive of each topic has yet to take, over all partitions."""
    found: dict[str, int] = {}
    async for states in every_topic(client):
        late = [max(archive.behind for archive in state.archives) for state in states if state.archives]
        if late:
            found[states[0].topic] = sum(late)
    return found


def optimize(
    location: Location,
    /,
    *,
    target_size: Annotated[str, Parameter(help="How large files are to become, like 256MiB.")] = "256MiB",
    json: JsonFlag = None,
) -> int:
    """Make large files of small ones, so that reading the lake is fast. Nobody is disturbed by it.

    For example:

        topics lake optimize ./lake
    """
    size_bytes = parse_number(target_size, Unit.BYTES)
    if not size_bytes:
        expected = "a size like 256MiB"
        raise InvalidRequest(
            f"--target-size={target_size}: expected {expected}", field="target_size", expected=expected
        )
    require_lake()
    from topics.spark.lakecare import optimize as compact

    told = compact(location, size_bytes)
    said = f"{counted(told.files_removed, 'small file')} became {told.files_added:,}"
    Screen(json).show(told, lambda: Text(said, style="green"))
    return Exit.OK


def vacuum(
    location: Location,
    /,
    *,
    older_than: Annotated[str, Parameter(help="Keep files that nobody needs any more for so long.")] = "7d",
    keep_days: Annotated[int, Parameter(help="Drop records of days older than so many; 0 keeps all.")] = 0,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False, help="Only say how many.")] = False,
    json: JsonFlag = None,
) -> int:
    """Delete files that no version of the lake needs any more, and days that are not to be kept.

    For example:

        topics lake vacuum ./lake --keep-days 365 --dry-run
    """
    require_lake()
    from topics.spark.lakecare import vacuum as sweep

    hours = milliseconds("older-than", older_than) // 3_600_000
    told = sweep(location, hours, keep_days, dry_run)
    would = "would be " if dry_run else ""
    said = (
        f"{counted(told.files_deleted, 'file')} {would}deleted, {counted(told.rows_dropped, 'record')} {would}dropped"
    )
    Screen(json).show(told, lambda: Text(said, style="green"))
    return Exit.OK


def erase(
    location: Location,
    topic: Annotated[str, Parameter(help="The topic.", completer=topic_names)],
    /,
    *,
    tag: Annotated[str, Parameter(help="The tag; with a `*` behind it, all tags that begin so.")],
    lake_only: Annotated[
        bool, Parameter(negative="", show_default=False, help="Leave the server's records as they are.")
    ] = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Erase records by tag, from the server and from the lake, so that their bytes are gone; prints a receipt.

    Ends with 1 when a file may still hold some, because a query may be about to commit it: erase again later. For
    example:

        topics lake erase ./lake orders --tag user:7
    """
    require_lake()
    from topics.spark.lakeerase import erase as rewrite

    screen = Screen(json)
    # The server first: what is archived meanwhile cannot hold them any more.
    deleted = 0 if lake_only else target.run(lambda client: _erase(client, topic, tag))
    receipt = rewrite(location, topic, tag)
    said = f"{counted(receipt.erased_count, 'record')} erased from the lake, {deleted:,} from the server"
    late = f"; {counted(len(receipt.pending_files), 'file')} may hold more: erase again in an hour"
    fields = {name: getattr(receipt, name) for name in receipt.__struct_fields__}
    fields |= {"complete": receipt.complete, "erased_from_server": None if lake_only else deleted}
    style = "green" if receipt.complete else "yellow"
    screen.show(fields, lambda: Text(said + ("" if receipt.complete else late), style=style))
    return Exit.OK if receipt.complete else Exit.FAILED


async def _erase(client: Client, name: str, tag: str) -> int:
    topic = client.topic(name)
    match = ["tag", "Glob" if tag.endswith("*") else "Eq", tag]
    partitions = (await topic.state(touch=False)).partitions
    return sum(
        [(await topic.delete(match=match, partition=number, erase=True)).deleted for number in range(partitions)]
    )


def forget(
    topic: Annotated[str, Parameter(help="The topic.", completer=topic_names)],
    /,
    *,
    name: Annotated[str, Parameter(help="What the server calls the archive.")] = "lake",
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Have the server forget an archive that nobody goes on with: retention waits for it no longer.

    The lake stays as it is. A key for it needs the scope `admin`. For example:

        topics lake forget orders
    """
    require_lake()
    from topics.spark.server import Server

    url, key = server_of(target)
    server = Server(url, key, FORGET_MS)
    try:
        dropped = server.drop_archive(topic, name)
    finally:
        server.close()
    said = f"{topic} waits for {name} no longer" if dropped else f"{topic} has no archive {name}"
    Screen(json).show({"topic": topic, "archive": name, "dropped": dropped}, lambda: Text(printable(said)))
    return Exit.OK


def _state(location: str) -> LakeState:
    require_lake()
    from topics.spark.lakecare import state

    return state(location)


def _said(found: LakeState) -> str:
    return f"{found.location} holds {counted(found.count, 'record')} of {counted(len(found.topics), 'topic')}"


def _table(found: LakeState, behind: dict[str, int]) -> Table:
    table = Table(box=None, header_style="bold")
    for head in ("topic", "records", "size", "files", "from", "to", "behind"):
        table.add_column(head, justify="left" if head in ("topic", "from", "to") else "right")
    for row in found.topics:
        late = f"{behind[row.topic]:,}" if row.topic in behind else ""
        cells = (printable(row.topic), f"{row.count:,}", sized(row.bytes), f"{row.files:,}")
        table.add_row(*cells, row.first_date, row.last_date, late)
    return table


SUMMARY = "History in Delta tables: archive topics, see how far that is, and look after the files."
COMMANDS = (archive, ls, status, optimize, vacuum, erase, forget)
