"""`topics queue leases`: who holds which jobs of a queue, since when and until when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.names import queue_names
from topics.cli.pretty import moment
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Queue
from topics.leasemodel import JobLease
from topics.limits import PAGE_SIZE_MAX


def leases(
    queue: Annotated[str, Parameter(help="The queue.", completer=queue_names)],
    /,
    *,
    delayed: Annotated[
        bool, Parameter(negative="", show_default=False, help="Jobs whose time has not come, instead.")
    ] = False,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="So many at most.")] = 100,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """List the jobs that somebody has, with who and until when.

    `topics queue nack` gives one back by its lease. For example:

        topics queue leases jobs
        topics queue leases jobs --limit 10
    """
    screen = Screen(json)

    async def work(client: Client) -> list[tuple[int, JobLease]]:
        found: list[tuple[int, JobLease]] = []
        async for each in _all(client.queue(queue), delayed):
            if len(found) == limit:
                screen.note(f"there are more than {limit:,}; --limit names another number")
                break
            found.append(each)
        return found

    found = target.run(work)
    if screen.as_json:
        for partition, lease in found:
            screen.show(_fields(partition, lease), _table)
        return
    table = _table()
    for partition, lease in found:
        _add(table, partition, lease)
    nothing = Text("no job waits for its time" if delayed else "nobody holds a job", style="green")
    screen.out.print(table if found else nothing, soft_wrap=not found)


async def _all(queue: Queue, delayed: bool) -> AsyncIterator[tuple[int, JobLease]]:
    """The leases of all partitions, each with its partition."""
    state = await queue.state(touch=False)
    for partition in range(state.partitions):
        after: int | None = 0
        while after is not None:
            page = await queue.leases(after=after, limit=PAGE_SIZE_MAX, delayed=delayed, partition=partition)
            for lease in page.leases:
                yield partition, lease
            after = page.next_after


def _fields(partition: int, lease: JobLease) -> dict[str, Any]:
    return {"partition": partition, **msgspec.structs.asdict(lease)}


def _table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("job", justify="right")
    table.add_column("partition", justify="right")
    table.add_column("worker", overflow="fold", style="cyan")
    for name in ("since", "until"):
        table.add_column(name)
    table.add_column("deliveries", justify="right")
    table.add_column("lease", overflow="fold")
    return table


def _add(table: Table, partition: int, lease: JobLease) -> None:
    table.add_row(
        f"{lease.seq:,}",
        str(partition),
        Text(printable(lease.node or "nobody")),
        "not known" if lease.since is None else moment(lease.since, "seconds"),
        moment(lease.deadline, "seconds"),
        str(lease.deliveries),
        lease.lease_id or "",
    )
