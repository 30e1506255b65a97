"""`topics group …`: consumer groups by hand. Look at them, consume and ack, move, pause and drop them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.durations import milliseconds
from topics.cli.eventloop import while_read
from topics.cli.lines import Origin, encode, gap_line, record_line
from topics.cli.names import topic_names
from topics.cli.outage import noted
from topics.cli.pretty import gap_text, moment, record_text
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.since import since_ms
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.client.group import StartAt
from topics.errors import InvalidRequest
from topics.groupmodel import GroupBatch, GroupState
from topics.limits import SECOND_MS
from topics.model import Gap

TopicName = Annotated[str, Parameter(help="The topic.", completer=topic_names)]
GroupName = Annotated[str, Parameter(help="The group.")]
Consumer = Annotated[str, Parameter(help="The consumer's name.", show_default=False)]
Partition = Annotated[int, Parameter(help="The partition.")]
Position = Annotated[
    str | None,
    Parameter(
        name="--from",
        help="Where a new group begins: earliest, latest, a seq, or a time like 10m ago or 2026-11-15T12:00.",
        show_default=False,
    ),
]


def ls(topic: TopicName, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """List the groups of a topic: how far each has come, how far it lags behind, what is out.

    For example:

        topics group ls orders
    """
    screen = Screen(json)
    states = target.run(lambda client: client.topic(topic).groups())
    if screen.as_json:
        screen.lines(encode(_fields(state)) for state in states)
        return
    table = _table()
    for state in states:
        _add(table, state)
    nothing = Text(printable(f"{topic} has no groups yet; `topics group consume {topic} NAME` makes one"), "green")
    screen.out.print(table if states else nothing, soft_wrap=not states)


def show(
    topic: TopicName,
    group: GroupName,
    /,
    *,
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show a group: its position, who has which records, and what it lost.

    For example:

        topics group show orders billing
    """
    screen = Screen(json)
    state = target.run(lambda client: client.topic(topic).group(group).state(partition=partition))
    if screen.as_json:
        screen.lines([encode(_fields(state))])
        return
    table = _table()
    _add(table, state)
    screen.out.print(table)
    for found in state.ranges:
        who = f" by {found.consumer}" if found.consumer else ""
        until = f" until {moment(found.deadline, 'seconds')}" if found.deadline else ""
        text = f"{found.first_seq}..{found.last_seq} {found.kind.value}{who}{until}, delivered {found.deliveries}×"
        screen.out.print(Text(printable(text), style="dim"), soft_wrap=True)
    for loss in state.losses:
        text = f"{loss.gap_from}..{loss.gap_to} lost ({loss.reason.value}), and nobody has acked to know"
        screen.out.print(Text(text, style="bold red"), soft_wrap=True)


def consume(
    topic: TopicName,
    group: GroupName,
    /,
    *,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="Records in one batch at most.")] = 100,
    position: Position = None,
    wait: Annotated[str, Parameter(help="How long to wait for records, up to 30s.")] = "0s",
    ack: Annotated[bool, Parameter(negative="", show_default=False, help="Ack what was printed.")] = False,
    follow: Annotated[
        bool,
        Parameter(
            name=["--follow", "-f"], negative="", show_default=False, help="Go on without end, acking each batch."
        ),
    ] = False,
    visibility: Annotated[
        str | None, Parameter(help="For how long they are yours, like 5min; as the topic says.", show_default=False)
    ] = None,
    consumer: Consumer = "",
    partition: Annotated[int | None, Parameter(help="The partition; any when not named.", show_default=False)] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Consume the next records of a group, and print them.

    They are yours until you ack them, or the time is over; then they come again. With -f, a server that goes away is
    waited for, and said so on stderr. For example:

        topics group consume orders billing --limit 10
        topics group consume orders audit --from 10m --ack
    """
    screen = Screen(json)
    wait_ms = milliseconds("wait", wait)
    visibility_ms = None if visibility is None else milliseconds("visibility", visibility)
    start = None if position is None else _position("from", position)

    async def work(client: Client) -> None:
        one = client.topic(topic).group(group, consumer=consumer)
        if follow:
            batches = one.consume(limit, start=start, partition=partition, visibility_ms=visibility_ms)
            await while_read(_print_all(screen, batches))
        else:
            batch = await one.take(
                limit, start=start, wait_ms=wait_ms, partition=partition, visibility_ms=visibility_ms
            )
            _print(screen, batch)
            if ack and batch.last_seq:
                await one.ack(batch)
            else:
                _note(screen, topic, group, batch)

    target.run(work, on_outage=noted(screen, target.name))


def ack(
    topic: TopicName,
    group: GroupName,
    seq: Annotated[int, Parameter(help="Up to this seq, inclusive.")],
    /,
    *,
    consumer: Consumer = "",
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Say that records are done, up to a seq: those of the claim that holds it, and what was never handed out.

    What other consumers have is not touched, and holds the commit back. For example:

        topics group ack orders billing 10
    """
    screen = Screen(json)
    done = target.run(lambda client: client.topic(topic).group(group, consumer=consumer).ack(seq, partition=partition))
    said = f"{done.acked:,} acked; committed {done.committed_seq}, {done.lag:,} behind the head"
    screen.show(done, lambda: Text(said, style="green"))


def reset(
    topic: TopicName,
    group: GroupName,
    /,
    *,
    to: Annotated[str, Parameter(help="earliest, latest, a seq, or a time like 10m ago or 2026-11-15T12:00.")],
    partition: Annotated[int | None, Parameter(help="The partition; all when not named.", show_default=False)] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Have a group go on elsewhere, forwards or backwards. What is claimed is void.

    For example:

        topics group reset orders billing --to earliest
        topics group reset orders billing --to 10m
    """
    screen = Screen(json)
    start = _position("to", to)

    async def work(client: Client) -> None:
        one = client.topic(topic)
        partitions = range((await one.state(touch=False)).partitions) if partition is None else (partition,)
        for number in partitions:
            placed = await one.group(group).reset(start, partition=number)
            where = f"partition {number} of " if len(partitions) > 1 else ""
            said = Text(printable(f"{group} goes on behind seq {placed.committed_seq} in {where}{topic}"), "green")
            screen.show(placed, partial(Text.copy, said))

    target.run(work)


def pause(topic: TopicName, group: GroupName, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Hand out nothing of a group until it is resumed. What is out can be acked.

    For example:

        topics group pause orders billing
    """
    done = target.run(lambda client: client.topic(topic).group(group).pause())
    Screen(json).show(done, lambda: Text(printable(f"{group} is paused"), style="green"))


def resume(topic: TopicName, group: GroupName, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Go on handing out what a paused group has not got.

    For example:

        topics group resume orders billing
    """
    done = target.run(lambda client: client.topic(topic).group(group).resume())
    Screen(json).show(done, lambda: Text(printable(f"{group} goes on"), style="green"))


def rm(topic: TopicName, group: GroupName, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Forget a group, in all partitions. The records stay.

    For example:

        topics group rm orders billing
    """
    done = target.run(lambda client: client.topic(topic).group(group).drop())
    said = f"{group} is gone" if done.deleted else f"there was no group {group}"
    Screen(json).show(done, lambda: Text(printable(said), style="green" if done.deleted else "yellow"))


SUMMARY = "Consumer groups by hand: look at them, consume and ack, move, pause and drop them."
COMMANDS = (ls, show, consume, ack, reset, pause, resume, rm)


def _position(flag: str, given: str) -> StartAt:
    if given in ("earliest", "latest"):
        return given
    if given.isdecimal():
        return int(given)
    try:
        return datetime.fromtimestamp(since_ms(given) / SECOND_MS, UTC)
    except InvalidRequest:
        expected = "earliest, latest, a seq, or a time like 10m ago or 2026-11-15T12:00"
        raise InvalidRequest(f"--{flag}={given}: expected {expected}", field=flag, expected=expected) from None


async def _print_all(screen: Screen, batches: AsyncIterator[GroupBatch]) -> None:
    assert isinstance(batches, AsyncGenerator)
    # Closed at once, while the client is open: a batch that could not be printed is given back.
    async with aclosing(batches):
        async for batch in batches:
            _print(screen, batch)


def _print(screen: Screen, batch: GroupBatch) -> None:
    """What a batch tells, as `topics read` prints it."""
    origin = Origin()
    told = batch.tombstone
    gaps = [] if told is None else [Gap(told.gap_from, told.gap_to, told.reason)]
    if screen.as_json:
        screen.lines([*(gap_line(gap, origin) for gap in gaps), *(record_line(each, origin) for each in batch.records)])
        return
    for gap in gaps:
        screen.out.print(gap_text(gap, origin), soft_wrap=True)
    for record in batch.records:
        screen.out.print(record_text(record, origin), soft_wrap=True)


def _note(screen: Screen, topic: str, group: str, batch: GroupBatch) -> None:
    """What a person may want to do next."""
    if screen.as_json:
        return
    if batch.paused:
        screen.note(f"the group is paused; `topics group resume {topic} {group}` goes on")
    elif not batch.last_seq:
        screen.note("there is nothing new")
    else:
        where = f" --partition {batch.partition}" if batch.partition else ""
        do = f"`topics group ack {topic} {group} {batch.last_seq}{where}`"
        screen.note(f"yours until {moment(batch.deadline, 'seconds')}; {do} when they are done")


def _fields(state: GroupState) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(state)
    return fields | {"lag": state.lag}


def _table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("group", overflow="fold", style="cyan")
    for name in ("partition", "committed", "head", "lag", "in flight", "waiting", "members", "lost"):
        table.add_column(name, justify="right")
    table.add_column("state")
    return table


def _add(table: Table, state: GroupState) -> None:
    numbers = (
        state.partition,
        state.committed_seq,
        state.head_seq,
        state.lag,
        state.in_flight,
        state.waiting,
        state.member_count,
        state.lost_count,
    )
    said = "paused" if state.paused else state.dead_letter_error or "open"
    table.add_row(Text(state.group), *(f"{number:,}" for number in numbers), Text(printable(said)))
