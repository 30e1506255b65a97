"""`topics heap …`: messages by priority, by hand. Make and look at heaps, push, pop and peek, and tidy up."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from topics.cli.durations import milliseconds
from topics.cli.exitcode import Exit
from topics.cli.heaplines import (
    add_heap,
    heap_fields,
    heap_grid,
    heaps_table,
    message_line,
    message_text,
    peeked_line,
    peeked_text,
)
from topics.cli.intake import Intake
from topics.cli.names import heap_names
from topics.cli.question import agreed
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client
from topics.client.heap import HeapFields, MessageFields
from topics.errors import InvalidRequest

CONSUMER = "topics-heap"
"""Who has what is popped by hand, unless somebody else is named."""

Name = Annotated[str, Parameter(help="The heap.", completer=heap_names)]
MessageId = Annotated[str, Parameter(help="A message, by its id.")]
Tokens = Annotated[list[str], Parameter(help="Leases, as pop printed them.")]
Partition = Annotated[int | None, Parameter(help="One partition; all when not named.", show_default=False)]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative="", show_default=False, help="Do not ask.")]
Ids = Annotated[bool, Parameter(negative="", show_default=False, help="Only the ids, a line each.")]


def create(
    heap: Annotated[str, Parameter(help="The name of the new heap.")],
    /,
    *,
    mode: Annotated[
        Literal["min", "max"], Parameter(help="Whether the lowest priority is the best, or the highest.")
    ] = "min",
    partitions: Annotated[int, Parameter(help="How many partitions; for ever.")] = 1,
    lease: Annotated[str | None, Parameter(help="How long a pop leases, like 5min.", show_default=False)] = None,
    max_retries: Annotated[
        int | None, Parameter(help="Failed deliveries before a message is a dead letter.", show_default=False)
    ] = None,
    max_payload_bytes: Annotated[int | None, Parameter(help="How large a payload may be.", show_default=False)] = None,
    no_dead_letters: Annotated[
        bool, Parameter(negative="", show_default=False, help="Nothing dies: what fails is tried for ever.")
    ] = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Make a heap: a topic that is taken from by priority.

    For example:

        topics heap create tasks2 --mode max --partitions 4
    """
    fields: HeapFields = {"mode": mode, "partitions": partitions}
    if lease is not None:
        fields["lease_ms"] = milliseconds("lease", lease)
    if max_retries is not None:
        fields["max_retries"] = max_retries
    if max_payload_bytes is not None:
        fields["max_payload_bytes"] = max_payload_bytes
    if no_dead_letters:
        fields["dead_letter"] = None
    screen = Screen(json)
    info = target.run(lambda client: client.heap(heap).create(**fields), create=True)
    said = f"made {heap}: the {'lowest' if mode == 'min' else 'highest'} priority first"
    screen.show(heap_fields(info), lambda: Text(printable(said), style="green"))


def ls(
    prefix: Annotated[
        str, Parameter(help="Only names that begin with this.", show_default=False, completer=heap_names)
    ] = "",
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List heaps with how many of their messages are ready, leased, delayed and dead.

    For example:

        topics heap ls
    """
    screen = Screen(json)

    async def work(client: Client) -> list[dict[str, object]]:
        return [heap_fields(info) async for info in client.heaps(prefix)]

    heaps = target.run(work)
    table = heaps_table()
    for fields in heaps:
        if screen.as_json:
            screen.show(fields, heaps_table)
        else:
            add_heap(table, fields)
    if not screen.as_json:
        nothing = Text("no heaps yet; `topics heap create NAME` makes one", style="green")
        screen.out.print(table if heaps else nothing, soft_wrap=not heaps)


def show(heap: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Show a heap: its config, its numbers, and where its dead letters go.

    For example:

        topics heap show tasks
    """
    screen = Screen(json)
    info = target.run(lambda client: client.heap(heap).info())
    fields = heap_fields(info)
    screen.show(fields, lambda: heap_grid(fields))
    for warning in info.warnings:
        screen.note(warning, "yellow")


def push(
    heap: Name,
    /,
    *payload: Annotated[str, Parameter(help="The payload of a message, as JSON; all of them or none are enqueued.")],
    priority: Annotated[int, Parameter(name=["--priority", "-p"], help="Of all of them.")] = 0,
    key: Annotated[str | None, Parameter(help="Chooses the partition.", show_default=False)] = None,
    delay: Annotated[str, Parameter(help="How long nobody gets them, like 5min or 1h.")] = "0s",
    max_retries: Annotated[int | None, Parameter(help="As the heap says when not named.", show_default=False)] = None,
    transaction_id: Annotated[
        str | None, Parameter(help="Names this push: said again, it is not done again.", show_default=False)
    ] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Enqueue messages with a priority.

    For example:

        topics heap push tasks '{"send": "welcome"}' --priority 5
        topics heap push tasks 1 2 3 --delay 1h
    """
    if not payload:
        raise InvalidRequest("there is nothing to push: give a payload, as JSON", field="payload", expected="PAYLOAD")
    screen = Screen(json)
    given = Intake(False, False, None, {}, screen.note).arguments(payload)
    delay_ms = milliseconds("delay", delay)
    messages: list[MessageFields] = [
        {
            "payload": each["data"],
            "priority": priority,
            "key": key,
            "delay_ms": delay_ms,
            "max_retries": max_retries,
        }
        for each in given
    ]
    done = target.run(lambda client: client.heap(heap).enqueue_many(messages, transaction_id=transaction_id))
    for message in done.messages:
        screen.show(message, partial(_green, f"{message.message_id}{' was there' if message.duplicate else ''}"))


def pop(
    heap: Name,
    /,
    *,
    max: Annotated[int, Parameter(name=["--max", "-n"], help="How many at most.")] = 1,
    wait: Annotated[str, Parameter(help="How long to wait for the first, up to 30s.")] = "0s",
    lease: Annotated[str | None, Parameter(help="For how long; as the heap says.", show_default=False)] = None,
    ack: Annotated[bool, Parameter(negative="", show_default=False, help="Ack what was printed.")] = False,
    consumer: Annotated[str, Parameter(help="Who has them.")] = CONSUMER,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Take the best messages, and print them with their leases.

    They are yours until you ack them, give them back, or the lease runs out. For example:

        topics heap pop tasks --max 2 --ack
    """
    screen = Screen(json)
    wait_ms = milliseconds("wait", wait)
    lease_ms = None if lease is None else milliseconds("lease", lease)

    async def work(client: Client) -> None:
        messages = await client.heap(heap, consumer=consumer).take(max, wait_ms=wait_ms, visibility_ms=lease_ms)
        if screen.as_json:
            screen.lines(map(message_line, messages))
        else:
            for message in messages:
                screen.out.print(message_text(message), soft_wrap=True)
        if not messages:
            screen.note("there is nothing to do")
        if ack:
            for message in messages:
                await message.ack()
        elif messages and target.address is None:
            screen.note("a directory that is closed takes leases back: with --dir, use --ack")

    target.run(work)


def ack(heap: Name, tokens: Tokens, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> int:
    """Complete messages that were popped, by their leases, which deletes them.

    Fails when one of the leases was gone. For example:

        topics heap ack tasks "$(topics heap pop tasks --json | grep -o 'lease_token":"[^"]*' | cut -d'"' -f3)"
    """
    screen = Screen(json)
    done = target.run(lambda client: client.heap(heap).ack(tokens))
    screen.show(done, lambda: _settled(f"{counted(done.acked, 'message')} done", len(done.lost)))
    return Exit.FAILED if done.lost else Exit.OK


def nack(
    heap: Name,
    tokens: Tokens,
    /,
    *,
    backoff: Annotated[
        str | None, Parameter(help="How long they rest; longer with each attempt.", show_default=False)
    ] = None,
    reason: Annotated[str, Parameter(help="Why, for who looks at them later.", show_default=False)] = "",
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Give back messages that were popped, by their leases.

    Fails when one of the leases was gone. For example:

        topics heap nack tasks "$(topics heap pop tasks --json | grep -o 'lease_token":"[^"]*' | cut -d'"' -f3)"
    """
    screen = Screen(json)
    backoff_ms = None if backoff is None else milliseconds("backoff", backoff)
    done = target.run(lambda client: client.heap(heap).nack(tokens, backoff_ms=backoff_ms, reason=reason))
    screen.show(done, lambda: _settled(f"{counted(done.nacked, 'message')} given back", len(done.lost)))
    return Exit.FAILED if done.lost else Exit.OK


def peek(
    heap: Name,
    /,
    *,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="Messages at most.")] = 10,
    partition: Partition = None,
    ids: Ids = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Look at messages without taking them: ready ones best first, then those that are leased or delayed.

    For example:

        topics heap peek tasks
        topics heap peek tasks --limit 1 --ids
    """
    screen = Screen(json)
    found = target.run(lambda client: client.heap(heap).peek(limit, partition=partition))
    if ids:
        screen.lines(message.message_id.encode() for message in found.messages)
        return
    if screen.as_json:
        screen.lines(map(peeked_line, found.messages))
        return
    for message in found.messages:
        screen.out.print(peeked_text(message), soft_wrap=True)
    if found.has_more:
        screen.note(f"there are more; --limit names another number than {limit}")
    elif not found.messages:
        screen.note("there is nothing in it")


def reprioritize(
    heap: Name,
    message: MessageId,
    priority: Annotated[int, Parameter(help="The new one.", allow_leading_hyphen=True)],
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Give a message that nobody has another priority.

    For example:

        topics heap reprioritize tasks "$(topics heap peek tasks --limit 1 --ids)" 1
    """
    done = target.run(lambda client: client.heap(heap).reprioritize(message, priority))
    Screen(json).show(done, lambda: _green(f"{message} has priority {priority}, had {done.previous_priority}"))


def cancel(heap: Name, message: MessageId, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Take back a message that nobody has.

    For example:

        topics heap cancel tasks "$(topics heap peek tasks --limit 1 --ids)"
    """
    done = target.run(lambda client: client.heap(heap).cancel(message))
    Screen(json).show(done, lambda: _green(f"{message} is gone"))


def purge(
    heap: Name,
    /,
    *,
    partition: Partition = None,
    yes: Yes = False,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Delete all messages of a heap, leased ones included, for good.

    On a terminal it says what would go and asks; elsewhere it needs --yes. For example:

        topics heap purge tasks --yes
    """
    screen = Screen(json)

    async def work(client: Client) -> int:
        one = client.heap(heap)
        stats = await one.stats()
        where = "" if partition is None else f" in partition {partition}"
        what = f"up to {counted(stats.total_messages, 'message')} of {heap}{where}"
        if not await agreed(screen, f"Delete {what} for good?", yes=yes, explicit=True):
            screen.note(f"{heap} stays as it is", "yellow")
            return Exit.FAILED
        done = await one.purge(partition=partition)
        screen.show(done, partial(_green, f"deleted {counted(done.purged, 'message')} of {heap}"))
        return Exit.OK

    return target.run(work)


def rm(heap: Name, /, *, yes: Yes = False, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> int:
    """Remove a heap with all its messages, for good. Its dead letters stay in their topic.

    On a terminal it says what would go and asks; elsewhere it needs --yes. For example:

        topics heap rm tasks --yes
    """
    screen = Screen(json)

    async def work(client: Client) -> int:
        one = client.heap(heap)
        stats = await one.stats()
        loss = f"{heap} with {counted(stats.total_messages, 'message')}"
        if not await agreed(screen, f"Remove {loss} for good?", yes=yes, explicit=True):
            screen.note(f"{heap} is not removed", "yellow")
            return Exit.FAILED
        await one.drop()
        screen.show({"topic": heap, "deleted": True}, partial(_green, f"removed {loss}"))
        return Exit.OK

    return target.run(work)


SUMMARY = "Messages by priority, by hand: make and look at heaps, push, pop and peek, and tidy up."
COMMANDS = (create, ls, show, push, pop, ack, nack, peek, reprioritize, cancel, purge, rm)


def _green(said: str) -> Text:
    return Text(printable(said), style="green")


def _settled(said: str, lost_count: int) -> Text:
    if not lost_count:
        return _green(said)
    return Text(f"{said}; the leases of {lost_count} were gone", style="yellow")
