"""Reports: run by who waits for them, then by who takes over, and none of them twice or out of order."""

from __future__ import annotations

import threading
from collections.abc import Callable

from topics.engine.reports import Reports


def test_they_wait_for_the_thread_that_recovers() -> None:
    posted: list[Callable[[], None]] = []
    ran: list[int] = []
    reports = Reports(posted.append)
    other = threading.Thread(target=lambda: reports.post(lambda: ran.append(threading.get_ident())))
    other.start()
    reports.work()
    other.join()
    assert ran == [threading.get_ident()] and not posted


def test_what_waits_is_handed_over_before_what_comes_later() -> None:
    posted: list[Callable[[], None]] = []
    ran: list[int] = []
    reports = Reports(posted.append)
    for number in range(2):
        reports.post(lambda number=number: ran.append(number))  # type: ignore[misc]
    reports.work()
    reports.hand_over()
    reports.post(lambda: ran.append(2))
    for report in posted:
        report()
    assert ran == [0, 1, 2] and len(posted) == 2
