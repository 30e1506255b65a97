"""Tables and pipelines over restarts, checkpoints, backups and repairs."""

from __future__ import annotations

import pytest

from tests.core.catalogrig import pipeline, report, table
from tests.engine.archives import restored
from tests.engine.damage import flipped
from tests.engine.rig import Rig
from tests.engine.test_backup import opened
from topics.core.catalogview import pipeline_names
from topics.core.commands import ChangeSources
from topics.core.pipelinecommands import DropPipeline, DropTable, PausePipeline, PutPipeline, PutTable, ReportPipeline
from topics.core.source import Operation, Source
from topics.engine.fsck import fsck
from topics.errors import TopicsError
from topics.pipelinemodel import LogLine, RunState

SAID = report(state=RunState.FAILED, last_error="boom")


def filled() -> Rig:
    rig = Rig()
    rig.configure("orders")
    for name in ("kept", "gone"):
        rig.driver.do(PutTable(name, table()))
        rig.driver.do(PutPipeline(f"p.{name}", pipeline("orders")))
    return rig


def changed(rig: Rig) -> None:
    rig.driver.do(PutTable("kept", table(location="/moved")))
    rig.driver.do(DropTable("gone"))
    rig.driver.do(DropPipeline("p.gone"))
    rig.driver.do(PausePipeline("p.kept", True))
    rig.driver.do(ReportPipeline("p.kept", SAID, (LogLine(1, "info", "hello"),)))
    rig.driver.do(ChangeSources("orders", (Source("kept", Operation.INSERT),)))
    rig.driver.do(PausePipeline("routes:kept", True))


def check(rig: Rig) -> None:
    catalog, machine = rig.engine.machine.catalog, rig.engine.machine
    assert set(catalog.tables) == {"kept"} and catalog.tables["kept"].config.location == "/moved"
    assert pipeline_names(machine) == ["p.kept", "routes:kept"]
    kept = catalog.pipelines["p.kept"]
    assert (kept.paused, kept.report, kept.config) == (True, SAID, pipeline("orders"))
    assert catalog.pipelines["routes:kept"].paused
    numbers = [kept.number, *(source.number for source in machine.topic("orders").sources)]
    assert machine.next_epoch > max(numbers)


@pytest.mark.parametrize("checkpoint", ["none", "between", "behind"])
@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_what_was_declared_is_there_again(checkpoint: str, end: str) -> None:
    rig = filled()
    if checkpoint == "between":
        rig.checkpoint()
    changed(rig)
    if checkpoint == "behind":
        rig.checkpoint()
    check(rig)
    getattr(rig, end)()
    check(rig)
    rig.stop()
    check(rig)


def test_a_checkpoint_that_fails_loses_nothing() -> None:
    rig = filled()
    changed(rig)
    job = rig.capture()
    rig.engine.end_checkpoint(job, OSError("full"))
    rig.checkpoint()
    rig.stop()
    check(rig)


def test_a_backup_has_them() -> None:
    rig = filled()
    rig.checkpoint()
    changed(rig)
    copy = restored(rig, opened(rig).chunks())
    check(copy)


def test_a_repair_of_something_else_keeps_them() -> None:
    rig = filled()
    rig.write("orders", *range(100))
    rig.checkpoint()
    changed(rig)
    rig.driver.close()
    assert fsck(rig.disk, "/data", rig.clock, lambda: 7, rig.options, False).clean
    (segment,) = [path for path in rig.disk.contents() if path.endswith(".data")]
    rig.disk = flipped(rig.disk.contents(), segment, 300, 0x10)
    assert not fsck(rig.disk, "/data", rig.clock, lambda: 7, rig.options, True).clean
    rig.start()
    check(rig)


def test_reports_that_are_not_stored_cost_no_fact() -> None:
    rig = filled()
    rig.driver.do(ReportPipeline("p.kept", report()))
    before = sum(map(len, rig.disk.contents().values()))
    for number in range(50):
        rig.driver.do(ReportPipeline("p.kept", report(input_rows_total=number)))
    rig.work()
    assert sum(map(len, rig.disk.contents().values())) == before
    with pytest.raises(TopicsError):
        rig.driver.do(ReportPipeline("p.kept", report("another")))
