"""`topics write`: append records from arguments, from files, or from stdin.

A file is checked from its first line to its last before anything of it is written, so that a bad line changes nothing.
Stdin cannot be read twice: what stood in batches before a bad line is written by then, and the error says how much.
Each batch is a write of its own with an idempotency key of its own, so that one whose answer was lost can be repeated.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from topics.cli.intake import Intake, parse_meta
from topics.cli.names import topic_names
from topics.cli.screen import JsonFlag, Screen, counted
from topics.cli.source import BATCH_BYTES_MAX, FileSource, stdin_batches
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Topic
from topics.client.fields import RecordFields
from topics.errors import InvalidRequest, TopicsError
from topics.model import Written

COLUMNS = (
    TextColumn("{task.description}", markup=False),
    BarColumn(),
    DownloadColumn(binary_units=True),
    TransferSpeedColumn(),
    TimeRemainingColumn(),
)

Batches = AsyncIterator[tuple[list[RecordFields], int]]
"""The records of each write, and how many bytes of the input end with it."""


def write(
    topic: Annotated[
        str, Parameter(help="Where to; made with its first record unless --no-create.", completer=topic_names)
    ],
    /,
    *data: Annotated[str, Parameter(help="The data of a record, as JSON; all of them are one atomic write.")],
    file: Annotated[
        list[str] | None,
        Parameter(name=["--file", "-i"], negative="", help="A file of JSON lines, checked whole before it is written."),
    ] = None,
    records: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Lines are objects with data and, if wanted, tag, node and meta, as `topics read --json` prints them.",
        ),
    ] = False,
    text: Annotated[
        bool, Parameter(negative="", show_default=False, help="DATA and lines are plain text, not JSON.")
    ] = False,
    tag: Annotated[str | None, Parameter(help="The tag of records that have none of their own.")] = None,
    node: Annotated[str | None, Parameter(help="The node of records that have none of their own.")] = None,
    meta: Annotated[
        list[str] | None, Parameter(negative="", help="NAME=TEXT for records without meta; may be repeated.")
    ] = None,
    partition: Annotated[int | None, Parameter(help="The partition, by its number.")] = None,
    partition_key: Annotated[str | None, Parameter(help="The partition, by the hash of this.")] = None,
    idempotency_key: Annotated[
        str | None, Parameter(help="Names this write: said again, it is answered and not appended. For DATA only.")
    ] = None,
    create: Annotated[
        bool | None, Parameter(name="--create", negative="--no-create", help="Whether the topic may be made.")
    ] = None,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Append records to a topic.

    Without DATA and --file, lines come from stdin and are written as they come. For example:

        topics write orders '{"sku": "A1"}' --tag order-1
        echo '{"sku": "B2"}' | topics write orders
        topics read orders --json | topics write copy --records
    """
    if data and file:
        raise InvalidRequest("DATA and --file both say what to write: give one of them")
    if records and (text or data):
        raise InvalidRequest("--records says what lines are made of: it goes with --file or stdin, and without --text")
    if idempotency_key is not None and not data:
        raise InvalidRequest("--idempotency-key names one write, and lines are many: give DATA")
    screen = Screen(json)
    intake = Intake(records, text, tag, parse_meta(meta or ()), screen.note)
    order = _Order(topic, node, partition, partition_key, create, idempotency_key or secrets.token_hex(16))
    given = intake.arguments(data)
    with _files(file or ()) as files, screen.progress(*COLUMNS, start=False) as progress:
        # A bar would be drawn over what a person is typing.
        progress.disable |= not data and not files and sys.stdin.isatty()
        _check(files, intake, progress)
        batches = _arguments(given) if data else _lines(files, intake) if files else _stdin(intake, screen)
        total = sum(source.size_bytes for source in files) or None
        tally = _Tally()
        with _accounted(tally, screen):
            target.run(
                lambda client: order.carry_out(client.topic(topic), batches, tally, progress, total), create=True
            )
    screen.show(tally.fields(topic), lambda: tally.text(topic))


@dataclass(slots=True)
class _Tally:
    """What has been answered so far."""

    first_seq: int = 0
    last_seq: int = 0
    partition: int = 0
    count: int = 0
    created: bool = False
    deduped: bool = False
    under_way_count: int = 0
    """Records that were sent and not answered."""

    def add(self, written: Written) -> None:
        self.first_seq = self.first_seq or written.first_seq
        self.last_seq, self.partition = written.last_seq, written.partition
        self.count += written.count
        self.created |= written.created
        self.deduped |= written.deduped
        self.under_way_count = 0

    def fields(self, topic: str) -> dict[str, object]:
        return {
            "topic": topic,
            "partition": self.partition,
            "first_seq": self.first_seq or None,
            "last_seq": self.last_seq or None,
            "count": self.count,
            "created": self.created,
            "deduped": self.deduped,
        }

    def text(self, topic: str) -> Text:
        if not self.count:
            return Text("nothing to write", style="yellow")
        seqs = f"seq {self.first_seq}" if self.count == 1 else f"seqs {self.first_seq} to {self.last_seq}"
        verb = "had already been written" if self.deduped else "written"
        new = ", which is new" if self.created else ""
        return Text(f"{counted(self.count, 'record')} {verb} to {topic}{new}: {seqs}", style="green")


@dataclass(frozen=True, slots=True)
class _Order:
    """How each batch is written."""

    topic: str
    node: str | None
    partition: int | None
    partition_key: str | None
    create: bool | None
    name: str
    """Of this run, which together with the number of a batch is its idempotency key."""

    async def carry_out(
        self, topic: Topic, batches: Batches, tally: _Tally, progress: Progress, total: int | None
    ) -> None:
        task = progress.add_task(f"writing {self.topic}", total=total)
        number = 0
        async for records, read_bytes in batches:
            if number:
                progress.start()  # There is more than one batch: it may take a while.
            tally.under_way_count = len(records)
            tally.add(await self._write(topic, records, number))
            progress.update(task, completed=read_bytes)
            number += 1

    async def _write(self, topic: Topic, records: Sequence[RecordFields], number: int) -> Written:
        return await topic.write_many(
            records,
            node=self.node,
            partition=self.partition,
            key=self.partition_key,
            idempotency_key=f"{self.name}-{number}" if number else self.name,
            create=self.create,
        )


@contextmanager
def _accounted(tally: _Tally, screen: Screen) -> Iterator[None]:
    """However it ends, say how far it came."""
    try:
        yield
    except TopicsError as error:
        if tally.count:
            error.message += f"; {counted(tally.count, 'record')} before it were written, up to seq {tally.last_seq}"
        raise
    except BaseException:
        perhaps = f"; {counted(tally.under_way_count, 'record')} more were under way" if tally.under_way_count else ""
        screen.note(f"stopped: {counted(tally.count, 'record')} written, up to seq {tally.last_seq}{perhaps}", "yellow")
        raise


# ---- where records come from


@contextmanager
def _files(paths: Sequence[str]) -> Iterator[list[FileSource]]:
    files: list[FileSource] = []
    try:
        for path in paths:
            files.append(FileSource(path))
        yield files
    finally:
        for source in files:
            source.close()


def _check(files: Sequence[FileSource], intake: Intake, progress: Progress) -> None:
    """Parse everything once, before the first record is written."""
    for source in files:
        if source.size_bytes > BATCH_BYTES_MAX:
            progress.start()
        task = progress.add_task(f"checking {source.path}", total=source.size_bytes)
        for batch in source.batches():
            intake.batch(batch)
            progress.update(task, completed=batch.read_bytes)
        progress.remove_task(task)


async def _arguments(records: list[RecordFields]) -> Batches:
    yield records, 0


async def _lines(files: Sequence[FileSource], intake: Intake) -> Batches:
    behind_bytes = 0
    for source in files:
        for batch in source.batches():
            if records := intake.batch(batch):
                yield records, behind_bytes + batch.read_bytes
        behind_bytes += source.size_bytes


async def _stdin(intake: Intake, screen: Screen) -> Batches:
    if sys.stdin.isatty():
        screen.note("reading lines from this terminal; Ctrl-D ends")
    async for batch in stdin_batches():
        if records := intake.batch(batch):
            yield records, batch.read_bytes
