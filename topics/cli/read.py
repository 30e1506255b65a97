"""`topics read`: what a topic holds, from a cursor to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from topics.cli.lines import Origin, page_lines
from topics.cli.names import topic_names
from topics.cli.pretty import gap_text, record_text
from topics.cli.screen import JsonFlag, Screen
from topics.cli.selection import EVERYTHING, Selection
from topics.cli.since import SinceFlag, since_ms
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client import Topic
from topics.errors import InvalidRequest
from topics.model import Gap, Page

PAGE_RECORDS = 1000


def read(
    topic: Annotated[str, Parameter(help="What to read.", completer=topic_names)],
    /,
    *,
    after: Annotated[int, Parameter(help="Begin behind this seq; 0 is the beginning.")] = 0,
    since: SinceFlag = None,
    limit: Annotated[
        int | None, Parameter(name=["--limit", "-n"], help="Records at most; all there are when not named.")
    ] = None,
    not_node: Annotated[
        list[str] | None, Parameter(negative="", help="Leave out what this node wrote; may be repeated.")
    ] = None,
    selection: Selection = EVERYTHING,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Print the records of a topic, and every gap where some were lost.

    It ends at what is there when it begins; `topics tail -f` waits for more. A record is a JSON line with `$seq`, `$ts`
    and `data`, a gap one with `gap_from`, `gap_to` and `reason`. For example:

        topics read orders --after 0 --limit 10
        topics read orders --since 10m
        topics read orders --tag-prefix order- --json | head -n 2
    """
    if limit is not None and limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}", field="limit")
    if after and since is not None:
        raise InvalidRequest("--after and --since both say where to begin: give one of them", field="since")
    begin = _Begin(after, None if since is None else since_ms(since))
    screen = Screen(json)
    target.run(lambda client: _read(client.topic(topic), begin, limit, tuple(not_node or ()), selection, screen))


@dataclass(frozen=True, slots=True)
class _Begin:
    """A place in every partition."""

    seq: int
    ts: int | None


async def _read(
    topic: Topic, begin: _Begin, limit: int | None, nodes: Sequence[str], selection: Selection, screen: Screen
) -> None:
    partitions, several = await selection.partitions(topic)
    left = limit
    for partition in partitions:
        origin = Origin(partition=partition if several else None)
        cursor, from_ts, end = begin.seq, begin.ts, None
        while left is None or left > 0:
            page = await topic.diff(
                cursor,
                PAGE_RECORDS if left is None else min(left, PAGE_RECORDS),
                node=nodes,
                match=selection.match,
                partition=partition,
                from_ts=from_ts,
            )
            _print(page, origin, screen)
            left = None if left is None else left - page.count
            end = page.head_seq if end is None else end
            cursor, from_ts = page.next_from_seq, None
            if page.caught_up or cursor >= end:
                break


def _print(page: Page, origin: Origin, screen: Screen) -> None:
    if screen.as_json:
        screen.lines(page_lines(page, origin))
        return
    if page.tombstone is not None:
        lost = Gap(page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason)
        screen.out.print(gap_text(lost, origin), soft_wrap=True)
    for record in page.records:
        screen.out.print(record_text(record, origin), soft_wrap=True)
