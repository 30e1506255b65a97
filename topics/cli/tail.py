"""`topics tail`: the last records of topics, and with `-f` those to come.

Every partition of every topic has a follower; all of them put what they see into one bounded queue, which one printer
empties. A follower keeps its cursor, so that after a lost connection it goes on exactly behind what it has printed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from topics.cli.eventloop import reader_of_stdout
from topics.cli.lines import Origin, gap_line, record_line
from topics.cli.pretty import gap_text, record_text
from topics.cli.screen import JsonFlag, Screen
from topics.cli.selection import EVERYTHING, Selection
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Topic
from topics.errors import InvalidRequest, TopicNotFound, TopicsError
from topics.model import Gap, Record

PAGE_RECORDS = 1000
LINES_MAX = 100_000
EVENTS_AHEAD_MAX = 1000
"""Events that were read and are not printed yet."""

Event = tuple[Origin, Record | Gap]


def tail(
    *topic: Annotated[str, Parameter(help="One topic or several.")],
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], negative="", show_default=False, help="Wait for more, without end.")
    ] = False,
    lines: Annotated[int, Parameter(name=["--lines", "-n"], help="How many of the last records of each.")] = 10,
    after: Annotated[
        int | None, Parameter(help="Begin behind this seq instead; 0 is the beginning.", show_default=False)
    ] = None,
    not_node: Annotated[
        list[str] | None, Parameter(negative="", help="Leave out what this node wrote; may be repeated.")
    ] = None,
    selection: Selection = EVERYTHING,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Print the last records of topics; with -f go on with those to come.

    Where records were lost before they could be read, a line says which and why. A server that goes away is waited for,
    and said so on stderr; nothing is printed twice and nothing is left out. For example:

        topics tail orders -n 3
        topics tail orders payments -f --json | head -n 2
    """
    if not topic:
        raise InvalidRequest("tail needs a topic: name one or several; `topics topic ls` lists them")
    if not 0 <= lines <= LINES_MAX:
        raise InvalidRequest(f"--lines must be 0 to {LINES_MAX}, not {lines}; `topics read` prints all", field="lines")
    wanted = _Wanted(lines, after, tuple(not_node or ()), selection, follow)
    screen = Screen(json)
    outage = _Outage(screen, target.name)
    target.run(lambda client: _tail(client, dict.fromkeys(topic), wanted, screen), on_outage=outage.tell)


@dataclass(frozen=True, slots=True)
class _Wanted:
    lines: int
    after: int | None
    nodes: Sequence[str]
    selection: Selection
    follow: bool


@dataclass(slots=True)
class _Outage:
    """Says once that the server went away, however many followers notice, and once that all have it back."""

    screen: Screen
    name: str
    away_count: int = 0

    def tell(self, error: TopicsError | None) -> None:
        was_away = self.away_count > 0
        self.away_count += -1 if error is None else 1
        if error is not None and not was_away:
            self.screen.note(f"{self.name} went away ({error.code}); waiting for it to come back", "yellow")
        elif was_away and not self.away_count:
            self.screen.note(f"{self.name} is back; going on where it stopped", "yellow")


@dataclass(slots=True)
class _Follower:
    """One partition of one topic, and how far it was read."""

    topic: Topic
    partition: int
    origin: Origin
    wanted: _Wanted
    cursor: int = 0
    last: deque[Record | Gap] = field(default_factory=deque)
    """What stands before the stream begins."""

    async def find_last(self) -> None:
        """The last so many records, looked for in ever longer stretches: many may be deleted or not match."""
        if self.wanted.after is not None:
            self.cursor = self.wanted.after
            if not self.wanted.follow:
                await self._collect(self.cursor, None)
            return
        state = await self.topic.state(partition=self.partition, touch=False)
        first, head, span = state.earliest_seq, state.head_seq, self.wanted.lines
        while span:
            start = max(head - span, first - 1, 0)
            await self._collect(start, self.wanted.lines)
            if len(self.last) >= self.wanted.lines or start < first:
                break
            span *= 4
        self.cursor = max(self.cursor, head)

    async def _collect(self, start: int, most: int | None) -> None:
        self.last = deque(maxlen=most)
        self.cursor = start
        caught_up = False
        while not caught_up:
            page = await self.topic.diff(
                self.cursor,
                PAGE_RECORDS,
                node=self.wanted.nodes,
                match=self.wanted.selection.match,
                partition=self.partition,
            )
            if page.tombstone is not None:
                self.last.append(Gap(page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason))
            self.last.extend(page.records)
            self.cursor, caught_up = page.next_from_seq, page.caught_up

    async def follow(self, events: asyncio.Queue[Event]) -> None:
        stream = self.topic.follow(
            self.cursor, node=self.wanted.nodes, match=self.wanted.selection.match, partition=self.partition
        )
        async for event in stream:
            await events.put((self.origin, event))


async def _tail(client: Client, names: dict[str, None], wanted: _Wanted, screen: Screen) -> None:
    followers = []
    for name in names:
        topic = client.topic(name)
        partitions, several = await wanted.selection.partitions(topic)
        for partition in partitions:
            origin = Origin(name, partition if several else None)
            followers.append(_Follower(topic, partition, origin, wanted))
    for follower in followers:
        await follower.find_last()
        _print([(follower.origin, event) for event in follower.last], screen, len(names) > 1)
    if wanted.follow:
        await _follow(followers, screen, len(names) > 1)


async def _follow(followers: Sequence[_Follower], screen: Screen, several: bool) -> None:
    """Until the last follower has ended, which happens only when its topic is dropped."""
    events: asyncio.Queue[Event] = asyncio.Queue(EVENTS_AHEAD_MAX)
    following = {asyncio.create_task(follower.follow(events)) for follower in followers}
    printing = asyncio.create_task(_print_all(events, screen, several))
    with reader_of_stdout() as gone:
        try:
            while following:
                done, _ = await asyncio.wait({*following, printing, gone}, return_when=asyncio.FIRST_COMPLETED)
                for ended in done - following:
                    ended.result()
                following -= done
                for ended in done:
                    _judge(ended, screen, bool(following))
        except TopicNotFound:
            _print([events.get_nowait() for _ in range(events.qsize())], screen, several)
            raise
        finally:
            for task in (*following, printing):
                task.cancel()
            await asyncio.gather(*following, printing, return_exceptions=True)


def _judge(ended: asyncio.Future[None], screen: Screen, others: bool) -> None:
    """One topic that is dropped does not end the others; everything else does."""
    error = ended.exception()
    if isinstance(error, TopicNotFound) and others:
        screen.note(f"{error.message}; the others go on", "yellow")
    elif error is not None:
        raise error


async def _print_all(events: asyncio.Queue[Event], screen: Screen, several: bool) -> None:
    while True:
        ready = [await events.get()]
        while not events.empty():
            ready.append(events.get_nowait())
        _print(ready, screen, several)


def _print(events: Sequence[Event], screen: Screen, several: bool) -> None:
    if screen.as_json:
        screen.lines(_line(origin, event) for origin, event in events)
        return
    for origin, event in events:
        shown = origin if several else Origin(partition=origin.partition)
        text = gap_text(event, shown) if isinstance(event, Gap) else record_text(event, shown)
        screen.out.print(text, soft_wrap=True)


def _line(origin: Origin, event: Record | Gap) -> bytes:
    return gap_line(event, origin) if isinstance(event, Gap) else record_line(event, origin)
