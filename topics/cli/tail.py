"""`topics tail`: the last records of topics, and with `-f` those to come.

First each partition of each topic is asked for its last records, or for what stands behind a seq or a time. Then one
stream follows all of them from there, and with a wildcard also the topics that are still to come. It knows its place in
each, so that after a lost connection it goes on exactly behind what was printed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from topics.cli.eventloop import while_read
from topics.cli.lines import Origin, gap_line, page_lines, record_line
from topics.cli.names import topic_names
from topics.cli.outage import noted
from topics.cli.pretty import gap_text, record_text
from topics.cli.screen import JsonFlag, Screen
from topics.cli.selection import EVERYTHING, Selection
from topics.cli.since import SinceFlag, since_ms
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Client, Topic
from topics.client.beginning import cursor_before
from topics.client.cursors import Cursor, MemoryCursors, cursor_name
from topics.errors import InvalidRequest, TopicNotFound
from topics.model import Dropped, Gap, Page, Record

PAGE_RECORDS = 1000
LINES_MAX = 100_000
WILDCARD = "*"
BEGINNING = Cursor(0)


def tail(
    *topic: Annotated[
        str, Parameter(help="One topic or several; 'orders:*' is all that begin like that.", completer=topic_names)
    ],
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], negative="", show_default=False, help="Wait for more, without end.")
    ] = False,
    lines: Annotated[int, Parameter(name=["--lines", "-n"], help="How many of the last records of each.")] = 10,
    after: Annotated[
        int | None, Parameter(help="Begin behind this seq instead; 0 is the beginning.", show_default=False)
    ] = None,
    since: SinceFlag = None,
    not_node: Annotated[
        list[str] | None, Parameter(negative="", help="Leave out what this node wrote; may be repeated.")
    ] = None,
    selection: Selection = EVERYTHING,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Print the last records of topics; with -f go on with those to come.

    A `*` at the end of a name, in quotes, stands for all topics that begin like that, with -f also for those made
    later. Where records were lost before they could be read, a line says which and why. A server that goes away is
    waited for, and said so on stderr; nothing is printed twice and nothing is left out. For example:

        topics tail orders -n 3
        topics tail orders payments -f --json | head -n 2
        topics tail 'pay*' --since 10m
    """
    if not topic:
        raise InvalidRequest("tail needs a topic: name one or several; `topics topic ls` lists them")
    if not 0 <= lines <= LINES_MAX:
        raise InvalidRequest(f"--lines must be 0 to {LINES_MAX}, not {lines}; `topics read` prints all", field="lines")
    if after is not None and since is not None:
        raise InvalidRequest("--after and --since both say where to begin: give one of them", field="since")
    patterns = tuple(name for name in dict.fromkeys(topic) if name.endswith(WILDCARD))
    if patterns and after is not None:
        message = "--after is a seq of one topic, and a wildcard stands for many: name the topics, or use --since"
        raise InvalidRequest(message, field="after")
    if patterns and selection.partition is not None:
        message = "--partition is one of a topic, and a wildcard stands for all of many: name the topics"
        raise InvalidRequest(message, field="partition")
    from_ts = None if since is None else since_ms(since)
    wanted = _Wanted(tuple(dict.fromkeys(topic)), patterns, lines, after, from_ts, tuple(not_node or ()), selection)
    screen = Screen(json)
    target.run(lambda client: _tail(client, wanted, follow, screen), on_outage=noted(screen, target.name))


@dataclass(frozen=True, slots=True)
class _Wanted:
    names: Sequence[str]
    """All that were given, also those that end in a `*`."""
    patterns: Sequence[str]
    lines: int
    after: int | None
    from_ts: int | None
    nodes: Sequence[str]
    selection: Selection

    @property
    def several(self) -> bool:
        """Whether a person must be told of which topic a line is."""
        return len(self.names) > 1 or bool(self.patterns)

    def covers(self, topic: str) -> bool:
        """Whether a wildcard stands for a topic."""
        return any(topic.startswith(pattern.removesuffix(WILDCARD)) for pattern in self.patterns)


@dataclass(slots=True)
class _Part:
    """One partition of one topic, and how far it was read."""

    topic: Topic
    partition: int
    origin: Origin
    wanted: _Wanted
    cursor: Cursor = BEGINNING
    last: deque[Record | Gap] = field(default_factory=deque)
    """What stands before the stream begins."""

    async def find(self, follow: bool) -> None:
        """What is printed before the stream begins, and where that is; what it will bring itself is left to it."""
        if self.wanted.after is not None:
            self.cursor = Cursor(self.wanted.after)
        elif self.wanted.from_ts is not None:
            page = await self.topic.diff(from_ts=self.wanted.from_ts, limit=1, partition=self.partition)
            self.cursor = Cursor(cursor_before(page), page.epoch)
        else:
            await self._find_last()
            return
        if not follow:
            await self._collect(self.cursor, None)

    async def _find_last(self) -> None:
        """The last so many records, looked for in ever longer stretches: many may be deleted or not match."""
        state = await self.topic.state(partition=self.partition, touch=False)
        first, head, span = state.earliest_seq, state.head_seq, self.wanted.lines
        while span:
            start = max(head - span, first - 1, 0)
            await self._collect(Cursor(start, state.epoch), self.wanted.lines)
            if len(self.last) >= self.wanted.lines or start < first:
                break
            span *= 4
        self.cursor = Cursor(max(self.cursor.seq, head), state.epoch)

    async def _collect(self, start: Cursor, most: int | None) -> None:
        """All behind a place, or the last of it."""
        self.last = deque(maxlen=most)
        self.cursor = start
        caught_up = False
        while not caught_up:
            page = await self.topic.diff(
                self.cursor.seq,
                PAGE_RECORDS,
                node=self.wanted.nodes,
                match=self.wanted.selection.match,
                partition=self.partition,
            )
            if page.tombstone is not None:
                self.last.append(Gap(page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason))
            self.last.extend(page.records)
            self.cursor, caught_up = Cursor(page.next_from_seq, page.epoch), page.caught_up


async def _tail(client: Client, wanted: _Wanted, follow: bool, screen: Screen) -> None:
    parts = await _parts(client, wanted)
    if wanted.patterns and not parts:
        missing = f"no topic begins like {' or '.join(wanted.patterns)}"
        if not follow:
            raise TopicNotFound(f"{missing}; `topics topic ls` lists them")
        screen.note(f"{missing} yet; waiting for one", "yellow")
    for part in list(parts):
        try:
            await part.find(follow)
        except TopicNotFound:
            if not wanted.covers(part.topic.name):
                raise
            parts.remove(part)  # A wildcard found it, and it is gone by now.
        _print_last(part, screen)
    if follow:
        await while_read(_Following(client, wanted, screen, parts).run())


async def _parts(client: Client, wanted: _Wanted) -> list[_Part]:
    """Every partition that is there, once, however often it is named."""
    parts: dict[str, _Part] = {}

    def add(name: str, partitions: Sequence[int], several: bool) -> None:
        for partition in partitions:
            origin = Origin(name, partition if several else None)
            part = _Part(client.topic(name), partition, origin, wanted)
            parts.setdefault(cursor_name(name, partition), part)

    for name in wanted.names:
        if name in wanted.patterns:
            async for state in client.topics(name.removesuffix(WILDCARD)):
                add(state.topic, range(state.partitions), state.partitions > 1)
        else:
            partitions, several = await wanted.selection.partitions(client.topic(name))
            add(name, tuple(partitions), several)
    return list(parts.values())


# ---- following


class _Following:
    """All of them as one stream, until the last topic is dropped; a wildcard has no last one."""

    def __init__(self, client: Client, wanted: _Wanted, screen: Screen, parts: Sequence[_Part]) -> None:
        self._client = client
        self._wanted = wanted
        self._screen = screen
        self._parts = parts
        self._origins = {(part.topic.name, part.partition): part.origin for part in parts}

    async def run(self) -> None:
        begins = MemoryCursors()
        begins.cursors = {cursor_name(part.topic.name, part.partition): part.cursor for part in self._parts}
        named = [name for name in begins.cursors if not self._wanted.covers(name)]
        pages = self._client.pages(
            [*self._wanted.patterns, *named],
            node=self._wanted.nodes,
            match=self._wanted.selection.match,
            cursors=begins,
        )
        async for page in pages:
            if isinstance(page, Dropped):
                self._end(page.topic)
            else:
                _print_page(page, await self._origin(page), self._screen, self._wanted.several)

    def _end(self, topic: str) -> None:
        for key in [key for key in self._origins if key[0] == topic]:
            del self._origins[key]
        message = f'topic "{topic}" was deleted'
        if not self._origins and not self._wanted.patterns:
            raise TopicNotFound(message, topic=topic)
        self._screen.note(f"{message}; {'the others go on' if self._origins else 'waiting for others'}", "yellow")

    async def _origin(self, page: Page) -> Origin:
        key = (page.topic, page.partition)
        if key not in self._origins:
            partition: int | None = page.partition
            with suppress(TopicNotFound):
                state = await self._client.topic(page.topic).state(touch=False)
                partition = page.partition if state.partitions > 1 else None
            self._origins[key] = Origin(page.topic, partition)
        return self._origins[key]


# ---- printing


def _print_last(part: _Part, screen: Screen) -> None:
    if screen.as_json:
        screen.lines(
            gap_line(event, part.origin) if isinstance(event, Gap) else record_line(event, part.origin)
            for event in part.last
        )
    else:
        _print(list(part.last), part.origin, screen, part.wanted.several)


def _print_page(page: Page, origin: Origin, screen: Screen, several: bool) -> None:
    if screen.as_json:
        screen.lines(page_lines(page, origin))
        return
    lost = page.tombstone
    gaps = [] if lost is None else [Gap(lost.gap_from, lost.gap_to, lost.reason)]
    _print([*gaps, *page.records], origin, screen, several)


def _print(events: Sequence[Record | Gap], origin: Origin, screen: Screen, several: bool) -> None:
    shown = origin if several else Origin(partition=origin.partition)
    for event in events:
        text = gap_text(event, shown) if isinstance(event, Gap) else record_text(event, shown)
        screen.out.print(text, soft_wrap=True)
