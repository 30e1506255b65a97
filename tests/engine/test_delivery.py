"""Who is told first: the watcher, or the writer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest

from tests.engine.rig import Rig
from tests.engine.test_host import append, opened, run
from tests.engine.watchrig import VIEW, Ear
from topics.core.commands import Configure
from topics.engine.host import Host
from topics.engine.watcher import Subscription
from topics.model import Written
from topics.storage import committer
from topics.storage.committer import AT_ONCE_BYTES_MAX


class Told(Ear):
    """A listener that notes in a list when it is told of records."""

    def __init__(self, host: Host, notes: list[str]) -> None:
        super().__init__(host.engine.watch)
        self._notes = notes
        self.caught_up = asyncio.Event()
        self.watcher.subscribe("odd", VIEW)

    def send(self, subscription: Subscription, frame: bytes) -> None:
        super().send(subscription, frame)
        self._notes.append("told")
        if self.told[-1][0] == "caught_up":
            self.caught_up.set()


@pytest.mark.parametrize("bytes_at_once", [AT_ONCE_BYTES_MAX, 0], ids=["by the loop", "by the thread"])
@pytest.mark.parametrize(("watchers", "order"), [(1, ["told", "answered"]), (3, ["answered", *["told"] * 3])])
def test_a_single_watcher_is_told_before_the_writer_and_many_after_it(
    watchers: int, order: list[str], bytes_at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes to the disk."""
    monkeypatch.setattr(committer, "AT_ONCE_BYTES_MAX", bytes_at_once)

    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("odd", 0))
            notes: list[str] = []
            ears = [Told(host, notes) for _ in range(watchers)]
            for ear in ears:
                await ear.caught_up.wait()
            notes.clear()
            ticket = host.decide(append("odd", 1))
            ticket.on_done(lambda ticket: notes.append("answered"))
            await host.answer(ticket)
            assert notes == order, "all of it in one turn"
            assert [ear.seqs("odd") for ear in ears] == [[1, 2]] * watchers

    run(test)


def test_a_bug_in_delivering_is_reported_and_costs_no_answer(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(append("odd", 0))
            loop, told = asyncio.get_running_loop(), []
            loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))
            log = host.engine.machine.log(host.engine.machine.topic("odd"))

            def fail() -> None:
                raise RuntimeError("a bug")

            host.engine.watch.wait(log, 1, fail)
            await host.submit(Configure("even", {}))
            assert told == [], "the waiter was looked at, and waits"
            host.begin_turn()
            ticket = host.decide(append("odd", 1))
            host.end_turn()
            assert cast(Written, await host.answer(ticket)).last_seq == 2
            assert [str(error) for error in told] == ["a bug"]

    run(test)


def test_readers_see_a_write_before_its_answer() -> None:
    rig = Rig()
    rig.write("odd", 0)
    rig.work()
    tickets = [rig.submit("odd", 1), rig.submit("odd", 2)]
    seen: list[tuple[list[object], list[bool]]] = []
    rig.engine.turn.before_answers = lambda: seen.append((rig.data("odd"), [ticket.done for ticket in tickets]))
    rig.work()
    assert seen == [([0, 1, 2], [False, False])]
    assert all(ticket.done for ticket in tickets)


def test_a_reader_who_fails_costs_no_answer() -> None:
    rig = Rig()
    rig.write("odd", 0)
    rig.work()
    ticket = rig.submit("odd", 1)

    def fail() -> None:
        raise RuntimeError("a bug of the pump")

    rig.engine.turn.before_answers = fail
    with pytest.raises(RuntimeError, match="a bug of the pump"):
        rig.work()
    assert ticket.done and ticket.error is None
