"""Tables, routes and pipelines while the process dies at each file call, in every way: what was answered is there."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.core.catalogrig import pipeline, report, table
from tests.engine.rig import SMALL, Rig
from tests.sim.crashing import DEATHS
from topics.core.commands import ChangeSources, Command, Configure, Drop
from topics.core.pipelinecommands import DropPipeline, DropTable, PausePipeline, PutPipeline, PutTable, ReportPipeline
from topics.core.source import Operation, RouteStart, Source
from topics.engine.fsck import fsck
from topics.testing import FakeDisk, SimClock
from topics.testing.faultfs import Call

STRATA = 2

State = tuple[object, ...]


def look(rig: Rig) -> State:
    """All that is declared. What runners said may be older after a crash, and is left out."""
    machine = rig.engine.machine
    return (
        {name: (found.config, found.created_ms, found.changed_ms) for name, found in machine.catalog.tables.items()},
        {
            name: (found.number, found.config, found.created_ms, found.changed_ms, found.paused)
            for name, found in machine.catalog.pipelines.items()
            if found.config is not None or found.paused
        },
        {topic.name: topic.sources for topic in machine.topics},
    )


def history(rig: Rig) -> list[Callable[[], object]]:
    def do(command: Command) -> Callable[[], object]:
        return lambda: rig.driver.do(command)

    source = Source("t", Operation.INSERT)
    return [
        do(Configure("orders", {})),
        do(PutTable("t", table())),
        do(PutTable("u", table())),
        do(ChangeSources("orders", (source,))),
        do(PutPipeline("p", pipeline("orders", tables=("u",)))),
        do(ReportPipeline("p", report())),
        rig.checkpoint,
        do(PausePipeline("routes:t", True)),
        do(PutTable("t", table(location="/moved"))),
        do(PausePipeline("p", True)),
        do(PutPipeline("p", pipeline("orders", into="x"))),
        do(ChangeSources("orders", (source,), start=RouteStart.SNAPSHOT)),
        do(DropTable("u")),
        lambda: rig.clock.advance(20_000),
        do(ReportPipeline("p", report(input_rows_total=7))),
        rig.checkpoint,
        do(PausePipeline("p", False)),
        do(DropPipeline("p")),
        do(PutPipeline("p", pipeline("orders"))),
        do(Drop("orders")),
        do(DropTable("t")),
        rig.checkpoint,
    ]


def moments(stratum: int) -> tuple[list[tuple[str, FakeDisk, SimClock, int]], list[State]]:
    """Each directory that a death leaves, with the number of steps that were over by then; and the state after each."""
    rig = Rig()
    rig.checkpoint()
    disk, states = rig.disk, [look(rig)]
    found: list[tuple[str, FakeDisk, SimClock, int]] = []

    def on_call(call: Call) -> None:
        if not call.changes or call.index % STRATA != stratum:
            return
        death = DEATHS[call.index // STRATA % len(DEATHS)]
        fork = disk.fork()
        left = fork.kill() if death == "killed" else fork.crash(death, random.Random(call.index))
        clock = SimClock(rig.clock.now_ms(), rig.clock.ticks_ns())
        found.append((f"{call.index} {death}: {call.name} {call.path}", left, clock, len(states) - 1))

    rig.fs.on_call = on_call
    for happens in history(rig):
        happens()
        rig.work()
        states.append(look(rig))
    return found, states


@pytest.mark.parametrize("stratum", range(STRATA))
def test_what_was_answered_is_there(stratum: int) -> None:
    found, states = moments(stratum)
    assert found
    for name, disk, clock, done in found:
        directory = disk.fork()
        rig = Rig(SMALL, disk, clock)
        now = look(rig)
        assert now in states[done : done + 2], (name, "is neither before nor behind the step that was under way")
        assert fsck(directory, "/data", clock, lambda: 7, SMALL).clean, name
        rig.kill()
        assert look(rig) == now, (name, "a second recovery finds something else")
