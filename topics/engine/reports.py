"""Reports of the WAL's threads. They change the engine, so they are run where the engine is.

While it is being recovered that is the thread that recovers, which runs them when it waits for something (`work`).
From `hand_over` on they go where the engine lives afterwards, in the order in which they came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from topics.storage.committer import Post

Report = Callable[[], None]


class Reports:
    def __init__(self, post: Post) -> None:
        self._post = post
        self._lock = threading.Lock()
        self._waiting: SimpleQueue[Report] = SimpleQueue()
        self._handed_over = False

    def post(self, report: Report) -> None:
        """On any thread."""
        if not self._handed_over:
            with self._lock:
                if not self._handed_over:
                    self._waiting.put(report)
                    return
        self._post(report)

    def work(self) -> None:
        """Wait for a report, and run it."""
        self._waiting.get()()

    def hand_over(self) -> None:
        with self._lock:
            self._handed_over = True
            while not self._waiting.empty():
                self._post(self._waiting.get())
