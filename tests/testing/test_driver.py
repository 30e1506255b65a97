from __future__ import annotations

import pytest

from tests.engine.rig import SMALL, records
from topics.core.commands import Append, Configure
from topics.engine.ticket import Ticket
from topics.errors import LogStopped
from topics.model import Written
from topics.testing import FakeDisk, FaultFs, SimClock
from topics.testing.driver import Driver


def write(driver: Driver, *items: object) -> Written:
    reply = driver.do(Append("t", records(*items)))
    assert isinstance(reply, Written)
    return reply


def test_the_same_calls_make_the_same_bytes() -> None:
    disks = [FakeDisk(), FakeDisk()]
    for disk in disks:
        driver = Driver(disk, SimClock(), SMALL, seed=3)
        write(driver, 1, 2)
        driver.checkpoint()
        write(driver, 3)
        driver.close()
    assert disks[0].contents() == disks[1].contents()
    other = FakeDisk()
    Driver(other, SimClock(), SMALL, seed=4).close()
    assert other.contents()["/data/wal/0-0000000001.wal"] != disks[0].contents()["/data/wal/0-0000000001.wal"]


def test_nothing_happens_before_it_is_told_to_work() -> None:
    disk = FakeDisk()
    driver = Driver(disk, SimClock(), SMALL)
    driver.do(Configure("t", {}))
    before = disk.contents()
    ticket = driver.engine.submit(Append("t", records(1)))
    driver.engine.flush()
    assert not ticket.done and disk.contents() == before
    driver.work()
    assert ticket.done and disk.contents() != before


def test_what_fails_is_raised() -> None:
    fs = FaultFs(FakeDisk())
    driver = Driver(fs, SimClock(), SMALL)
    fs.fail("sync", path="*/wal/*", always=True)
    with pytest.raises(LogStopped):
        write(driver, 1)
    with pytest.raises(LogStopped):
        driver.close()


def test_a_close_leaves_everything_in_segments() -> None:
    disk = FakeDisk()
    driver = Driver(disk, SimClock(), SMALL)
    ticket = driver.engine.submit(Append("t", records("x")))
    driver.close()
    assert ticket.done
    again = Driver(disk, SimClock(), SMALL)
    assert again.engine.report.facts == 0 and again.engine.report.last_stop == "clean"
    assert [record.data for record in again.engine.read("t").records] == ["x"]


def test_a_ticket_that_nothing_answers_is_not_waited_for_for_ever() -> None:
    with pytest.raises(AssertionError, match="the ticket is not done"):
        Driver(FakeDisk(), SimClock(), SMALL).wait(Ticket())
