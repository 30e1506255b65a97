"""Reports: run by who waits for them, then by who takes over, and none of them twice or out of order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from tests.engine.test_host import append, data, opener, run
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.reports import Reports
from topics.storage.committer import Post


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


def test_a_report_that_comes_in_the_moment_of_the_handover_goes_to_who_takes_over() -> None:
    posted: list[Callable[[], None]] = []
    reports = Reports(posted.append)

    class Handover:
        """Somebody else was first at the lock."""

        def __enter__(self) -> None:
            reports._handed_over = True

        def __exit__(self, *_: object) -> None: ...

    reports._lock = Handover()  # type: ignore[assignment]
    report = lambda: None  # noqa: E731
    reports.post(report)
    assert posted == [report] and reports._waiting.empty()


def test_what_was_decided_before_there_was_a_host_is_handed_over(tmp_path: Path) -> None:
    """A batch that was on its way is finished as soon as its records are synced, which may be before."""

    def open_engine(post: Post) -> Engine:
        engine = opener(tmp_path)(post)
        engine.submit(append("odd", 1))
        return engine

    async def test() -> None:
        host = await Host.open(open_engine)
        await host.submit(append("odd", 2))
        assert data(host, "odd") == [1, 2]
        await host.close()

    run(test)
