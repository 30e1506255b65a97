"""`topics queue …`: jobs by hand. Look at queues, put, claim, complete and give back jobs, and see to dead letters."""

from __future__ import annotations

from collections.abc import Iterable
from secrets import token_hex
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from topics.cli.durations import milliseconds, moment_ms
from topics.cli.exitcode import Exit
from topics.cli.intake import Intake
from topics.cli.jobs import add_queue, job_line, job_text, queue_fields, queues_table
from topics.cli.leases import leases
from topics.cli.lines import Origin, record_line
from topics.cli.names import queue_names, topic_names
from topics.cli.partitions import every_topic, partitions_of
from topics.cli.pretty import record_text
from topics.cli.screen import JsonFlag, Screen, counted, printable
from topics.cli.selection import EVERYTHING, Selection
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Queue, Topic
from topics.errors import InvalidRequest, NotAQueue, TopicNotFound
from topics.model import Redriven, TopicType

NODE = "topics-queue"
"""Who has what is claimed by hand, unless somebody else is named."""
PAGE_RECORDS = 1000
FROM = "$dead_letter_from"

Name = Annotated[str, Parameter(help="The queue.", completer=queue_names)]
Node = Annotated[str, Parameter(help="The worker's name.")]
Seqs = Annotated[list[int], Parameter(help="Jobs by their seqs.")]
Leases = Annotated[
    list[str] | None,
    Parameter(name="--lease-id", negative="", help="The lease of each job, in the same order; may be left out."),
]
Partition = Annotated[int, Parameter(help="The partition that the jobs are in.")]
DeadLetter = Annotated[
    str | None,
    Parameter(
        help="The topic of the dead letters; the queue's own when not named.",
        show_default=False,
        completer=topic_names,
    ),
]


def ls(
    prefix: Annotated[
        str, Parameter(help="Only names that begin with this.", show_default=False, completer=queue_names)
    ] = "",
    /,
    *,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List queues with how many of their jobs are ready, in flight, delayed and dead.

    For example:

        topics queue ls
        topics queue ls mail --json
    """
    screen = Screen(json)

    async def work(client: Client) -> list[dict[str, Any]]:
        return [queue_fields(states) async for states in every_topic(client, prefix, TopicType.QUEUE)]

    queues = target.run(work)
    table = queues_table()
    for fields in queues:
        if screen.as_json:
            screen.show(fields, queues_table)
        else:
            add_queue(table, fields)
    if not screen.as_json:
        nothing = Text("no queues yet; `topics topic create NAME --type queue` makes one", style="green")
        screen.out.print(table if queues else nothing, soft_wrap=not queues)


def show(queue: Name, /, *, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> None:
    """Show a queue: its jobs by what has become of them, and where its dead letters go.

    `topics topic show` has its config. For example:

        topics queue show jobs
    """
    screen = Screen(json)

    async def work(client: Client) -> dict[str, Any]:
        one = client.queue(queue)
        first = await one.state(touch=False)
        if first.type is not TopicType.QUEUE:
            raise NotAQueue(f'topic "{queue}" is a {first.type.value}, not a queue', topic=queue)
        return queue_fields(await partitions_of(one, first))

    fields = target.run(work)
    table = queues_table()
    add_queue(table, fields)
    screen.show(fields, lambda: table)


def put(
    queue: Annotated[str, Parameter(help="The queue; made with its first job.", completer=queue_names)],
    /,
    *data: Annotated[str, Parameter(help="The data of a job, as JSON; all of them are one atomic write.")],
    delay: Annotated[
        str | None, Parameter(help="How long nobody gets them, like 5min or 1h.", show_default=False)
    ] = None,
    not_before: Annotated[
        str | None,
        Parameter(help="Nobody gets them before: 2026-11-15T12:00, here unless it names a zone.", show_default=False),
    ] = None,
    tag: Annotated[str | None, Parameter(help="The tag of the jobs.")] = None,
    idempotency_key: Annotated[str | None, Parameter(help="Names this put: said again, it is not done again.")] = None,
    partition: Annotated[int | None, Parameter(help="The partition, by its number.")] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Put jobs into a queue, for now or for later.

    `topics write` does the same with lines of a file. For example:

        topics queue put jobs '{"send": "welcome"}'
        topics queue put jobs '{"send": "reminder"}' --delay 1h
    """
    if not data:
        raise InvalidRequest("there is no job to put: give its data, as JSON", field="data", expected="DATA")
    screen = Screen(json)
    jobs = Intake(False, False, tag, {}, screen.note).arguments(data)
    delay_ms = None if delay is None else milliseconds("delay", delay)
    not_before_ms = None if not_before is None else moment_ms("not-before", not_before)
    key = idempotency_key or token_hex(16)
    done = target.run(
        lambda client: client.queue(queue).put_many(
            jobs, delay_ms=delay_ms, not_before=not_before_ms, partition=partition, idempotency_key=key
        ),
        create=True,
    )
    places = str(done.first_seq) if done.count == 1 else f"{done.first_seq} to {done.last_seq}"
    screen.show(done, lambda: Text(f"{counted(done.count, 'job')} put as {places}", style="green"))


def claim(
    queue: Name,
    /,
    *,
    max: Annotated[int, Parameter(name=["--max", "-n"], help="How many at most.")] = 1,
    lease: Annotated[
        str | None, Parameter(help="For how long, like 5min; as the queue says.", show_default=False)
    ] = None,
    wait: Annotated[str, Parameter(help="How long to wait for the first, up to 30s.")] = "0s",
    node: Node = NODE,
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Claim jobs, and print them with their leases.

    They are yours until you ack them, give them back, or the lease runs out. For example:

        topics queue claim jobs --max 2 --lease 5min
    """
    screen = Screen(json)
    lease_ms = None if lease is None else milliseconds("lease", lease)
    wait_ms = milliseconds("wait", wait)

    async def work(client: Client) -> None:
        one = client.queue(queue, node=node)
        jobs = await one.claim(max, lease_ms=lease_ms, wait_ms=wait_ms, partition=partition)
        if screen.as_json:
            screen.lines(map(job_line, jobs))
            return
        for job in jobs:
            screen.out.print(job_text(job), soft_wrap=True)
        if not jobs:
            screen.note("there is nothing to do")

    target.run(work)


def ack(
    queue: Name,
    seqs: Seqs,
    /,
    *,
    lease_id: Leases = None,
    node: Node = NODE,
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Complete jobs that were claimed, which deletes them.

    Fails when one of them was not the worker's any more. For example:

        topics queue ack jobs 1 2
    """
    screen = Screen(json)
    done = target.run(lambda client: client.queue(queue, node=node).ack(seqs, lease_ids=lease_id, partition=partition))
    screen.show(done, lambda: _said(f"{counted(done.acked, 'job')} done", done.skipped, node))
    return Exit.FAILED if done.skipped else Exit.OK


def nack(
    queue: Name,
    seqs: Seqs,
    /,
    *,
    delay: Annotated[str, Parameter(help="How long nobody gets them, like 5min, up to a day.")] = "0s",
    lease_id: Leases = None,
    node: Node = NODE,
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Give back jobs that were claimed, for others to claim.

    Fails when one of them was not the worker's any more. For example:

        topics queue nack jobs 3 --delay 10s
    """
    screen = Screen(json)
    delay_ms = milliseconds("delay", delay)
    done = target.run(
        lambda client: client.queue(queue, node=node).nack(
            seqs, delay_ms=delay_ms, lease_ids=lease_id, partition=partition
        )
    )
    screen.show(done, lambda: _said(f"{counted(done.nacked, 'job')} given back", done.skipped, node))
    return Exit.FAILED if done.skipped else Exit.OK


def extend(
    queue: Name,
    seqs: Seqs,
    /,
    *,
    lease: Annotated[str, Parameter(help="How long from now, like 5min, up to a day.")],
    lease_id: Leases = None,
    node: Node = NODE,
    partition: Partition = 0,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Keep jobs that were claimed for longer.

    Fails when one of them was not the worker's any more. For example:

        topics queue extend jobs 3 --lease 10min
    """
    screen = Screen(json)
    lease_ms = milliseconds("lease", lease)
    done = target.run(
        lambda client: client.queue(queue, node=node).extend(
            seqs, lease_ms=lease_ms, lease_ids=lease_id, partition=partition
        )
    )
    screen.show(done, lambda: _said(f"{counted(done.extended, 'job')} kept", done.skipped, node))
    return Exit.FAILED if done.skipped else Exit.OK


def dead(
    queue: Name,
    /,
    *,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="Dead letters at most.")] = 100,
    dead_letter: DeadLetter = None,
    selection: Selection = EVERYTHING,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Print the dead letters of a queue: jobs that failed once too often, with why and how often in their meta.

    For example:

        topics queue dead jobs --limit 10
    """
    if limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}", field="limit")
    screen = Screen(json)

    async def work(client: Client) -> None:
        topic = client.topic(dead_letter or await _dead_letter(client.queue(queue)))
        partitions, several = await _partitions(topic, selection, named=dead_letter is not None)
        left = limit
        for partition in partitions:
            origin, cursor, caught_up = Origin(partition=partition if several else None), 0, False
            while left and not caught_up:
                page = await topic.diff(cursor, PAGE_RECORDS, match=selection.match, partition=partition)
                cursor, caught_up = page.next_from_seq, page.caught_up
                letters = [record for record in page.records if (record.meta or {}).get(FROM) == queue][:left]
                left -= len(letters)
                if screen.as_json:
                    screen.lines(record_line(letter, origin) for letter in letters)
                else:
                    for letter in letters:
                        screen.out.print(record_text(letter, origin), soft_wrap=True)
        if not left:
            screen.note(f"stopped after {counted(limit, 'dead letter')}; --limit names another number")

    target.run(work)


def redrive(
    queue: Name,
    /,
    *,
    to: Annotated[
        str | None, Parameter(help="Another queue instead.", show_default=False, completer=queue_names)
    ] = None,
    reason: Annotated[str | None, Parameter(help="Only those that died of this.", show_default=False)] = None,
    before: Annotated[int | None, Parameter(help="Only dead letters below this seq.", show_default=False)] = None,
    limit: Annotated[int | None, Parameter(name=["--limit", "-n"], help="So many at most.", show_default=False)] = None,
    rate: Annotated[int | None, Parameter(help="So many a second at most.", show_default=False)] = None,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False, help="Only say how many.")] = False,
    dead_letter: DeadLetter = None,
    selection: Selection = EVERYTHING,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> int:
    """Take the dead letters of a queue back into it, to be tried again.

    Each goes in one commit, and its deliveries are counted anew. Those that somebody works on, or that the queue has no
    room for, stay. For example:

        topics queue redrive jobs --dry-run
        topics queue redrive jobs --tag-prefix job- --limit 1000 --rate 50
    """
    screen = Screen(json)

    async def work(client: Client) -> list[Redriven]:
        one = client.queue(queue)
        topic = dead_letter or await _dead_letter(one)
        partitions, _ = await _partitions(client.topic(topic), selection, named=dead_letter is not None)
        done: list[Redriven] = []
        with screen.progress("{task.description}", "{task.completed:,}") as progress:
            task = progress.add_task("taking back", total=None)
            before_step = 0

            def tell(told: Redriven) -> None:
                progress.update(task, completed=before_step + told.moved)

            for partition in partitions:
                before_step = sum(told.moved for told in done)
                if limit is not None and before_step >= limit:
                    break
                done.append(
                    await one.redrive(
                        dead_letter=topic,
                        destination=to,
                        match=selection.match,
                        reason=reason,
                        before_seq=before,
                        limit=None if limit is None else limit - before_step,
                        rate_per_second=rate,
                        dry_run=dry_run,
                        partition=partition,
                        on_progress=tell,
                    )
                )
        return done

    done = target.run(work)
    moved, skipped = sum(told.moved for told in done), sum(told.skipped for told in done)
    fields = {"queue": queue, "moved": moved, "skipped": skipped, "dry_run": dry_run}
    letters = f"{counted(moved, 'dead letter')} {'would be' if dry_run else 'are'} back in {to or queue}"
    stay = f"; {skipped:,} cannot go" if skipped else ""
    screen.show(fields, lambda: Text(printable(letters + stay), style="yellow" if skipped else "green"))
    return Exit.OK


SUMMARY = "Jobs by hand: look at queues, put, claim, complete and give back jobs, and see to dead letters."
COMMANDS = (ls, show, put, claim, leases, ack, nack, extend, dead, redrive)


async def _dead_letter(queue: Queue) -> str:
    config = (await queue.state(touch=False)).config
    if config.dead_letter is None:
        hint = f"`topics topic config {queue.name} --dead-letter NAME` gives it one, --dead-letter names another topic"
        raise InvalidRequest(f'queue "{queue.name}" has no topic for dead letters; {hint}', field="dead_letter")
    return config.dead_letter


async def _partitions(topic: Topic, selection: Selection, named: bool) -> tuple[Iterable[int], bool]:
    """The partitions of a dead-letter topic, and whether it has several. A queue's own topic may have been deleted, and
    then holds no dead letter; one that was named must exist."""
    try:
        return await selection.partitions(topic)
    except TopicNotFound:
        if named:
            raise
        return (), False


def _said(text: str, skipped: list[int], node: str) -> Text:
    if not skipped:
        return Text(text, style="green")
    others = ", ".join(map(str, skipped))
    return Text(printable(f"{text}; not {others}, which {node} does not have (any more)"), style="yellow")
