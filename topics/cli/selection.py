"""Which records of a topic a command is about: a partition, tags, and whose own records are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from topics.client import Topic
from topics.client.match import Match
from topics.errors import InvalidRequest


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Selection:
    """The flags that pick records."""

    partition: Annotated[
        int | None, Parameter(help="One partition; all of them when not named.", show_default=False)
    ] = None
    tag: Annotated[str | None, Parameter(help="Only records with this tag.", show_default=False)] = None
    tag_prefix: Annotated[
        str | None, Parameter(help="Only records whose tag begins with this.", show_default=False)
    ] = None

    @property
    def match(self) -> Match | None:
        if self.tag is not None and self.tag_prefix is not None:
            raise InvalidRequest("--tag and --tag-prefix both name tags: give one of them", field="tag")
        if self.tag is not None:
            return ["tag", "Eq", self.tag]
        return None if self.tag_prefix is None else ["tag", "Glob", f"{self.tag_prefix}*"]

    async def partitions(self, topic: Topic) -> tuple[Iterable[int], bool]:
        """The partitions of a topic that are meant, and whether it has more than one."""
        state = await topic.state(touch=False)
        if self.partition is None:
            return range(state.partitions), state.partitions > 1
        if not 0 <= self.partition < state.partitions:
            has = f"partitions 0 to {state.partitions - 1}" if state.partitions > 1 else "one partition, 0"
            raise InvalidRequest(f'topic "{topic.name}" has {has}, not {self.partition}', field="partition")
        return (self.partition,), state.partitions > 1


EVERYTHING = Selection()
