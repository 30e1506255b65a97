"""`topics topic …`: topics themselves. Create, list, look at, configure and remove them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.configflags import NO_CONFIG, ConfigFlags
from topics.cli.exitcode import Exit
from topics.cli.names import topic_names
from topics.cli.partitions import every_topic, partitions_of
from topics.cli.pretty import moment
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, counted, printable, sized
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.core.config import as_wire, default
from topics.errors import Conflict, InvalidRequest
from topics.model import Configured, TopicConfig, TopicState

Name = Annotated[str, Parameter(help="The topic.", completer=topic_names)]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative="", show_default=False, help="Do not ask.")]


def create(
    topic: Annotated[str, Parameter(help="Its name: letters, digits and . _ : - behind the first.")],
    /,
    *,
    if_missing: Annotated[
        bool, Parameter(negative="", show_default=False, help="One that exists is left as it is, and no error.")
    ] = False,
    config: ConfigFlags = NO_CONFIG,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Create a topic; what is not named has its default.

    A topic that exists is not touched. For example:

        topics topic create invoices --durability fsync --ttl-ms 30d --cap-bytes 1GiB
    """
    screen = Screen(json)

    async def work(client: Client) -> Configured:
        return await client.topic(topic).create(if_missing=True, **config.fields())

    made = target.run(work, create=True)
    if not made.created and not if_missing:
        raise Conflict(f'topic "{topic}" exists already; `topics topic config {topic}` changes it')
    fields = {"topic": topic, "created": made.created, "config": as_wire(made.config)}
    screen.show(fields, lambda: _said(f"{topic} is created" if made.created else f"{topic} is there already"))


def ls(
    prefix: Annotated[
        str, Parameter(help="Only names that begin with this.", show_default=False, completer=topic_names)
    ] = "",
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List topics with what they hold, in order of their names.

    For example:

        topics topic ls
        topics topic ls pay --json
    """
    screen = Screen(json)

    async def work(client: Client) -> None:
        table = topics_table()
        rows = 0
        async for states in every_topic(client, prefix):
            whole = totals(states)
            rows += 1
            if screen.as_json:
                screen.show(whole, topics_table)
            else:
                add_topic(table, whole)
        if not screen.as_json:
            screen.out.print(table if rows else _said("no topics yet; `topics write NAME DATA` makes one"))

    target.run(work)


def show(topic: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Show a topic: each partition, and the config with what is not the default in bold.

    For example:

        topics topic show orders
    """
    screen = Screen(json)

    async def work(client: Client) -> list[TopicState]:
        one = client.topic(topic)
        return await partitions_of(one, await one.state(touch=False))

    states = target.run(work)
    fields = {
        "topic": topic,
        "type": states[0].type.value,
        "config": as_wire(states[0].config),
        "partitions": [_partition_fields(state) for state in states],
    }
    if screen.as_json:
        screen.show(fields, topics_table)
        return
    screen.out.print(_partitions_table(topic, states))
    if any(state.archives for state in states):
        screen.out.print(_archives_table(states))
    screen.out.print(_config_table(states[0].config))


def config(
    topic: Name,
    /,
    *,
    changes: ConfigFlags = NO_CONFIG,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show the config of a topic, or change what is named of it.

    The other fields stay as they are. For example:

        topics topic config orders --ttl-ms 7d --cap-records 1000000
    """
    screen = Screen(json)
    fields = changes.fields()

    async def work(client: Client) -> TopicConfig:
        one = client.topic(topic)
        return (await one.configure(**fields)).config if fields else (await one.state(touch=False)).config

    now = target.run(work)
    screen.show({"topic": topic, "config": as_wire(now)}, lambda: _config_table(now))


def rm(
    *topic: Annotated[str, Parameter(help="One topic or several.", completer=topic_names)],
    if_empty: Annotated[
        bool, Parameter(negative="", show_default=False, help="Only when it holds no records.")
    ] = False,
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Remove topics with everything in them, for good.

    On a terminal it says what would go and asks; elsewhere it needs --yes or --if-empty. For example:

        topics topic rm copy --yes
    """
    if not topic:
        raise InvalidRequest("rm needs a topic: name one or several; `topics topic ls` lists them")
    screen = Screen(json)

    async def work(client: Client) -> int:
        for name in topic:
            one = client.topic(name)
            whole = totals(await partitions_of(one, await one.state(touch=False)))
            loss = f"{name} with {counted(whole['count'], 'record')} ({sized(whole['bytes'])})"
            going = _and_routers(await _routers_of(client, name))
            if not await agreed(screen, f"Remove {loss} for good{going}?", yes=yes, explicit=not if_empty):
                screen.note(f"{name} is not removed", "yellow")
                return Exit.FAILED
            dropped = await one.drop(if_empty=if_empty)
            fields = {"topic": name, "deleted": dropped.deleted, "routers": list(dropped.routers)}
            screen.show(fields, partial(_said, f"removed {loss}{_and_routers(dropped.routers)}"))
        return Exit.OK

    return target.run(work)


SUMMARY = "Topics themselves: create, list, look at, configure and remove them."
COMMANDS = (create, ls, show, config, rm)


# ---- what is shown of topics


def totals(states: list[TopicState]) -> dict[str, Any]:
    """A topic as a whole: its partitions added up."""
    first = states[0]
    stopped = [state.stopped for state in states if state.stopped is not None]
    return {
        "topic": first.topic,
        "type": first.type.value,
        "durability": first.config.durability.value,
        "partitions": first.partitions,
        "count": sum(state.count for state in states),
        "bytes": sum(state.bytes for state in states),
        "earliest_seq": first.earliest_seq if len(states) == 1 else None,
        "head_seq": first.head_seq if len(states) == 1 else None,
        "last_write_ts": max((state.last_write_ts or 0 for state in states), default=0) or None,
        "stopped": stopped[0] if stopped else None,
    }


def topics_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("topic", overflow="fold", style="cyan")
    table.add_column("type")
    table.add_column("durability")
    for name in ("records", "size", "first", "last"):
        table.add_column(name, justify="right")
    table.add_column("last write", no_wrap=True)
    return table


def add_topic(table: Table, whole: dict[str, Any]) -> None:
    kind = whole["type"] if whole["partitions"] == 1 else f"{whole['type']} × {whole['partitions']}"
    seqs = ["" if whole[name] is None else f"{whole[name]:,}" for name in ("earliest_seq", "head_seq")]
    table.add_row(
        Text(whole["topic"]),
        kind,
        whole["durability"],
        f"{whole['count']:,}",
        sized(whole["bytes"]),
        *seqs,
        moment(whole["last_write_ts"], "seconds") if whole["stopped"] is None else Text("stopped", style="bold red"),
    )


def _partition_fields(state: TopicState) -> dict[str, Any]:
    names = ("partition", "count", "bytes", "earliest_seq", "head_seq", "evict_floor", "last_write_ts", "last_read_ts")
    return {name: getattr(state, name) for name in (*names, "effective_priority", "epoch", "stopped")} | (
        {"archives": state.archives, "holding": state.holding} if state.archives or state.holding else {}
    )


def _archives_table(states: list[TopicState]) -> Table:
    table = Table(header_style="bold")
    for name in ("archive", "partition", "has up to", "behind", "reported", "location"):
        table.add_column(name, justify="right" if name in ("partition", "has up to", "behind") else "left")
    for state in states:
        for each in state.archives:
            numbers = (str(each.partition), f"{each.upto_seq:,}", f"{each.behind:,}")
            table.add_row(each.archive, *numbers, moment(each.reported_ts, "seconds"), printable(each.location))
    return table


def _partitions_table(topic: str, states: list[TopicState]) -> Table:
    table = Table(title=topic, header_style="bold", title_justify="left", title_style="bold cyan")
    for name in ("partition", "records", "size", "first", "last"):
        table.add_column(name, justify="right")
    table.add_column("last write")
    table.add_column("last read")
    stopped = any(state.stopped for state in states)
    if stopped:
        table.add_column("takes no writes because", overflow="fold", style="red")
    for state in states:
        table.add_row(
            str(state.partition),
            f"{state.count:,}",
            sized(state.bytes),
            f"{state.earliest_seq:,}",
            f"{state.head_seq:,}",
            moment(state.last_write_ts, "seconds"),
            moment(state.last_read_ts, "seconds"),
            *([Text(printable(state.stopped or ""))] if stopped else []),
        )
    return table


def _config_table(config: TopicConfig) -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("config")
    table.add_column("value", overflow="fold")
    defaults = as_wire(default("", config.type))
    for name, value in as_wire(config).items():
        shown = "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        table.add_row(name, Text(shown), style="" if value == defaults[name] else "bold green")
    return table


async def _routers_of(client: Client, topic: str) -> list[str]:
    """The routers from or to a topic, which go with it."""
    found = [state.router async for state in client.routers(source=topic)]
    return sorted([*found, *[state.router async for state in client.routers(dest=topic)]])


def _and_routers(routers: Sequence[str]) -> str:
    if not routers:
        return ""
    return f", with its {'router' if len(routers) == 1 else 'routers'} {', '.join(routers)}"


def _said(text: str) -> Text:
    return Text(printable(text), style="green")
