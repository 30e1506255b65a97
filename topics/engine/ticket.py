"""A ticket: the answer to one command, on its way until its facts are as safe as they have to be."""

from __future__ import annotations

from collections.abc import Callable

from topics.core.log import Log
from topics.errors import TopicsError

PENDING = object()


class Ticket:
    """`done` once there is a result or an error. A callback runs at once when it is done already."""

    __slots__ = ("_callbacks", "_reply", "ceiling", "error", "log", "needs_sync", "seq", "visible_at_sync", "waiting")

    def __init__(self) -> None:
        self._reply: object = PENDING
        self._callbacks: list[Callable[[Ticket], None]] = []
        self.error: TopicsError | None = None
        self.waiting = 0
        """Shards that have not got far enough yet."""
        self.needs_sync = False
        """Whether this ticket waits for a sync, or only for the write to reach the operating system."""
        self.log: Log | None = None
        self.seq = 0
        self.ceiling = 0
        self.visible_at_sync = False
        """Whether readers see the records when the ticket is answered, or at the write already."""

    @property
    def done(self) -> bool:
        return self._reply is not PENDING or self.error is not None

    def result(self) -> object:
        if self.error is not None:
            raise self.error
        assert self._reply is not PENDING, "the ticket is not done"
        return self._reply

    def resolve(self, reply: object) -> None:
        if not self.done:
            self._reply = reply
            self._run()

    def fail(self, error: TopicsError) -> None:
        if not self.done:
            self.error = error
            self._run()

    def on_done(self, callback: Callable[[Ticket], None]) -> None:
        if self.done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def _run(self) -> None:
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)
