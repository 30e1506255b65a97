"""When readers see the records of batches: a batch in all of its logs at one moment, and each log as a prefix.

A batch is *pending* from its append until it is shown, and each log is hidden from its first pending batch on. A batch
is shown when it is durable in all of its logs and every batch that begins before its end in one of them is shown with
it, or was before. Otherwise a reader could see it in one log while an older batch hides it in another one.

A batch therefore waits for batches that were appended before it, and those are durable after the slowest sync that was
under way: the wait ends. Only a recovery appends a batch in parts, and may leave two batches each in front of the other
in different logs; they are shown together. A batch that cannot become durable before a restart takes with it all
batches that wait for it.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from topics.core.batch import Batch
from topics.core.log import Log
from topics.errors import TopicsError


@dataclass(eq=False, slots=True)
class Part:
    """A batch in one log."""

    log: Log
    first_seq: int
    last_seq: int
    pending: Pending = field(repr=False)


@dataclass(eq=False, slots=True)
class Pending:
    """A batch that is not shown yet."""

    batch: Batch
    parts: list[Part] = field(default_factory=list)
    durable: bool = False
    error: TopicsError | None = None
    """Why it cannot be shown before a restart."""
    blocker: Pending | None = None
    """A batch that is not durable and has to be shown first; None when none is known."""
    blocked: list[Pending] = field(default_factory=list)
    shown: bool = False


class Visibility:
    def __init__(self, show: Callable[[Sequence[Log]], None]) -> None:
        """`show` raises what readers see of several logs, all of them before anything is told of one."""
        self._show = show
        self._parts: dict[int, list[Part]] = {}
        """The pending batches of each log, in the order of its seqs."""

    def hide(self, batch: Batch, extents: Iterable[tuple[Log, int, int]]) -> Pending:
        """Hide a batch that was just appended. `extents` are its logs, each with its first and its last seq there."""
        pending = Pending(batch)
        for log, first_seq, last_seq in extents:
            part = Part(log, first_seq, last_seq, pending)
            pending.parts.append(part)
            insort(self._parts.setdefault(log.log_id, []), part, key=_first_seq)
            self._hide_from_first(log)
            # After a crash some of the batch is there already; nobody has read anything since.
            log.visible_seq = min(log.visible_seq, first_seq - 1)
        return pending

    def settle(self, pending: Pending) -> tuple[list[Pending], list[Pending]]:
        """A batch is durable: show it and those that waited for it, as far as nothing else is in front of them.

        Returns those that are shown now, and those that wait for one that failed.
        """
        pending.durable = True
        shown: list[Pending] = []
        failed: list[Pending] = []
        logs: dict[int, Log] = {}
        waiting = deque([pending, *_released(pending)])
        while waiting:
            one = waiting.popleft()
            if one.shown or one.blocker is not None:
                continue
            group = self._group_of(one)
            if group is None:
                failed += self._failed_with(one)
                continue
            for member in group:
                self._remove(member, logs)
                waiting += _released(member)
            shown += group
        self._show(list(logs.values()))
        return shown, failed

    def fail(self, pending: Pending, error: TopicsError) -> list[Pending]:
        """A batch cannot be shown before a restart. Returns all of which that is true now, itself included."""
        failed: list[Pending] = []
        waiting = [pending]
        while waiting:
            one = waiting.pop()
            if one.error is None:
                one.error = error
                failed.append(one)
                waiting += one.blocked
        return failed

    def _failed_with(self, pending: Pending) -> list[Pending]:
        """Those that fail since a batch turned out to wait for one that failed; none if that one may still come."""
        assert pending.blocker is not None
        error = pending.blocker.error
        return [] if error is None else self.fail(pending, error)

    def _group_of(self, pending: Pending) -> list[Pending] | None:
        """The batches that have to be shown together with this one; None, and it is blocked, if one is not durable."""
        group = {pending: None}
        waiting = [pending]
        while waiting:
            for part in waiting.pop().parts:
                for other in self._parts[part.log.log_id]:
                    if other.first_seq > part.last_seq:
                        break
                    ahead = other.pending
                    blocker = ahead.blocker if ahead.durable else ahead
                    if blocker is not None:
                        pending.blocker = blocker
                        blocker.blocked.append(pending)
                        return None
                    if ahead not in group:
                        group[ahead] = None
                        waiting.append(ahead)
        return list(group)

    def _remove(self, pending: Pending, logs: dict[int, Log]) -> None:
        pending.shown = True
        for part in pending.parts:
            logs[part.log.log_id] = part.log
            self._parts[part.log.log_id].remove(part)
            self._hide_from_first(part.log)

    def _hide_from_first(self, log: Log) -> None:
        parts = self._parts[log.log_id]
        log.hidden_from = parts[0].first_seq if parts else 0
        if not parts:
            del self._parts[log.log_id]


def _released(pending: Pending) -> list[Pending]:
    """Those that waited for this one, which look for what else is in front of them."""
    blocked, pending.blocked = pending.blocked, []
    for one in blocked:
        one.blocker = None
    return blocked


def _first_seq(part: Part) -> int:
    return part.first_seq
