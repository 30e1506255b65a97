"""A cohort: the watchers of a log that stand in the same place and get the same bytes.

Its cursor is the cursor of each of its members, so that a delivery to thousands moves one number. A cohort belongs to
a group, the watchers with the same view and form; two cohorts of a group that meet become one.

    ELSEWHERE   the cursor belongs to an earlier topic of that name, and the watcher has not been told yet
    FRESH       just connected: what is lost behind the cursor is told as `from_seq_too_old`
    BACKLOG     there is more to read
    LIVE        everything is delivered, and the watcher was told so
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from topics.core.view import View
from topics.engine.events import Form

if TYPE_CHECKING:
    from topics.engine.watcher import Subscription

ELSEWHERE: Final = 0
FRESH: Final = 1
BACKLOG: Final = 2
LIVE: Final = 3

Place = tuple[int, int, int]
"""Group, cursor and phase: by these, cohorts are found."""


class Group:
    """The subscriptions of a log that see the same and speak the same; `number` is unique within the log."""

    __slots__ = ("count", "form", "is_plain", "number", "view")

    def __init__(self, number: int, view: View, form: Form) -> None:
        self.number = number
        self.view = view
        self.is_plain = view.is_plain
        self.form = form
        self.count = 0
        """Subscriptions, parked ones included."""


class Cohort:
    __slots__ = ("cursor", "group", "members", "phase")

    def __init__(self, group: Group, cursor: int, phase: int, members: Iterable[Subscription] = ()) -> None:
        self.group = group
        self.cursor = cursor
        self.phase = phase
        self.members: dict[Subscription, None] = dict.fromkeys(members)
        for member in self.members:
            member.cohort = self

    @property
    def place(self) -> Place:
        return (self.group.number, self.cursor, self.phase)

    def ready(self) -> list[Subscription]:
        """The members that can be given something. The others stay behind, here."""
        ready = [member for member in self.members if not member.watcher.blocked]
        if len(ready) < len(self.members):
            for member in [member for member in self.members if member.watcher.blocked]:
                del self.members[member]
                member.park(self.cursor, self.phase)
        return ready

    def split(self, count: int) -> Cohort:
        """The first `count` members as a cohort of their own, in the same place."""
        first = [member for member, _ in zip(self.members, range(count), strict=False)]
        for member in first:
            del self.members[member]
        return Cohort(self.group, self.cursor, self.phase, first)

    def absorb(self, other: Cohort) -> None:
        """Take in the members of another cohort that has come to the same place."""
        for member in other.members:
            member.cohort = self
        self.members.update(other.members)
