"""A ticket: the answer to one command, on its way until its facts are as safe as they have to be."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from topics.core.log import Log
from topics.errors import TopicsError


class Ticket(msgspec.Struct, eq=False):
    """`done` once there is a result or an error. A callback runs at once when it is done already.

    A struct because one is made for each write.
    """

    reply: object = None
    """The answer: final when the ticket is done without an error, and not to be looked at before."""
    done: bool = False
    error: TopicsError | None = None
    waiting: int = 0
    """Shards that have not got far enough yet."""
    needs_sync: bool = False
    """Whether this ticket waits for a sync, or only for the write to reach the operating system."""
    visible_at_sync: bool = False
    """Whether readers see the records when the ticket is answered, or at the write already."""
    log: Log | None = None
    """The log that was written to, up to `seq`, and its shard."""
    shard: int = 0
    seq: int = 0
    ceiling: int = 0
    follows_source: bool = False
    """It is about copies up to `seq` in `log`, and `shard` is that of their source."""
    written_ns: int = 0
    """The tick at which its group was reported as written; 0 before that, and when there was none."""
    _callbacks: list[Callable[[Ticket], None]] = msgspec.field(default_factory=list)

    def result(self) -> object:
        if self.error is not None:
            raise self.error
        assert self.done, "the ticket is not done"
        return self.reply

    def resolve(self, reply: object) -> None:
        if not self.done:
            self.reply = reply
            self._finish()

    def fail(self, error: TopicsError) -> None:
        if not self.done:
            self.error = error
            self._finish()

    def on_done(self, callback: Callable[[Ticket], None]) -> None:
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _finish(self) -> None:
        # From here on a callback that is added runs at once, so the list stays as it is while it is gone through.
        self.done = True
        for callback in self._callbacks:
            callback(self)
        self._callbacks.clear()
