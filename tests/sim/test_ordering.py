"""The order in which the workload calls the file system, watched as it runs."""

from __future__ import annotations

from tests.sim.crashing import reopen
from topics.core.commands import Append, Command, Stage
from topics.model import Durability
from topics.storage.draft import TEMP_SUFFIX
from topics.storage.walfile import is_spare
from topics.testing.audit import audit
from topics.testing.clock import SimClock
from topics.testing.fakedisk import FakeDisk
from topics.testing.monitorfs import MonitorFs
from topics.testing.workload import Rig, run_workload


def _watched() -> tuple[FakeDisk, MonitorFs, Rig, list[str]]:
    """A rig whose file system allows to unlink what a recovery does not miss."""
    disk = FakeDisk()
    monitor = MonitorFs(disk)
    unlinked: list[str] = []

    def is_not_needed(path: str) -> bool:
        unlinked.append(path)
        name = path.rpartition("/")[2]
        if name.endswith(TEMP_SUFFIX) or is_spare(name):
            return True
        fork = disk.fork()
        fork.unlink(path)
        recovered = reopen(fork.kill(), SimClock(rig.clock.now_ms(), rig.clock.ticks_ns()))
        audit(rig.history, recovered.engine, power_lost=False, now_ms=rig.clock.now_ms())
        return True

    monitor.allow_unlink(is_not_needed)
    rig = Rig(monitor, SimClock())
    return disk, monitor, rig, unlinked


def test_nothing_is_renamed_before_it_is_synced_and_nothing_needed_is_unlinked() -> None:
    _, monitor, rig, unlinked = _watched()
    run_workload(rig)
    monitor.assert_clean()
    assert {path.split("/")[2] for path in unlinked if path.startswith("/data/")} >= {"wal", "segments"}


def test_nothing_is_acked_before_it_is_synced() -> None:
    """At the ack of an fsync write or a stage, its bytes are in a WAL file, durable under a durable name."""
    disk, monitor, rig, _ = _watched()
    checked = []

    def on_ack(command: Command) -> None:
        if isinstance(command, Stage) or (isinstance(command, Append) and _is_synced(rig, command)):
            text = bytes(command.records.datas[-1])
            places = [
                (path, content.index(text))
                for path, content in disk.contents().items()
                if path.endswith(".wal") and text in content
            ]
            checked.append(command)
            assert any(monitor.is_durable(path, at, len(text)) for path, at in places), (
                f"{text!r} was acked, and is not durable in {places}"
            )

    rig.on_ack = on_ack
    run_workload(rig)
    monitor.assert_clean()
    assert len(checked) > 20


def _is_synced(rig: Rig, command: Append) -> bool:
    topic = rig.driver.engine.machine.topics.get(command.topic)
    return topic is not None and topic.config.durability is Durability.FSYNC
